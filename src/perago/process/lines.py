"""Read lines from a pipe that must never block its reader."""

from __future__ import annotations

import os
from multiprocessing.connection import Connection
from typing import Final

from perago.redaction import KNOWN

_CHUNK: Final = 65_536
_LONGEST_LINE: Final = 65_536
_KEPT: Final = 4_096
"""So much of an endless line waits for the rest: more than any spelling of a key has."""
_MOST_CHUNKS: Final = 1_000
"""A writer that never stops must not keep the reader."""


class LineReader:
    """Lines of one captured stream; a line without an end is kept back until it has one."""

    def __init__(self, name: str, pipe: Connection) -> None:
        self.name = name
        self.pipe = pipe
        self.at_end = False
        self._rest = b""
        os.set_blocking(pipe.fileno(), False)

    def read(self) -> list[str]:
        """Take what is there now; an endless line is cut into pieces."""
        return self._lines(self._chunk() or b"")

    def drain(self) -> list[str]:
        """Take everything there is without waiting, the unfinished line too."""
        lines: list[str] = []
        for _ in range(_MOST_CHUNKS):
            chunk = self._chunk()
            if not chunk:
                break
            lines += self._lines(chunk)
        return lines + self._flush()

    def _chunk(self) -> bytes | None:
        """Read once; None when there is nothing now, empty at the end."""
        try:
            chunk = os.read(self.pipe.fileno(), _CHUNK)
        except BlockingIOError:
            return None
        except OSError:
            chunk = b""
        self.at_end = not chunk
        return chunk

    def _lines(self, chunk: bytes) -> list[str]:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > _LONGEST_LINE:
            at = _cut(self._rest)
            lines.append(self._rest[:at])
            self._rest = self._rest[at:]
        return [_text(line) for line in lines] + (self._flush() if self.at_end else [])

    def close(self) -> None:
        """Close the pipe."""
        self.pipe.close()

    def _flush(self) -> list[str]:
        rest, self._rest = self._rest, b""
        return [_text(rest)] if rest else []


def _cut(line: bytes) -> int:
    """Choose where an endless line is cut: never inside a key, which would be missed (V8)."""
    return KNOWN.safe_cut(line.decode("latin-1"), len(line) - _KEPT) or len(line)


def _text(line: bytes) -> str:
    return line.rstrip(b"\r").decode(errors="replace")
