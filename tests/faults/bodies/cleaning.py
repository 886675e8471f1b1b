"""What is left of a case: found, and freed of what only an administrator can take away."""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
import subprocess
from contextlib import suppress
from pathlib import Path

from tests.patience import LIMIT

NEIGHBOUR = "neighbour"
_GET, _SET = 0x80086601, 0x40086602
_SEALED = 0x30


def rooms_of(root: Path) -> list[str]:
    """List attempt directories that are still there; links and files are none."""
    try:
        found = list(root.iterdir())
    except OSError:
        return []
    ours = [path for path in found if path.name != NEIGHBOUR and not path.is_symlink()]
    return sorted(path.name for path in ours if path.is_dir() and _is_room(path))


def _is_room(path: Path) -> bool:
    """Tell an attempt directory from a dataset that a body has put in its place.

    One below a mount is not looked into: to list it would be to read what was mounted (V6).
    """
    if str(path) in _mounts():
        return True
    try:
        names = {entry.name for entry in path.iterdir()}
    except OSError:
        return True
    return not names or any(name == "workspace" or name.startswith(".perago-") for name in names)


def free(root: Path, scratch: Path) -> None:
    """Take away mounts and attributes that a body has left; the sweep cannot."""
    with suppress(OSError):
        root.chmod(0o700)
    for place in _mounts()[::-1]:
        if place.startswith((f"{scratch}/", f"{root}/")):
            subprocess.run(["umount", "--lazy", place], check=False, capture_output=True)
    for attempt_dir in map(root.joinpath, rooms_of(root)):
        for path in (attempt_dir, *attempt_dir.rglob("*")):
            if not path.is_symlink() and (path.is_dir() or path.is_file()):
                with suppress(OSError):
                    _unlock(path)


def _mounts() -> list[str]:
    """List the places where something is mounted, in the order in which it was."""
    lines = Path("/proc/self/mounts").read_text().splitlines()
    return [line.split()[1].encode().decode("unicode_escape") for line in lines]


def _unlock(path: Path) -> None:
    """Remove the immutable and append-only attributes."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOATIME)
    try:
        found = struct.unpack("l", fcntl.ioctl(fd, _GET, struct.pack("l", 0)))[0]
        if found & _SEALED:
            fcntl.ioctl(fd, _SET, struct.pack("l", found & ~_SEALED))
    finally:
        os.close(fd)


def remove(place: Path) -> None:
    """Remove a scratch; modes and depths that a body made are no obstacle."""
    words = ["chmod", "-R", "u+rwX", str(place)]
    subprocess.run(words, check=False, capture_output=True, timeout=LIMIT)
    subprocess.run(["rm", "-rf", str(place)], check=False, capture_output=True, timeout=LIMIT)
    shutil.rmtree(place, ignore_errors=True)
