"""Reading the logs of servers, also while they grow."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TextIO

_STEP_SECONDS = 0.25
Line = tuple[str, str]


def lines(logs: Mapping[str, Path], count: int, *, follow: bool = False) -> Iterator[Line]:
    """Return the last lines of each log with its server's name; then, following, what is added."""
    with ExitStack() as open_files:
        readers = {
            server: open_files.enter_context(path.open(encoding="utf-8", errors="replace"))
            for server, path in logs.items()
            if path.exists()
        }
        for server, reader in readers.items():
            for line in deque(reader, maxlen=count):
                yield server, line.rstrip("\n")
        while follow:
            news = False
            for server, reader in readers.items():
                for line in _whole_lines(reader):
                    news = True
                    yield server, line
            if not news:
                time.sleep(_STEP_SECONDS)


def _whole_lines(reader: TextIO) -> Iterator[str]:
    """Return what was added; a line still being written stays for the next time."""
    while True:
        before = reader.tell()
        line = reader.readline()
        if not line.endswith("\n"):
            reader.seek(before)
            return
        yield line.rstrip("\n")
