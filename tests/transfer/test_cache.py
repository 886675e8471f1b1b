"""The cache of contents: whole or not at all, whoever dies, damages or fills it."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from perago.protocol.values import Entry
from perago.transfer import packs
from perago.transfer.cache import ContentCache
from perago.transfer.copying import entry_of
from tests.patience import LIMIT
from tests.transfer.filler import content

SMALL, BIG = 4096, packs.PACKED_BYTES + 1
ROOMY = 1 << 30


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def cache(root: Path) -> Iterator[ContentCache]:
    cache = ContentCache(root, ROOMY)
    yield cache
    cache.close()


def md5(text: bytes) -> Entry:
    return entry_of(text, "md5")


def put(cache: ContentCache, *contents: bytes) -> None:
    for text in contents:
        cache.put(md5(text), text)
    cache.settle()


def got(cache: ContentCache, entry: Entry, to: Path) -> bytes | None:
    """Copy a content out; returns what is in the new file, None when there is none."""
    to.unlink(missing_ok=True)
    with cache.reading([entry]) as known:
        found = known.fetch(entry, to, lambda _: None)
    assert found == to.exists()
    return to.read_bytes() if found else None


def has(cache: ContentCache, text: bytes, to: Path) -> bool:
    found = got(cache, md5(text), to)
    assert found in {None, text}
    return found is not None


def packed(root: Path) -> list[Path]:
    return sorted(root.glob("packs/*.pack"))


@pytest.mark.parametrize("size", [0, 1, SMALL, BIG, 3 << 20])
def test_what_was_put_comes_out_in_a_file_of_its_own(
    cache: ContentCache, root: Path, tmp_path: Path, size: int
) -> None:
    text = os.urandom(size)
    put(cache, text)
    out = tmp_path / "out"
    assert got(cache, md5(text), out) == text
    out.write_bytes(b"written by the task")
    assert got(cache, md5(text), tmp_path / "again") == text
    files = [path for path in root.rglob("*") if path.is_file()]
    assert all(path.stat().st_nlink == 1 for path in files)


def test_many_small_contents_are_few_files(root: Path, cache: ContentCache) -> None:
    put(cache, *(content(number) for number in range(1000)))
    assert len(packed(root)) == 1
    assert not list(root.glob("md5/*/*"))


def test_a_content_that_is_known_is_not_written_again(cache: ContentCache, root: Path) -> None:
    put(cache, b"the same")
    size = packed(root)[0].stat().st_size
    put(cache, b"the same", b"the same")
    assert packed(root)[0].stat().st_size == size


@pytest.mark.parametrize("size", [SMALL, 5 << 20])
def test_a_kept_file_is_a_copy_its_owner_cannot_write_through(
    cache: ContentCache, tmp_path: Path, size: int
) -> None:
    text = os.urandom(size)
    source = tmp_path / "source"
    source.write_bytes(text)
    cache.keep(md5(text), source)
    cache.settle()
    with cache.reading([]):  # Waits for what is copied behind.
        assert source.stat().st_nlink == 1
    source.write_bytes(b"x" * size)
    assert has(cache, text, tmp_path / "out")


def test_a_file_that_is_written_while_it_is_copied_is_not_served(
    cache: ContentCache, tmp_path: Path
) -> None:
    text = os.urandom(5 << 20)
    source = tmp_path / "source"
    source.write_bytes(text)
    cache.keep(md5(text), source)
    with source.open("r+b") as opened:
        opened.write(b"changed")
    cache.settle()
    assert not has(cache, text, tmp_path / "out")


@pytest.mark.parametrize("damage", ["flip", "truncate", "remove", "link"])
def test_damage_is_found_forgotten_and_repaired(
    root: Path, tmp_path: Path, cache: ContentCache, damage: str
) -> None:
    first, second = os.urandom(SMALL), os.urandom(SMALL)
    put(cache, first, second)
    (pack,) = packed(root)
    match damage:
        case "flip":
            with pack.open("r+b") as opened:
                opened.seek(SMALL + 7)
                opened.write(b"!!")
        case "truncate":
            os.truncate(pack, SMALL + 10)
        case "remove":
            pack.unlink()
        case "link":
            pack.unlink()
            pack.symlink_to("/etc/passwd")
    assert not has(cache, second, tmp_path / "out")
    assert has(cache, first, tmp_path / "first") == (damage in {"flip", "truncate"})
    put(cache, second)
    assert has(cache, second, tmp_path / "out")


def test_an_index_that_is_no_database_begins_again(root: Path, tmp_path: Path) -> None:
    root.mkdir()
    (root / "packs.sqlite").write_bytes(b"no database at all" * 100)
    cache = ContentCache(root, ROOMY)
    put(cache, b"lost")
    put(cache, b"kept")
    assert has(cache, b"kept", tmp_path / "out")
    cache.close()


def test_rows_that_lie_are_not_believed(root: Path, tmp_path: Path, cache: ContentCache) -> None:
    put(cache, b"a" * 100, b"b" * 100)
    with sqlite3.connect(root / "packs.sqlite") as database:
        database.execute("UPDATE contents SET at = 100 - at")
    database.close()
    assert not has(cache, b"a" * 100, tmp_path / "a")
    assert not has(cache, b"b" * 100, tmp_path / "b")


# --- processes ------------------------------------------------------------------------------------


def filler(root: Path, first: int, count: int, settle: int) -> subprocess.Popen[str]:
    words = [str(root), str(first), str(count), str(settle)]
    command = [sys.executable, "-m", "tests.transfer.filler", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_processes_fill_one_cache_each_in_a_pack_of_its_own(
    root: Path, tmp_path: Path, cache: ContentCache
) -> None:
    running = [filler(root, number * 400, 400, 7) for number in range(3)]
    for process in running:
        process.communicate(timeout=LIMIT)
        assert process.returncode == 0
    assert 1 <= len(packed(root)) <= 3
    assert all(has(cache, content(number), tmp_path / "out") for number in range(1200))


@pytest.mark.parametrize("lines", [1, 3, 10])
def test_whoever_is_killed_leaves_what_it_said_and_nothing_wrong(
    root: Path, tmp_path: Path, cache: ContentCache, lines: int
) -> None:
    process = filler(root, 0, 100_000, 50)
    assert process.stdout is not None
    said = [int(process.stdout.readline()) for _ in range(lines)]
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=LIMIT)
    process.stdout.close()
    assert all(has(cache, content(number), tmp_path / "out") for number in range(said[-1] + 1))
    for number in range(said[-1], said[-1] + 2000):
        has(cache, content(number), tmp_path / "out")  # Right, or not there.
    again = filler(root, 200_000, 100, 10)  # Goes on in the pack that was left.
    again.communicate(timeout=LIMIT)
    assert len(packed(root)) == 1
    assert all(has(cache, content(number), tmp_path / "out") for number in range(200_000, 200_100))


def test_a_fork_takes_a_pack_of_its_own(root: Path, tmp_path: Path, cache: ContentCache) -> None:
    put(cache, b"parent")
    child = os.fork()
    if not child:
        put(cache, *(content(number) for number in range(100)))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    put(cache, *(content(number) for number in range(100, 200)))
    assert len(packed(root)) == 2
    assert all(has(cache, content(number), tmp_path / "out") for number in range(200))


# --- room -----------------------------------------------------------------------------------------


def age(root: Path, seconds: float) -> None:
    for path in [*packed(root), *root.glob("md5/*/*")]:
        found = path.stat()
        os.utime(path, (found.st_mtime - seconds, found.st_mtime - seconds))


@pytest.mark.parametrize("size", [100, BIG], ids=["packed", "alone"])
def test_the_least_recently_used_contents_leave_a_cache_that_is_too_big(
    root: Path, tmp_path: Path, size: int
) -> None:
    most = 10 * size
    cache = ContentCache(root, most)
    contents = [bytes([number]) * size for number in range(30)]
    for number, text in enumerate(contents):
        put(cache, text)
        age(root, 1000)
        assert has(cache, contents[0], tmp_path / "out"), number  # Used all the time.
        cache.settle()
    cache.trim()
    assert sum(path.stat().st_size for path in [*packed(root), *root.glob("md5/*/*")]) <= most
    assert has(cache, contents[0], tmp_path / "out")
    assert has(cache, contents[-1], tmp_path / "out")
    assert not has(cache, contents[1], tmp_path / "out")
    with sqlite3.connect(root / "packs.sqlite") as database:
        rows = database.execute("SELECT count(*) FROM contents").fetchone()[0]
    database.close()
    assert rows <= 10
    cache.close()


def test_a_pack_that_was_dropped_by_another_is_left(root: Path, tmp_path: Path) -> None:
    cache = ContentCache(root, ROOMY)
    put(cache, b"first")
    packed(root)[0].unlink()
    put(cache, b"second")
    assert has(cache, b"second", tmp_path / "out")
    assert not has(cache, b"first", tmp_path / "out")
    cache.close()


def test_drafts_of_the_dead_go(root: Path, cache: ContentCache) -> None:
    old, young = f"new-1-{'0' * 32}", f"new-1-{'1' * 32}"
    for name, hours in ((old, 2), (young, 0)):
        (root / name).write_bytes(b"half")
        os.utime(root / name, (time.time() - hours * 3600, time.time() - hours * 3600))
    cache.trim()
    assert [path.name for path in root.glob("new-*")] == [young]


def test_nothing_is_kept_where_nothing_may_be(tmp_path: Path) -> None:
    cache = ContentCache(tmp_path / "none", 0)
    put(cache, b"text")
    assert not has(cache, b"text", tmp_path / "out")
    cache.close()


@pytest.mark.parametrize("size", [SMALL, BIG], ids=["packed", "alone"])
def test_another_name_of_a_content_finds_it_and_is_verified(
    cache: ContentCache, root: Path, tmp_path: Path, size: int
) -> None:
    text = os.urandom(size)
    tagged = Entry(len(text), "md5:" + "0" * 32)
    put(cache, text)
    cache.also(tagged, md5(text).checksum)
    assert cache.content(tagged) == md5(text)
    assert got(cache, tagged, tmp_path / "out") == text
    (place,) = (*root.glob("md5/*/*"), *root.glob("packs/*"))
    place.chmod(0o600)
    place.write_bytes(os.urandom(size))
    assert got(cache, tagged, tmp_path / "out") is None
