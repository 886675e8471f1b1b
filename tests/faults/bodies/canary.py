"""A tree outside the attempt that must keep its bytes, names, modes and stamps (V6).

Everything is read without moving a stamp, so that a reading by somebody else shows in the access
time.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

OLD = 1_600_000_000
Snapshot = dict[str, dict[str, Any]]
MOVED_BY_LINKS = ("ctime", "nlink")
"""What another name of a file changes about it."""


def plant(place: Path) -> None:
    """Make a dataset with everything that could tempt somebody who follows a link into it."""
    place.mkdir(parents=True)
    (place / "in.txt").write_bytes(b"canary\n")
    (place / "in.bin").write_bytes(bytes(range(256)) * 256)
    (place / "empty").mkdir()
    (place / "table").mkdir()
    for part in range(3):
        (place / "table" / f"part-{part}.parquet").write_bytes(b"PAR1%d" % part * 100)
    (place / "table" / "deep" / "er").mkdir(parents=True)
    (place / "table" / "deep" / "er" / "last.txt").write_bytes(b"last\n")
    (place / "read-only").write_bytes(b"mode 0444\n")
    (place / "read-only").chmod(0o444)
    (place / "closed").write_bytes(b"mode 0000\n")
    (place / "closed").chmod(0o000)
    (place / "set-user-id").write_bytes(b"mode 4755\n")
    (place / "set-user-id").chmod(0o4755)
    (place / "sealed").mkdir()
    (place / "sealed" / "within.txt").write_bytes(b"below a directory of mode 0500\n")
    (place / "sealed").chmod(0o500)
    (place / "a-link").symlink_to("in.txt")
    os.link(place / "in.bin", place / "in-again.bin")
    # As a job of another system looks: this is what a sweep must not take for ours.
    (place / "job" / "workspace" / "src").mkdir(parents=True)
    (place / "job" / "workspace" / "src" / "code.py").write_bytes(b"print()\n")
    age(place)


def age(place: Path) -> None:
    """Make everything old, the access time most of all: a reading would move it."""
    for path in [place, *place.rglob("*")]:
        os.utime(path, (OLD - 1000, OLD), follow_symlinks=False)


def snapshot(place: Path) -> Snapshot:
    """Describe a tree, or a file, completely."""
    return dict(_described(place, ""))


def differences(before: Snapshot, after: Snapshot, *, loose: bool = False) -> Iterator[str]:
    """Say what is different, in sentences; ``loose`` leaves out what a new name changes."""
    for path in sorted(before.keys() | after.keys()):
        name = path or "."
        if path not in after:
            yield f"{name!a} is gone"
        elif path not in before:
            yield f"{name!a} is new"
        else:
            for what, was in before[path].items():
                if after[path][what] != was and not (loose and what in MOVED_BY_LINKS):
                    yield f"{what} of {name!a} was {was!a} and is {after[path][what]!a}"


def _described(place: Path, below: str) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        found = place.lstat()
    except FileNotFoundError:
        return
    yield below, _of(place, found)
    if not stat.S_ISDIR(found.st_mode):
        return
    directory = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NOATIME)
    try:
        with os.scandir(directory) as entries:
            names = sorted(entry.name for entry in entries)
    finally:
        os.close(directory)
    for name in names:
        yield from _described(place / name, f"{below}/{name}" if below else name)


def _of(path: Path, found: os.stat_result) -> dict[str, Any]:
    content = ""
    if stat.S_ISREG(found.st_mode):
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NOATIME)
        with os.fdopen(fd, "rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
    elif stat.S_ISLNK(found.st_mode):
        content = str(path.readlink())
    return {
        "mode": oct(found.st_mode),
        "owner": [found.st_uid, found.st_gid],
        "size": found.st_size if not stat.S_ISDIR(found.st_mode) else 0,
        "nlink": found.st_nlink,
        "inode": found.st_ino,
        "mtime": found.st_mtime_ns,
        "ctime": found.st_ctime_ns,
        # Of a link it is moved by whoever asks where it leads.
        "atime": 0 if stat.S_ISLNK(found.st_mode) else found.st_atime_ns,
        "content": content,
    }
