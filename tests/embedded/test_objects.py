"""Files in and out: damage is found, hostile sources are refused, copies are private."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from perago.errors import (
    CorruptObjectError,
    NotFoundError,
    StoreUnavailableError,
    UnpublishableFileError,
    UsageError,
    WorkspaceError,
)
from perago.ports import Fetch, Put
from perago.protocol.values import Entry, Staging
from perago.stores.embedded import EmbeddedStore
from perago.transfer import copying
from tests.embedded.contents import check, tree
from tests.patience import LIMIT

BIG = 3 * copying.CHUNK + 17


def silent(_: int) -> None:
    pass


def stored(store: EmbeddedStore, content: bytes, key: str = "k") -> tuple[Fetch, Path]:
    """Commit content; returns how to fetch it and where its object is."""
    entry = store.put("demo", "main", key, content)
    store.commit_branch("demo", "main", "more")
    digest = entry.checksum.removeprefix("sha256:")
    return (
        Fetch(key, entry, store.root.parent / "room" / key),
        store.root / "objects" / digest[:2] / digest,
    )


def damage(path: Path, content: bytes) -> None:
    path.chmod(0o644)
    path.write_bytes(content)


@pytest.mark.parametrize("size", [10, BIG], ids=["small", "big"])
@pytest.mark.parametrize("kind", ["flipped", "truncated", "longer", "missing"])
def test_d3_a_damaged_object_is_found_and_named(store: EmbeddedStore, size: int, kind: str) -> None:
    content = b"x" * size
    fetch, place = stored(store, content)
    if kind == "missing":
        place.unlink()
    else:
        bad = {"flipped": b"y" + content[1:], "truncated": content[:-1], "longer": content + b"x"}
        damage(place, bad[kind])
    with pytest.raises(CorruptObjectError, match="'k'") as found:
        store.fetch("demo", "main", [fetch], silent)
    assert found.value.remedy
    assert not fetch.to.exists()


def test_a_damaged_object_is_healed_by_putting_its_content_again(
    store: EmbeddedStore, tmp_path: Path
) -> None:
    fetch, place = stored(store, b"precious")
    place.unlink()
    source = tmp_path / "good copy"
    source.write_bytes(b"precious")
    staging = Staging("demo", "staging")
    store.open_staging(staging, "main")
    store.write(staging, [Put("again", fetch.entry, source)], [], silent)
    store.fetch("demo", "main", [fetch], silent)
    assert fetch.to.read_bytes() == b"precious"
    check(store)


@pytest.mark.parametrize("way", ["reflink", "kernel_copy", "stream"])
def test_every_way_of_copying_gives_the_same_bytes(
    store: EmbeddedStore, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cannot(source: int, target: int) -> bool:
        return False

    if way != "reflink":
        monkeypatch.setattr(copying, "reflink", cannot)
    if way == "stream":
        monkeypatch.setattr(copying, "kernel_copy", cannot)
    content = os.urandom(BIG)
    fetch, _ = stored(store, content)
    moved: list[int] = []
    store.fetch("demo", "main", [fetch], moved.append)
    assert fetch.to.read_bytes() == content
    assert sum(moved) == BIG
    assert stat.S_IMODE(fetch.to.stat().st_mode) & 0o600 == 0o600
    assert fetch.to.stat().st_nlink == 1


def test_the_first_failure_stops_the_rest(store: EmbeddedStore) -> None:
    fetches = []
    for number in range(40):
        store.put("demo", "main", f"n/{number}", b"%d" % number)
    store.commit_branch("demo", "main", "many")
    for info in store.listing("demo", "main", "n/"):
        to = store.root.parent / "room" / info.key
        fetches.append(Fetch(info.key, Entry(info.size, info.checksum), to))
    fetches[0].to.parent.mkdir(parents=True)
    fetches[0].to.write_bytes(b"in the way")
    with pytest.raises(WorkspaceError, match="cannot be written"):
        store.fetch("demo", "main", fetches, silent)
    assert sum(each.to.exists() for each in fetches) < len(fetches)


def write(store: EmbeddedStore, *puts: Put) -> None:
    staging = Staging("demo", "staging")
    store.open_staging(staging, "main")
    store.write(staging, puts, [], silent)


@pytest.mark.parametrize("known", [False, True])
def test_s3_a_file_that_changes_under_the_reader_is_refused(
    store: EmbeddedStore, tmp_path: Path, known: bool
) -> None:
    """The same bytes with another time: what was read may be half of each."""
    content = b"z" * BIG
    if known:
        stored(store, content)
    source = tmp_path / "restless"
    source.write_bytes(content)
    staging = Staging("demo", "staging")
    store.open_staging(staging, "main")

    def disturb(_: int) -> None:
        os.utime(source, ns=(1, 1))

    put = Put("k", copying.entry_of(content), source)
    with pytest.raises(UnpublishableFileError, match="changed while it was read"):
        store.write(staging, [put], [], disturb)
    assert not store.dirty("demo", "staging")
    assert not list((store.root / "incoming").iterdir())


def test_s3_special_files_are_refused_without_waiting(store: EmbeddedStore, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(UnpublishableFileError, match="not a regular file"):
        write(store, Put("pipe", copying.entry_of(b""), pipe))


def test_known_content_is_not_stored_twice(store: EmbeddedStore, tmp_path: Path) -> None:
    _, place = stored(store, b"same")
    before = place.stat()
    source = tmp_path / "source"
    source.write_bytes(b"same")
    write(store, Put("copy", copying.entry_of(b"same"), source))
    assert place.stat().st_ino == before.st_ino
    assert tree(store, "demo", store.commit_branch("demo", "staging", "m").id)["copy"] == b"same"


def test_import_directory_takes_plain_files_by_relative_path(
    store: EmbeddedStore, tmp_path: Path
) -> None:
    seeds = tmp_path / "seeds"
    (seeds / "deep" / "er").mkdir(parents=True)
    (seeds / "empty").mkdir()
    (seeds / "deep" / "er" / "x").write_bytes(b"x")
    (seeds / "y").write_bytes(b"y")
    commit = store.import_directory("demo", "main", seeds, "seeded", {"by": "test"})
    assert tree(store, "demo", "main") == {"a": b"a0", "b": b"b0", "deep/er/x": b"x", "y": b"y"}
    assert (commit.message, commit.metadata) == ("seeded", {"by": "test"})
    (seeds / "link").symlink_to(seeds / "y")
    with pytest.raises(UnpublishableFileError, match="link"):
        store.import_directory("demo", "main", seeds, "again")
    with pytest.raises(UsageError, match="not a directory"):
        store.import_directory("demo", "main", seeds / "y", "file")
    assert store.head("demo", "main") == commit


def test_open_object_streams_one_object(store: EmbeddedStore) -> None:
    with store.open_object("demo", "main", "a") as opened:
        assert opened.read(1) == b"a"
    with pytest.raises(NotFoundError, match="'none'"):
        store.open_object("demo", "main", "none")


@pytest.mark.parametrize("key", ["", "x" * 1025, "bad\udcff"])
def test_keys_that_cannot_be_stored_are_refused(store: EmbeddedStore, key: str) -> None:
    with pytest.raises(UsageError, match="not an object key"):
        store.put("demo", "main", key, b"")


def test_an_unknown_branch_is_refused_before_the_bytes_travel(
    store: EmbeddedStore, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"x" * 1000)
    moved: list[int] = []
    put = Put("k", copying.entry_of(source.read_bytes()), source)
    with pytest.raises(NotFoundError):
        store.write(Staging("demo", "nowhere"), [put], [], moved.append)
    assert not moved


def test_many_threads_share_one_store(store: EmbeddedStore) -> None:
    """W3, thread mode: one store client, each thread its own connection."""
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            staging = Staging("demo", f"thread-{number}")
            store.open_staging(staging, "main")
            store.put("demo", staging.branch, f"t/{number}", b"%d" % number)
            sealed = store.seal(staging, "m", {})
            assert tree(store, "demo", sealed.commit)[f"t/{number}"] == b"%d" % number
        except BaseException as failure:  # noqa: BLE001 -- shown by the test
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=LIMIT)
    assert not failures
    check(store)


def test_a_root_that_cannot_be_a_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreUnavailableError, match="no store can be kept"):
        EmbeddedStore(tmp_path / "file" / "store")
