"""The files behind the log: private, rotated by size, removed by age."""

from __future__ import annotations

import fcntl
import os
import re
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from perago.errors import RuntimeConfigError
from perago.filesystem import roots, trees
from perago.ports import Clock

_SWEEP_SECONDS: Final = 3600.0
_RETRY_SECONDS: Final = 30.0
_LOOK: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
_OURS: Final = re.compile(r"perago-[A-Za-z0-9_.-]{1,64}-\d+-\d+\.\d{4,}\.jsonl", re.ASCII)


class LogFiles:
    """The file set of one process, ``perago-<instance>-<start>-<pid>.<n>.jsonl``.

    The open file is locked, so that the sweep of another process knows it is in use. A disk that
    is full loses lines and never stops a worker: they are counted.
    """

    def __init__(
        self,
        root: Path,
        instance_id: str,
        clock: Clock,
        *,
        max_bytes: int,
        retention_seconds: float,
        complain: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._root = private_directory(root)
        name = re.sub(r"[^A-Za-z0-9_.-]", "_", instance_id)[:64] or "worker"
        self._stem = f"perago-{name}-{int(clock.now())}-{os.getpid()}"
        self._clock = clock
        self._max_bytes = max_bytes
        self._retention = retention_seconds
        self._complain = complain
        self._number = 0
        self._size = 0
        self._file: int | None = None
        self._retry_at = 0.0
        self._swept_at = clock.monotonic()
        self.dropped = 0
        self._open()
        self.sweep()

    @property
    def path(self) -> Path:
        """Name the file that is written now."""
        return self._root / f"{self._stem}.{self._number:04}.jsonl"

    def write(self, line: str) -> None:
        """Add one line; never raises."""
        data = line.encode("utf-8", "backslashreplace") + b"\n"
        try:
            self._make_room(len(data))
            if self._file is None:
                self.dropped += 1
                return
            written = os.write(self._file, data)
            self._size += written
            if written < len(data):
                self._fail(OSError(f"{self.path} took only a part of a line"))
        except (OSError, RuntimeConfigError) as error:
            self._fail(error)

    def sweep(self) -> list[Path]:
        """Remove files that are older than the retention, of whatever process, if it is over."""
        self._swept_at = self._clock.monotonic()
        oldest = self._clock.now() - self._retention
        removed = []
        with suppress(OSError), trees.opened(self._root.resolve()) as top:
            for name in filter(_OURS.fullmatch, os.listdir(top)):  # noqa: PTH208 - by descriptor
                with suppress(OSError):
                    if name != self.path.name and _is_over(top, name, oldest):
                        os.unlink(name, dir_fd=top)
                        removed.append(self._root / name)
        return removed

    def close(self) -> None:
        """Close the file; a second time is fine."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _make_room(self, coming: int) -> None:
        now = self._clock.monotonic()
        if self._file is None and now >= self._retry_at:
            self._next()
        elif self._file is not None and self._size and self._size + coming > self._max_bytes:
            self._next()
            self.sweep()
        elif now - self._swept_at >= _SWEEP_SECONDS:
            self.sweep()

    def _next(self) -> None:
        self.close()
        self._number += 1
        self._open()

    def _open(self) -> None:
        private_directory(self._root)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            self._file = os.open(self.path, flags, 0o600)
        except OSError as error:
            raise RuntimeConfigError(
                f"the log file {self.path} cannot be made: {error.strerror}",
                remedy="check PERAGO_LOG_ROOT and its permissions",
            ) from error
        self._size = 0
        with suppress(OSError):  # Some file systems cannot lock; then only age counts.
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _fail(self, error: Exception) -> None:
        """Give up on this file, say so once, and try a new one in a while."""
        if self._file is not None or self.dropped == 0:
            self._complain(f"log lines are lost: {error}")
        with suppress(OSError):
            self.close()
        self.dropped += 1
        self._retry_at = self._clock.monotonic() + _RETRY_SECONDS


def private_directory(root: Path) -> Path:
    """Make a directory for us alone, or take one that no other user can put files into."""
    if roots.made(root, roots.LOGS).st_mode & stat.S_IWOTH:
        raise RuntimeConfigError(
            f"everybody can write to the log directory {root}",
            remedy=f"chmod 700 {root}, or set PERAGO_LOG_ROOT to another one",
        )
    return root


def _is_over(top: int, name: str, oldest: float) -> bool:
    """Return whether a file is ours, old, and not held open for writing by a living process."""
    descriptor = os.open(name, _LOOK, dir_fd=top)
    try:
        found = os.fstat(descriptor)
        ours = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
        if not ours or found.st_mtime >= oldest:
            return False
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(descriptor)
