"""The diff against an oracle that reads every byte: S2, after any file operations, anywhere.

The oracle needs no stamps and no hashes, so that it cannot make the scan's mistakes.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from perago.protocol.diff import diff
from perago.protocol.paths import Selection
from perago.protocol.values import ChangeSet, Entry
from perago.workspace import stamps
from perago.workspace.scan import baseline, scan
from tests.faults.paths import ALL
from tests.filesystems import KINDS, CannotMount, kind_of, mounted

EXAMPLES = 400 if ALL else 60
TICK_SECONDS = 0.011  # The coarsest clock of a file system has ticks of 10 ms.
PATHS = ("a", "b", "c", "d/a", "d/b", "d/e/a")
BYTES = st.binary(max_size=40).map(lambda part: part * 400)
MEMORY = Path("/dev/shm")  # noqa: S108 - it is where memory is
Do = Callable[["Tree"], object]


@dataclass(frozen=True)
class Tree:
    """A workspace, and the times that its files had when they were downloaded."""

    root: Path
    times: dict[str, int]

    def path(self, name: str) -> Path:
        path = self.root / name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def contents(self) -> dict[str, bytes]:
        found = (path for path in self.root.rglob("*") if path.is_file())
        return {str(path.relative_to(self.root)): path.read_bytes() for path in found}


def rewrite(name: str, content: bytes) -> Do:
    return lambda tree: tree.path(name).write_bytes(content)


def in_place(name: str, position: int, byte: int) -> Do:
    def do(tree: Tree) -> None:
        with tree.path(name).open("r+b", buffering=0) as file:
            file.seek(position)
            file.write(bytes([byte]))

    return do


def through_mapping(name: str, position: int, byte: int, read_first: bool, flush: bool) -> Do:
    """Write a byte through a shared mapping, the page of which was read before, or was not."""

    def do(tree: Tree) -> None:
        with tree.path(name).open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
            at = position % len(mapped)
            if read_first:
                _ = mapped[at]
            mapped[at] = byte
            if flush:
                mapped.flush()

    return do


def truncate(name: str, size: int) -> Do:
    return lambda tree: os.truncate(tree.root / name, size)


def rename(name: str, to: str) -> Do:
    return lambda tree: (tree.root / name).replace(tree.path(to))


def exchange(name: str, other: str) -> Do:
    def do(tree: Tree) -> None:
        aside = tree.root / "aside"
        (tree.root / name).rename(aside)
        (tree.root / other).rename(tree.root / name)
        aside.rename(tree.root / other)

    return do


def replaced_by_equal_size(name: str, byte: int) -> Do:
    """Write a new file of the same size, with the times of the old one, and rename it there."""

    def do(tree: Tree) -> None:
        path = tree.root / name
        was = path.stat()
        new = tree.root / "new"
        new.write_bytes(bytes([byte]) * was.st_size)
        os.utime(new, ns=(was.st_atime_ns, was.st_mtime_ns))
        new.replace(path)

    return do


def put_times_back(name: str) -> Do:
    return lambda tree: os.utime(tree.root / name, ns=(0, tree.times.get(name, 0)))


def link(name: str, to: str) -> Do:
    return lambda tree: tree.path(to).hardlink_to(tree.root / name)


def unlink(name: str) -> Do:
    return lambda tree: (tree.root / name).unlink()


def remove_directory(name: str) -> Do:
    return lambda tree: shutil.rmtree(tree.root / name)


def copy_within(name: str, to: str) -> Do:
    return lambda tree: shutil.copy2(tree.root / name, tree.path(to))


names = st.sampled_from(PATHS)
positions = st.integers(0, 12_000)
byte = st.integers(0, 255)
OPERATIONS = st.one_of(
    st.builds(rewrite, names, BYTES),
    st.builds(in_place, names, positions, byte),
    st.builds(through_mapping, names, positions, byte, st.booleans(), st.booleans()),
    st.builds(through_mapping, names, positions, byte, st.just(value=True), st.booleans()),
    st.builds(truncate, names, positions),
    st.builds(rename, names, names),
    st.builds(exchange, names, names),
    st.builds(replaced_by_equal_size, names, byte),
    st.builds(put_times_back, names),
    st.builds(link, names, names),
    st.builds(unlink, names),
    st.builds(remove_directory, st.sampled_from(["d", "d/e"])),
    st.builds(copy_within, names, names),
)


def entry(content: bytes) -> Entry:
    return Entry(len(content), f"sha256:{hashlib.sha256(content).hexdigest()}")


def check(place: Path, times_tell: bool, given_files: dict[str, bytes], work: list[Do]) -> None:
    """Download, age, work, and compare what the scan says with what the bytes say."""
    with tempfile.TemporaryDirectory(dir=place) as directory:
        tree = Tree(Path(directory), {})
        for name, content in given_files.items():
            tree.path(name).write_bytes(content)
        manifest = {name: entry(content) for name, content in given_files.items()}
        taken = baseline(tree.root, manifest)
        # As after a long download: stamps are old enough to be trusted, if they can be at all.
        before = replace(taken, taken_ns=taken.taken_ns + 10**9, times_tell=times_tell)
        tree.times.update({name: stamp[1] for name, stamp in before.stamps.items()})
        time.sleep(TICK_SECONDS)  # a change has another time
        for do in work:
            try:
                do(tree)
            except (OSError, ValueError, shutil.Error):
                continue  # No such file, or nothing to map: as a body that goes on.
        after = tree.contents()
        found = scan(tree.root, Selection(), "sha256", before)
        assert found == {name: entry(content) for name, content in after.items()}
        assert diff(manifest, found) == ChangeSet(
            added=tuple(sorted(after.keys() - given_files.keys())),
            changed=tuple(
                sorted(
                    name
                    for name in after.keys() & given_files.keys()
                    if after[name] != given_files[name]
                )
            ),
            removed=tuple(sorted(given_files.keys() - after.keys())),
        )


def compare(place: Path) -> None:
    times_tell = bool(stamps.tell(place))

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate, Phase.shrink],
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(
        st.dictionaries(names, BYTES, min_size=1, max_size=6),
        st.lists(OPERATIONS, min_size=1, max_size=8),
    )
    def examples(given_files: dict[str, bytes], work: list[Do]) -> None:
        check(place, times_tell, given_files, work)

    examples()


@pytest.fixture
def memory() -> Iterator[Path]:
    if not MEMORY.is_dir() or kind_of(MEMORY) != "tmpfs":
        pytest.skip("there is no tmpfs at /dev/shm")
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory:
        yield Path(directory)


def test_s2_the_diff_is_what_the_bytes_say_on_the_disk_of_this_machine(tmp_path: Path) -> None:
    compare(tmp_path)


def test_s2_the_diff_is_what_the_bytes_say_in_memory(memory: Path) -> None:
    compare(memory)


@pytest.mark.parametrize("kind", KINDS if ALL else KINDS[:1], ids="files/diff/{}".format)
def test_s2_the_diff_is_what_the_bytes_say_on(kind: str, tmp_path: Path) -> None:
    """A machine that cannot mount one says which, and why."""
    try:
        with mounted(kind, tmp_path) as place:
            compare(place)
    except CannotMount as why:
        pytest.skip(f"{kind}: {why}")


def test_s2_memory_does_not_note_the_time_of_a_mapped_write(memory: Path, tmp_path: Path) -> None:
    """What the probe is for: believing the times there loses the change."""
    tell = bool(stamps.tell(memory))
    if tell:
        pytest.skip("this kernel's tmpfs notes it")
    files, work = {"a": b"x" * 9_000}, [through_mapping("a", 5_000, 1, True, True)]
    check(memory, tell, files, work)
    with pytest.raises(AssertionError):
        check(memory, True, files, work)
    assert stamps.tell(tmp_path) is not tell or kind_of(tmp_path) == "tmpfs"
