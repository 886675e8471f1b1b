"""Scratch file systems of any kind, for the time of a test; only root can make most of them."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.patience import LIMIT

KINDS = ("ext4", "tmpfs", "xfs", "btrfs", "overlay")
_SIZE = 320 << 20  # The least that mkfs.xfs takes.
_PAGE = 4096
_MAKE = {
    "ext4": ["mkfs.ext4", "-q", "-F"],
    "xfs": ["mkfs.xfs", "-q", "-f"],
    "btrfs": ["mkfs.btrfs", "-q", "-f"],
}


class CannotMount(Exception):  # noqa: N818 - what it says is its name
    """This machine cannot make such a file system; the text says why."""


@contextmanager
def mounted(kind: str, directory: Path, size: str = "256m") -> Iterator[Path]:
    """Mount a new file system of a kind below a directory, and give its root.

    It is gone afterwards, whatever was left in it. ``CannotMount`` names what is missing here.
    ``size`` is that of a tmpfs; the others have the least that all of them take.
    """
    directory.mkdir(parents=True, exist_ok=True)
    root = directory / f"{kind}-root"
    root.mkdir()
    if kind == "overlay":
        layers = [directory / f"overlay-{name}" for name in ("lower", "upper", "work")]
        for layer in layers:
            layer.mkdir()
        lower, upper, work = layers
        words = ["-t", kind, "-o", f"lowerdir={lower},upperdir={upper},workdir={work}", kind]
    elif kind == "tmpfs":
        words = ["-t", kind, "-o", f"size={size}", kind]
    else:
        image = directory / f"{kind}.image"
        with image.open("wb") as file:
            file.truncate(_SIZE)
        _run([*_MAKE[kind], str(image)])
        words = ["-t", kind, "-o", "loop", str(image)]
    _run(["mount", *words, str(root)])
    try:
        yield root
    finally:
        # Lazily: a file that a failed test still holds must not keep the mount.
        subprocess.run(["umount", "-l", str(root)], check=True, timeout=LIMIT)


@contextmanager
def bound(source: Path, to: Path) -> Iterator[None]:
    """Show a directory or file at a second place, as ``mount --bind`` does."""
    _run(["mount", "--bind", str(source), str(to)])
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(to)], check=True, timeout=LIMIT)


def fill(root: Path, pages: int = 0) -> Path:
    """Leave no room on a tmpfs but for so many pages; return the file that takes the rest."""
    filler = root / "filler"
    try:
        with filler.open("wb", buffering=0) as file:
            while file.write(bytes(_PAGE)):
                pass
    except OSError as error:
        assert error.errno == errno.ENOSPC  # noqa: PT017 - it ends in no other way
    os.truncate(filler, filler.stat().st_size - pages * _PAGE)
    return filler


def kind_of(path: Path) -> str:
    """Name the file system that a path is on, as ``stat`` does."""
    words = ["stat", "--file-system", "--format=%T", os.fspath(path)]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


def _run(words: list[str]) -> None:
    if os.geteuid() != 0:
        raise CannotMount(f"{words[0]} needs root")
    if shutil.which(words[0]) is None:
        raise CannotMount(f"{words[0]} is not installed")
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=LIMIT)
    if done.returncode:
        raise CannotMount(f"{' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")
