"""New files: one way to make them, which never follows a link and never takes another's place."""

from __future__ import annotations

import os
from pathlib import Path

READ_ONLY = 0o444
_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def create(path: str | Path, mode: int = 0o644, *, private: bool = False) -> int:
    """Open a file that was not there; directories above it are made, ``private`` for us alone."""
    try:
        return os.open(path, _CREATE, mode)
    except FileNotFoundError:
        above = os.path.dirname(path)  # noqa: PTH120 - a hot loop over plain strings
        os.makedirs(above, mode=0o700 if private else 0o777, exist_ok=True)  # noqa: PTH103
        return os.open(path, _CREATE, mode)
