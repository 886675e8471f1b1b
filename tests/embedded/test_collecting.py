"""Garbage collection: what goes, what stays, and uploads that run beside it (P10)."""

from __future__ import annotations

import sqlite3
import threading
import time
from pathlib import Path

import pytest

from perago.errors import NotFoundError, StoreUnavailableError
from perago.ports import Put
from perago.protocol.values import Staging
from perago.stores.embedded import CollectionResult, EmbeddedStore, locks
from perago.stores.embedded import store as stores
from perago.transfer import copying
from tests.embedded.clock import Clock
from tests.embedded.contents import check, tree
from tests.patience import LIMIT

DAY = 86_400.0


def commit(store: EmbeddedStore, branch: str, key: str, content: bytes) -> str:
    store.put("demo", branch, key, content)
    return store.commit_branch("demo", branch, key).id


def files(root: Path) -> int:
    return sum(path.is_file() for path in (root / "objects").rglob("*"))


def test_nothing_reachable_is_ever_removed(store: EmbeddedStore, clock: Clock) -> None:
    commit(store, "main", "c", b"c")
    store.put("demo", "main", "loose", b"uncommitted")
    clock.pass_(365 * DAY)
    assert store.collect(0) == CollectionResult(0, 0, 0, 0, 0)
    store.commit_branch("demo", "main", "later")
    assert tree(store, "demo", "main")["loose"] == b"uncommitted"
    check(store)


def test_p10_a_replaced_commit_stays_for_the_retention(
    store: EmbeddedStore, clock: Clock, root: Path
) -> None:
    old = store.head("demo", "main").id
    replaced = commit(store, "main", "big", b"x" * 1000)
    store.hard_reset("demo", "main", old)
    assert store.collect(DAY).commits == 0
    assert tree(store, "demo", replaced)["big"] == b"x" * 1000
    clock.pass_(2 * DAY)
    assert store.collect(DAY, dry_run=True) == CollectionResult(1, 1, 1, 0, 1000)
    assert files(root) == 3
    assert store.collect(DAY) == CollectionResult(1, 1, 1, 0, 1000)
    assert files(root) == 2
    with pytest.raises(NotFoundError):
        store.commit("demo", replaced)
    assert store.collect(DAY) == CollectionResult(0, 0, 0, 0, 0)
    check(store)


@pytest.mark.parametrize("how", ["reset", "delete"])
def test_p10_the_retention_counts_from_the_departure(
    store: EmbeddedStore, clock: Clock, how: str
) -> None:
    """A head that stood for a month and was replaced a minute ago is not old garbage."""
    old = store.head("demo", "main").id
    standing = commit(store, "main", "c", b"c")
    clock.pass_(30 * DAY)
    if how == "reset":
        store.hard_reset("demo", "main", old)
    else:
        store.create_branch("demo", "short", standing)
        store.hard_reset("demo", "main", old)
        clock.pass_(30 * DAY)
        store.delete_branch("demo", "short")
    store.collect(DAY)
    assert store.commit("demo", standing).id == standing
    clock.pass_(2 * DAY)
    assert store.collect(DAY).commits == 1


def test_a_dropped_upload_goes_with_its_branch(store: EmbeddedStore, clock: Clock) -> None:
    store.create_branch("demo", "side", "main", hidden=True)
    store.put("demo", "side", "k", b"dropped")
    assert store.collect(0).objects == 0
    store.delete_branch("demo", "side")
    assert store.collect(0).objects == 1


def test_files_of_dead_processes_are_removed(store: EmbeddedStore, root: Path) -> None:
    (root / "incoming" / f"4711-{'0' * 32}").write_bytes(b"half")
    orphan = root / "objects" / "ab" / ("ab" * 32)
    orphan.parent.mkdir(exist_ok=True)
    orphan.write_bytes(b"no row")
    assert store.collect(DAY) == CollectionResult(0, 0, 1, 1, len(b"half") + len(b"no row"))
    assert not orphan.exists()


def test_files_of_others_stay_and_no_link_is_followed(
    store: EmbeddedStore, root: Path, tmp_path: Path
) -> None:
    theirs = [root / "incoming" / "notes.txt", root / "objects" / "ab" / "notes.txt"]
    outside = tmp_path / "outside"
    theirs += [outside / ("cd" * 32), root / "objects" / "photos" / ("ph" * 32)]
    for path in theirs:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("precious")
    (root / "objects" / "cd").symlink_to(outside)
    assert store.collect(0).objects == 0
    assert [path for path in theirs if not path.exists()] == []


def test_a_file_without_a_row_is_not_trusted(
    store: EmbeddedStore, root: Path, tmp_path: Path
) -> None:
    """A power cut may leave a named file whose blocks never reached the disk."""
    content = b"whole content"
    entry = copying.entry_of(content)
    digest = entry.checksum.removeprefix("sha256:")
    broken = root / "objects" / digest[:2] / digest
    broken.parent.mkdir(exist_ok=True)
    broken.write_bytes(bytes(len(content)))
    source = tmp_path / "source"
    source.write_bytes(content)
    staging = Staging("demo", "staging")
    store.open_staging(staging, "main")
    store.write(staging, [Put("k", entry, source)], [], lambda _: None)
    assert broken.read_bytes() == content
    check(store)


def test_v4_what_was_collected_is_stored_again_when_it_comes_back(
    store: EmbeddedStore, clock: Clock, root: Path
) -> None:
    old = store.head("demo", "main").id
    commit(store, "main", "c", b"comes back")
    store.hard_reset("demo", "main", old)
    clock.pass_(2 * DAY)
    assert store.collect(DAY).objects == 1
    with sqlite3.connect(root / "catalogue.sqlite") as db:  # A row without a file is a promise.
        recorded = db.execute("SELECT count(*) FROM objects").fetchone()[0]
    db.close()
    assert recorded == files(root)
    commit(store, "main", "c", b"comes back")
    assert tree(store, "demo", "main")["c"] == b"comes back"
    check(store)


def test_uploads_and_collections_at_the_same_time(store: EmbeddedStore, tmp_path: Path) -> None:
    """Every round needs content that the last round's collection wants to remove."""
    source = tmp_path / "source"
    source.write_bytes(b"wanted again and again")
    put = Put("k", copying.entry_of(source.read_bytes()), source)
    over = threading.Event()
    failures: list[BaseException] = []

    def collect_always() -> None:
        own = EmbeddedStore(store.root)
        try:
            while not over.is_set():
                own.collect(0)
                time.sleep(0.001)  # lets the uploads have their turn
        except BaseException as failure:  # noqa: BLE001 -- shown by the test
            failures.append(failure)
        finally:
            own.close()

    collector = threading.Thread(target=collect_always)
    collector.start()
    try:
        for number in range(60):
            staging = Staging("demo", f"staging-{number}")
            store.open_staging(staging, "main")
            store.write(staging, [put], [], lambda _: None)
            sealed = store.seal(staging, "m", {})
            assert tree(store, "demo", sealed.commit)["k"] == b"wanted again and again"
            store.drop(staging)
    finally:
        over.set()
        collector.join(timeout=LIMIT)
    assert not failures
    check(store)


def test_a_collection_waits_for_uploads_only_so_long(
    store: EmbeddedStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "SWEEP_WAIT_SECONDS", 0.05)
    with (
        locks.held(root / "uploads.lock", exclusive=False, timeout_seconds=1),
        pytest.raises(StoreUnavailableError, match="uploads are still under way"),
    ):
        store.collect(0)
