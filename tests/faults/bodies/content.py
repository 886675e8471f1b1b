"""Bodies that change bytes behind the back of stamps, or leave files that are hard to take."""

from __future__ import annotations

import fcntl
import mmap
import os
import socket
import stat
import struct
import subprocess
from pathlib import Path
from typing import Any

from tests.faults.bodies.body import (
    BASE,
    DONE,
    EITHER,
    FAILS,
    Body,
    Register,
    Scene,
    Tree,
    body,
    plus,
)
from tests.patience import LIMIT

__all__ = ["Body"]
KEPT: list[Any] = []
"""What stays open after a body has returned."""
BIN = BASE["data/in.bin"]
PATCH = b"changed behind the back"
PLAIN = r"^diff: .*supports plain files only: .*{}"


def patched(tree: Tree) -> Tree:
    return {**tree, "data/in.bin": PATCH + BIN[len(PATCH) :]}


def changing(name: str, *, quick: bool = False) -> Register:
    """Register a deed that changes the beginning of in.bin and must be seen."""
    return body(f"content/{name}", DONE, tree=patched, everywhere=True, quick=quick)


def _mapped(path: Path, access: int = mmap.ACCESS_WRITE) -> mmap.mmap:
    fd = os.open(path, os.O_RDWR)
    try:
        return mmap.mmap(fd, 0, access=access)
    finally:
        os.close(fd)


# --- bytes that change, stamps that do not --------------------------------------------------------


@changing("mmap, flushed and closed")
def mmap_flushed(scene: Scene) -> None:
    with _mapped(scene.workspace / "in.bin") as mapped:
        mapped[: len(PATCH)] = PATCH
        mapped.flush()


@changing("mmap, closed without a flush", quick=True)
def mmap_closed(scene: Scene) -> None:
    with _mapped(scene.workspace / "in.bin") as mapped:
        mapped[: len(PATCH)] = PATCH


@changing("mmap, kept open without a flush")
def mmap_open(scene: Scene) -> None:
    mapped = _mapped(scene.workspace / "in.bin")
    mapped[: len(PATCH)] = PATCH
    KEPT.append(mapped)


@changing("mmap of pages that were dirty before")
def mmap_dirty(scene: Scene) -> None:
    """The second write to a page that is mapped and writable already moves no stamp."""
    mapped = _mapped(scene.workspace / "in.bin")
    mapped[:1] = mapped[:1]
    KEPT.append(mapped)
    os.stat(scene.workspace / "in.bin")
    mapped[: len(PATCH)] = PATCH


@changing("mmap with the times put back")
def mmap_and_utime(scene: Scene) -> None:
    path = scene.workspace / "in.bin"
    before = path.stat()
    mmap_flushed(scene)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@changing("same size, times put back")
def rewritten(scene: Scene) -> None:
    path = scene.workspace / "in.bin"
    before = path.stat()
    with path.open("r+b") as file:
        file.write(PATCH)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@changing("replaced by one of the same size and times")
def replaced(scene: Scene) -> None:
    path, new = scene.workspace / "in.bin", scene.workspace / "new"
    before = path.stat()
    new.write_bytes(PATCH + BIN[len(PATCH) :])
    os.utime(new, ns=(before.st_atime_ns, before.st_mtime_ns))
    new.rename(path)


@changing("written through a descriptor that stays open")
def kept_descriptor(scene: Scene) -> None:
    fd = os.open(scene.workspace / "in.bin", os.O_RDWR)
    os.pwrite(fd, PATCH, 0)
    KEPT.append(fd)


@changing("written past the page cache")
def direct(scene: Scene) -> None:
    """Where the file system offers it; an ordinary write elsewhere."""
    path = scene.workspace / "in.bin"
    page = mmap.mmap(-1, 65_536)
    page.write(PATCH + BIN[len(PATCH) :])
    try:
        fd = os.open(path, os.O_RDWR | os.O_DIRECT)
    except OSError:
        fd = os.open(path, os.O_RDWR)
    try:
        os.pwritev(fd, [page], 0)
    finally:
        os.close(fd)
    page.close()


@body(
    "content/two files exchange their names and times",
    tree=lambda tree: {**tree, "data/d/one.txt": b"two\n", "data/d/two.txt": b"one\n"},
    everywhere=True,
)
def exchanged(scene: Scene) -> None:
    one, two = scene.workspace / "d" / "one.txt", scene.workspace / "d" / "two.txt"
    stamps = one.stat(), two.stat()
    aside = scene.workspace / "aside"
    one.rename(aside)
    two.rename(one)
    aside.rename(two)
    for path, stamp in zip((one, two), stamps, strict=True):
        os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))


@body("content/rewritten with the same bytes", everywhere=True)
def rewritten_same(scene: Scene) -> None:
    (scene.workspace / "in.bin").write_bytes(BIN)


@body("content/private mapping changed, file not", everywhere=True)
def private_mapping(scene: Scene) -> None:
    mapped = _mapped(scene.workspace / "in.bin", mmap.ACCESS_COPY)
    mapped[: len(PATCH)] = PATCH
    KEPT.append(mapped)


@body(
    "content/hole punched",
    tree=lambda tree: {**tree, "data/in.bin": bytes(4096) + BIN[4096:]},
    everywhere=True,
)
def punched(scene: Scene) -> None:
    path = scene.workspace / "in.bin"
    before = path.stat()
    words = ["fallocate", "--punch-hole", "--offset", "0", "--length", "4096", str(path)]
    subprocess.run(words, check=True, capture_output=True, timeout=LIMIT)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@body("content/times in the year 1 and 2400", tree=plus({"future.txt": b"x"}), everywhere=True)
def odd_times(scene: Scene) -> None:
    (scene.workspace / "future.txt").write_bytes(b"x")
    os.utime(scene.workspace / "future.txt", (2**33, 2**33))
    os.utime(scene.workspace / "in.bin", (0, 0))
    os.utime(scene.workspace / "d" / "one.txt", (-(2**30), -(2**30)))


# --- sizes ------------------------------------------------------------------------------------


@body(
    "size/sparse, 64 MiB with bytes at the end",
    tree=lambda tree: {**tree, "data/sparse.bin": bytes(64 << 20) + b"end"},
)
def sparse(scene: Scene) -> None:
    with (scene.workspace / "sparse.bin").open("wb") as file:
        file.seek(64 << 20)
        file.write(b"end")


@body("size/1 TiB among what is excluded", everywhere=True, quick=True)
def huge_excluded(scene: Scene) -> None:
    (scene.workspace / "skipped").mkdir()
    _huge(scene.workspace / "skipped" / "huge.bin")


@body("size/1 TiB, and the body fails", FAILS, "^body: .*enough")
def huge_and_fail(scene: Scene) -> None:
    _huge(scene.workspace / "huge.bin")
    raise RuntimeError("enough")


@body("size/1 TiB in a read-only task", task="look")
def huge_read_only(scene: Scene) -> None:
    _huge(scene.workspace / "huge.bin")


def _huge(path: Path) -> None:
    """As big as the file system allows; nothing is written."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    for size in (1 << 40, 1 << 33):
        try:
            os.ftruncate(fd, size)
        except OSError:
            continue
        break
    os.close(fd)


@body("size/empty files", tree=plus({f"empty-{number}": b"" for number in range(100)}))
def empty_files(scene: Scene) -> None:
    for number in range(100):
        (scene.workspace / f"empty-{number}").touch()


# --- modes and attributes -----------------------------------------------------------------------


@body("mode/file 000", EITHER, "^diff: .*secret.txt", tree=plus({"secret.txt": b"x"}))
def file_closed(scene: Scene) -> None:
    (scene.workspace / "secret.txt").write_bytes(b"x")
    (scene.workspace / "secret.txt").chmod(0)


@body(
    "mode/directory 0555",
    tree=plus({"sealed/file": b"x", "sealed/deep/file": b"y"}),
    everywhere=True,
)
def directory_read_only(scene: Scene) -> None:
    (scene.workspace / "sealed" / "deep").mkdir(parents=True)
    (scene.workspace / "sealed" / "file").write_bytes(b"x")
    (scene.workspace / "sealed" / "deep" / "file").write_bytes(b"y")
    (scene.workspace / "sealed" / "deep").chmod(0o555)
    (scene.workspace / "sealed").chmod(0o555)


@body("mode/directory 000", EITHER, "^diff: .*sealed", tree=plus({"sealed/file": b"x"}))
def directory_closed(scene: Scene) -> None:
    (scene.workspace / "sealed").mkdir()
    (scene.workspace / "sealed" / "file").write_bytes(b"x")
    (scene.workspace / "sealed").chmod(0)


@body("mode/workspace 000", EITHER, "^(post guardrail|diff): ", everywhere=True)
def workspace_closed(scene: Scene) -> None:
    scene.workspace.chmod(0)


@body("mode/set-user-id, set-group-id and sticky", tree=plus({"program": b"#!/bin/true\n"}))
def set_user_id(scene: Scene) -> None:
    (scene.workspace / "program").write_bytes(b"#!/bin/true\n")
    (scene.workspace / "program").chmod(0o6777)
    (scene.workspace / "d").chmod(0o7777)


@body("mode/of another owner", tree=plus({"theirs": b"x"}), needs="root")
def another_owner(scene: Scene) -> None:
    (scene.workspace / "theirs").write_bytes(b"x")
    os.chown(scene.workspace / "theirs", 65534, 65534)
    os.chown(scene.workspace / "d", 65534, 65534)
    os.chown(scene.attempt_dir, 65534, 65534)


IMMUTABLE, APPEND = 0x10, 0x20
_GET, _SET = 0x80086601, 0x40086602


def _attribute(path: Path, flag: int) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        found = struct.unpack("l", fcntl.ioctl(fd, _GET, struct.pack("l", 0)))[0]
        fcntl.ioctl(fd, _SET, struct.pack("l", found | flag))
    finally:
        os.close(fd)


def _with_attribute(name: str, *, quick: bool = False) -> Register:
    return body(
        f"attribute/{name}",
        EITHER,
        tree=plus({"sealed/file": b"x"}),
        needs="attributes",
        stays=True,
        quick=quick,
    )


def _sealed(scene: Scene) -> Path:
    (scene.workspace / "sealed").mkdir()
    (scene.workspace / "sealed" / "file").write_bytes(b"x")
    return scene.workspace / "sealed"


@_with_attribute("immutable file")
def immutable_file(scene: Scene) -> None:
    _attribute(_sealed(scene) / "file", IMMUTABLE)


@_with_attribute("append-only directory", quick=True)
def append_only_directory(scene: Scene) -> None:
    _attribute(_sealed(scene), APPEND)


@_with_attribute("immutable workspace")
def immutable_workspace(scene: Scene) -> None:
    _sealed(scene)
    _attribute(scene.workspace, IMMUTABLE)


@_with_attribute("immutable attempt directory")
def immutable_room(scene: Scene) -> None:
    _sealed(scene)
    _attribute(scene.attempt_dir, IMMUTABLE)


@_with_attribute("immutable marker")
def immutable_marker(scene: Scene) -> None:
    _sealed(scene)
    _attribute(scene.marker, IMMUTABLE)


@body("attribute/extended attributes", tree=plus({"noted": b"x"}))
def extended(scene: Scene) -> None:
    path = scene.workspace / "noted"
    path.write_bytes(b"x")
    try:
        os.setxattr(path, "user.note", b"x" * 1000)
    except OSError as error:  # Not every file system keeps them.
        assert error.errno, error  # noqa: PT017


# --- what is not a plain file --------------------------------------------------------------------


@body("special/FIFO", FAILS, PLAIN.format("pipe"), everywhere=True, quick=True)
def fifo(scene: Scene) -> None:
    os.mkfifo(scene.workspace / "pipe")


@body("special/FIFO in place of an input", FAILS, PLAIN.format("in.bin"))
def fifo_for_input(scene: Scene) -> None:
    (scene.workspace / "in.bin").unlink()
    os.mkfifo(scene.workspace / "in.bin")


@body("special/FIFO that has a writer", FAILS, PLAIN.format("pipe"))
def fifo_with_writer(scene: Scene) -> None:
    os.mkfifo(scene.workspace / "pipe")
    fd = os.open(scene.workspace / "pipe", os.O_RDWR | os.O_NONBLOCK)
    os.write(fd, b"for ever")
    KEPT.append(fd)


@body("special/socket", FAILS, PLAIN.format("s"), everywhere=True)
def listening(scene: Scene) -> None:
    here = os.open(".", os.O_RDONLY)
    kept = socket.socket(socket.AF_UNIX)
    try:  # The path of a socket must be short.
        os.chdir(scene.workspace)
        kept.bind("s")
    finally:
        os.fchdir(here)
        os.close(here)
    kept.listen()
    KEPT.append(kept)


@body("special/character device", FAILS, PLAIN.format("zero"), needs="devices")
def device(scene: Scene) -> None:
    """Whoever reads it to its end reads for ever."""
    os.mknod(scene.workspace / "zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))


@body("special/block device", FAILS, PLAIN.format("disk"), needs="devices")
def block_device(scene: Scene) -> None:
    """A number that no disk has."""
    os.mknod(scene.workspace / "disk", stat.S_IFBLK | 0o600, os.makedev(240, 77))


@body("special/among what is excluded", everywhere=True)
def special_excluded(scene: Scene) -> None:
    (scene.workspace / "skipped").mkdir()
    os.mkfifo(scene.workspace / "skipped" / "pipe")


@body("special/file that is locked", tree=plus({"locked": b"x"}))
def locked(scene: Scene) -> None:
    kept = (scene.workspace / "locked").open("wb")
    kept.write(b"x")
    kept.flush()
    fcntl.flock(kept, fcntl.LOCK_EX)
    fcntl.lockf(kept, fcntl.LOCK_EX)
    KEPT.append(kept)
