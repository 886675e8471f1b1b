"""Functions of the standard library that an attempt needs after its body.

A body may put something else in their place, for a test or by accident, and forget it. The rest of
the attempt would then write what was never meant: a commit whose parents are ``null``. So they are
put back. Only those that Perago calls itself: what a library patches elsewhere is its own affair.
"""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import shutil
import sqlite3
import struct
import time
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any, Final

_OF_OS: Final = (
    *("open", "read", "write", "close", "fsync", "stat", "lstat", "fstat", "scandir", "listdir"),
    *("unlink", "remove", "rmdir", "mkdir", "makedirs", "rename", "replace", "link", "symlink"),
    *("readlink", "chmod", "fchmod", "utime", "truncate", "ftruncate", "dup", "fdopen", "getpid"),
    *("fspath", "urandom", "walk", "statvfs", "access", "pipe", "kill"),
)
_OWNED: Final[tuple[tuple[Any, tuple[str, ...]], ...]] = (
    (os, _OF_OS),
    (json, ("dumps", "loads")),
    (hashlib, ("sha256", "md5", "new", "file_digest")),
    (shutil, ("copyfile", "copyfileobj", "move", "rmtree")),
    (sqlite3, ("connect",)),
    (struct, ("pack", "unpack", "Struct")),
    (time, ("time", "monotonic", "sleep")),
    (uuid, ("uuid4",)),
    (pathlib.Path, tuple(name for name in vars(pathlib.Path) if not name.startswith("__"))),
)


def kept() -> Callable[[], list[str]]:
    """Remember the functions; what is returned puts them back, and names those that were not."""
    before = [
        (owner, name, vars(owner)[name])
        for owner, names in _OWNED
        for name in names
        if name in vars(owner)
    ]
    return partial(_put_back, before)


def _put_back(before: list[tuple[Any, str, object]]) -> list[str]:
    replaced = []
    for owner, name, function in before:
        if vars(owner).get(name) is not function:
            setattr(owner, name, function)
            replaced.append(f"{owner.__name__}.{name}")
    return replaced
