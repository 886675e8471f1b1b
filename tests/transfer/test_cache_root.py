"""The directory of the cache: only what is ours leaves it, and nothing is done outside it (V6)."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from perago.errors import RuntimeConfigError
from perago.filesystem import roots
from perago.protocol.values import Entry
from perago.transfer.cache import ContentCache
from perago.transfer.copying import entry_of
from perago.transfer.packs import PACKED_BYTES

BIG = PACKED_BYTES + 1
LONG_AGO = time.time() - 10 * 86400


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def canary(tmp_path: Path) -> Iterator[Path]:
    """Give a tree of somebody else, old enough to be the first that a trim would take."""
    place = tmp_path / "theirs"
    for name in ("a/b/data.bin", "ab/" + "ab" * 16, "f" * 16 + ".pack", "new-1-" + "0" * 32):
        write(place / name, b"precious")
    before = state(place)
    yield place
    assert state(place) == before


def write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (LONG_AGO, LONG_AGO))


def state(place: Path) -> dict[str, tuple[int, int, bytes]]:
    return {
        str(path.relative_to(place)): (found.st_mode, found.st_mtime_ns, path.read_bytes())
        for path in sorted(place.rglob("*"))
        if (found := path.lstat()) and stat.S_ISREG(found.st_mode)
    }


def filled(root: Path, count: int = 6, max_bytes: int = 1 << 30) -> ContentCache:
    """Make a cache with contents that stand alone."""
    cache = ContentCache(root, max_bytes)
    for number in range(count):
        text = bytes([number]) * BIG
        cache.put(entry_of(text, "md5"), text)
    cache.put(entry_of(b"small", "md5"), b"small")
    cache.settle()
    return cache


def test_a_directory_with_files_of_others_is_refused_with_the_fix(canary: Path) -> None:
    with pytest.raises(RuntimeConfigError, match="holds files that Perago did not make") as caught:
        ContentCache(canary, 1)
    assert "PERAGO_CACHE_ROOT" in str(caught.value)


@pytest.mark.parametrize(
    "name",
    ["notes.txt", "sub/dir/data.bin", "md5/ab/readme.txt", "sha256/ab/abcdef/data", "packs/x.pack"],
)
def test_one_file_of_others_is_enough(root: Path, name: str) -> None:
    write(root / name, b"precious")
    with pytest.raises(RuntimeConfigError, match="did not make"):
        ContentCache(root, 1)
    assert (root / name).read_bytes() == b"precious"


def test_a_cache_of_an_earlier_version_is_adopted(root: Path, tmp_path: Path) -> None:
    filled(root).close()
    (root / roots.MARK).unlink()
    (root / "manifests.sqlite").write_bytes(b"")
    (root / f"new-17-{'0' * 32}").write_bytes(b"half")
    cache = ContentCache(root, 1 << 30)
    assert roots.is_marked(root, roots.CACHE)
    with cache.reading([entry_of(b"small", "md5")]) as known:
        assert known.fetch(entry_of(b"small", "md5"), tmp_path / "out", lambda _: None)
    cache.close()


def test_a_trim_leaves_what_came_later_from_others(root: Path) -> None:
    cache = filled(root)
    theirs = [
        root / "md5" / "notes.txt",
        root / "md5" / "ab" / "notes.txt",
        root / "md5" / "ab" / ("cd" * 16),
        root / "photos" / "2024" / "me.jpg",
        root / "packs" / "mine.pack",
        root / "new-things",
        root / "new-old" / "x",
    ]
    for path in theirs:
        write(path, b"precious")
    ContentCache(root, 1).trim()
    assert [path for path in theirs if not path.exists()] == []
    assert list(root.glob("md5/*/" + "[0-9a-f]" * 32)) == [root / "md5" / "ab" / ("cd" * 16)]
    cache.close()


@pytest.mark.parametrize("what", ["md5", "md5/ab", "packs"])
def test_nothing_is_done_through_a_link(
    root: Path, canary: Path, tmp_path: Path, what: str
) -> None:
    """A body of this user may have put it there."""
    filled(root).close()
    place = root / what
    place.parent.mkdir(exist_ok=True)
    if place.exists():
        place.rename(tmp_path / "aside")
    place.symlink_to(canary, target_is_directory=True)
    cache = ContentCache(root, 1 << 30)
    digest = "ab" * 16
    for entry in (Entry(BIG, f"md5:{digest}"), Entry(8, f"md5:{digest}")):
        cache.put(entry, b"x" * entry.size)
        with cache.reading([entry]) as known:
            assert not known.fetch(entry, tmp_path / "out", lambda _: None)
    cache.settle()
    cache.close()
    ContentCache(root, 1).trim()
    assert place.is_symlink()


def test_a_root_that_lost_its_mark_and_is_not_ours_is_not_trimmed(root: Path) -> None:
    cache = filled(root, max_bytes=20 * BIG)
    for number in range(40):  # Far more than fits.
        write(root / "md5" / "00" / f"{number:032x}", bytes(BIG))
    (root / roots.MARK).unlink()
    write(root / "thesis.tex", b"precious")
    before = state(root)
    assert cache.trim() == 0
    assert set(before) <= set(state(root))
    cache.close()


def test_a_cache_that_was_removed_begins_again(root: Path, tmp_path: Path) -> None:
    cache = filled(root)
    root.rename(tmp_path / "gone")
    text = b"again" * BIG
    cache.put(entry_of(text, "md5"), text)
    with cache.reading([entry_of(text, "md5")]) as known:
        assert known.fetch(entry_of(text, "md5"), tmp_path / "out", lambda _: None)
    assert roots.is_marked(root, roots.CACHE)
    cache.close()


def test_everything_in_a_cache_is_for_its_owner_alone(root: Path) -> None:
    before = os.umask(0)
    try:
        filled(root).close()
        modes = {str(path): stat.S_IMODE(path.lstat().st_mode) for path in (root, *root.rglob("*"))}
    finally:
        os.umask(before)
    assert {path: oct(mode) for path, mode in modes.items() if mode & 0o077} == {}
