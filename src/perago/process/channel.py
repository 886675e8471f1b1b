"""Both ends of the line between an executor process and its owner: a length, then a message.

The owner never waits for an executor: it takes whole messages when they are there, keeps half of
one, and keeps what an executor that does not read has yet to take.
"""

from __future__ import annotations

import os
import struct
from collections import deque
from multiprocessing.connection import Connection
from typing import Final

from perago.process.messages import MOST_BYTES, BadMessageError

_LENGTH: Final = struct.Struct(">I")
_CHUNK: Final = 1 << 16
_MOST_CHUNKS: Final = 256
"""One executor that never stops talking must not keep its owner from the others."""


def framed(message: bytes) -> bytes:
    """Put the length before a message; ``ValueError`` for one that is too long to be taken."""
    if len(message) > MOST_BYTES:
        raise ValueError(f"a message of {len(message)} bytes is too long")
    return _LENGTH.pack(len(message)) + message


class OwnersEnd:
    """Never blocks; ``receive`` and ``flush`` are called when the line is ready for it."""

    def __init__(self, line: Connection) -> None:
        self._line = line
        os.set_blocking(line.fileno(), False)
        self._heard = bytearray()
        self._unsent: deque[memoryview] = deque()
        self.at_end = False

    def fileno(self) -> int:
        """Return the descriptor, for a selector."""
        return self._line.fileno()

    @property
    def unsent(self) -> bool:
        """Return whether the other side has yet to take something."""
        return bool(self._unsent)

    def send(self, message: bytes) -> None:
        """Send as much as the line takes now; ``OSError`` when the other end is gone."""
        self._unsent.append(memoryview(framed(message)))
        self.flush()

    def flush(self) -> None:
        """Send what was left."""
        while self._unsent:
            part = self._unsent[0]
            try:
                done = os.write(self._line.fileno(), part[: 1 << 20])
            except BlockingIOError:
                return
            if done == len(part):
                self._unsent.popleft()
            else:
                self._unsent[0] = part[done:]

    def receive(self) -> list[bytes]:
        """Take the messages that are there, whole ones only; ``BadMessageError`` for garbage."""
        for _ in range(_MOST_CHUNKS):
            try:
                part = os.read(self._line.fileno(), _CHUNK)
            except BlockingIOError:
                break
            except OSError:
                part = b""
            if not part:
                self.at_end = True
                break
            self._heard += part
        return self._whole()

    def _whole(self) -> list[bytes]:
        found: list[bytes] = []
        start = 0
        while len(self._heard) - start >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._heard, start)
            if length > MOST_BYTES:
                raise BadMessageError(f"a message of {length} bytes was announced")
            end = start + _LENGTH.size + length
            if end > len(self._heard):
                break
            found.append(bytes(self._heard[start + _LENGTH.size : end]))
            start = end
        del self._heard[:start]
        return found

    def close(self) -> None:
        """Close it."""
        self._line.close()


class ExecutorsEnd:
    """Blocks; written to by one thread at a time, read by another."""

    def __init__(self, line: Connection) -> None:
        self._line = line
        self._is = os.fstat(line.fileno())

    @property
    def lost(self) -> bool:
        """Return whether the body closed it: its number may be one of the body's files by now."""
        try:
            return not os.path.samestat(self._is, os.fstat(self._line.fileno()))
        except OSError:
            return True

    def send(self, message: bytes) -> None:
        """Send all of a message."""
        if self.lost:
            raise ConnectionResetError
        left = memoryview(framed(message))
        while left:
            left = left[os.write(self._line.fileno(), left) :]

    def receive(self) -> bytes:
        """Wait for a message; ``EOFError`` when there will be none."""
        (length,) = _LENGTH.unpack(self._exactly(_LENGTH.size))
        return self._exactly(length)

    def _exactly(self, count: int) -> bytes:
        parts: list[bytes] = []
        while count:
            part = os.read(self._line.fileno(), min(count, 1 << 20))
            if not part:
                raise EOFError
            parts.append(part)
            count -= len(part)
        return b"".join(parts)
