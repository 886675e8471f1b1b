"""What repositories, branches and keys may be called: the same as on lakeFS."""

from __future__ import annotations

import re

from perago.errors import UsageError

_REPOSITORY = re.compile(r"[a-z0-9][a-z0-9-]{2,62}")
_BRANCH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,499}")
_MAX_KEY_BYTES = 1024


def check_repository(name: str) -> None:
    """Refuse a name that no store would take."""
    if not _REPOSITORY.fullmatch(name):
        raise UsageError(
            f"{name!r} is not a repository name",
            remedy="use 3 to 63 of a-z, 0-9 and '-', not starting with '-'",
        )


def check_branch(name: str) -> None:
    """Refuse a name that no store would take."""
    if not _BRANCH.fullmatch(name):
        raise UsageError(
            f"{name!r} is not a branch name",
            remedy="use A-Z, a-z, 0-9, '_' and '-', not starting with '-'",
        )


def check_key(key: str) -> None:
    """Refuse only what cannot be stored; whether a key may become a file is decided on read."""
    try:
        size = len(key.encode())
    except UnicodeEncodeError:
        size = -1
    if not 0 < size <= _MAX_KEY_BYTES:
        raise UsageError(
            f"{key!a} is not an object key",
            remedy=f"use 1 to {_MAX_KEY_BYTES} bytes of valid UTF-8",
        )
