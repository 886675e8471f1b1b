"""Names, ids, the schema version, and connections that never cross a fork."""

from __future__ import annotations

import os
import re
import sqlite3
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from perago.errors import (
    AlreadyExistsError,
    NotFoundError,
    StoreError,
    StoreUnavailableError,
    UsageError,
)
from perago.ports import Publication
from perago.protocol.publication import Merge
from perago.stores.embedded import EmbeddedStore, commits
from perago.stores.embedded.catalogue import Catalogue
from perago.stores.embedded.commits import CommitNote
from tests.embedded.contents import check
from tests.patience import LIMIT


def test_a_new_repository_has_one_empty_commit_on_its_default_branch(store: EmbeddedStore) -> None:
    root = store.create_repository("fresh", branch="trunk")
    assert store.head("fresh", "trunk") == root
    assert root.parents == ()
    assert list(store.listing("fresh", "trunk", "")) == []
    assert store.repositories() == ("demo", "fresh")
    with pytest.raises(AlreadyExistsError):
        store.create_repository("fresh")


@pytest.mark.parametrize("name", ["ab", "-abc", "Abc", "a_b", "a" * 64, "", "../x"])
def test_bad_repository_names_are_refused(store: EmbeddedStore, name: str) -> None:
    with pytest.raises(UsageError, match="not a repository name"):
        store.create_repository(name)


@pytest.mark.parametrize("name", ["-x", "a/b", "a b", "", "ä", "a.b"])
def test_bad_branch_names_are_refused(store: EmbeddedStore, name: str) -> None:
    with pytest.raises(UsageError, match="not a branch name"):
        store.create_branch("demo", name, "main")


def test_hidden_branches_are_listed_only_on_request(store: EmbeddedStore) -> None:
    store.create_branch("demo", "side", "main")
    store.create_branch("demo", "perago-staging-1", "main", hidden=True)
    assert [branch.name for branch in store.branches("demo")] == ["main", "side"]
    everything = store.branches("demo", hidden=True)
    assert [branch.name for branch in everything if branch.hidden] == ["perago-staging-1"]


def test_the_default_branch_cannot_be_deleted(store: EmbeddedStore) -> None:
    with pytest.raises(UsageError, match="default branch"):
        store.delete_branch("demo", "main")
    store.create_branch("demo", "side", "main")
    store.delete_branch("demo", "side")
    with pytest.raises(NotFoundError):
        store.delete_branch("demo", "side")


def test_short_ids_must_be_unique_and_long_enough(store: EmbeddedStore, root: Path) -> None:
    head = store.head("demo", "main")
    assert store.commit("demo", head.id[:6]) == head
    with pytest.raises(NotFoundError, match="at least 6 characters"):
        store.commit("demo", head.id[:5])
    db = sqlite3.connect(root / "catalogue.sqlite")
    with db:
        db.execute(
            "INSERT INTO commits SELECT repository, ?, tree, parents, message, metadata, "
            "created_at, generation FROM commits WHERE id = ?",
            (head.id[:10] + "f" * 54, head.id),
        )
    db.close()
    with pytest.raises(NotFoundError, match="more than one commit"):
        store.commit("demo", head.id[:10])
    assert store.commit("demo", head.id[:60]) == head


def test_a_commit_id_hashes_everything_the_commit_says() -> None:
    note = CommitNote("m", {"k": "v"}, 1.0)
    base = commits.commit_id("demo", "t", ("p",), note)
    assert re.fullmatch(r"[0-9a-f]{64}", base)
    others = {
        commits.commit_id("other", "t", ("p",), note),
        commits.commit_id("demo", "u", ("p",), note),
        commits.commit_id("demo", "t", ("q",), note),
        commits.commit_id("demo", "t", ("p",), CommitNote("n", {"k": "v"}, 1.0)),
        commits.commit_id("demo", "t", ("p",), CommitNote("m", {"k": "w"}, 1.0)),
        commits.commit_id("demo", "t", ("p",), CommitNote("m", {"k": "v"}, 2.0)),
    }
    assert len(others | {base}) == 7
    assert commits.commit_id("demo", "t", ("p",), note) == base


def test_a_store_written_by_a_newer_perago_is_refused(store: EmbeddedStore, root: Path) -> None:
    store.close()
    db = sqlite3.connect(root / "catalogue.sqlite")
    with db:
        db.execute("UPDATE schema_version SET version = 99")
    db.close()
    with pytest.raises(StoreError, match="schema version 99, newer than the 1") as refused:
        EmbeddedStore(root)
    assert "upgrade" in refused.value.remedy
    assert "\n" not in str(refused.value)


def test_something_that_is_no_catalogue_is_refused(root: Path) -> None:
    root.mkdir()
    (root / "catalogue.sqlite").write_bytes(b"not a database, but long enough to look at" * 100)
    with pytest.raises(StoreUnavailableError, match="cannot be used"):
        EmbeddedStore(root)


def test_changes_that_change_nothing_are_no_commit_and_leave_no_trace(
    store: EmbeddedStore,
) -> None:
    """G1: nor may they leave the branch dirty, where P4 would refuse every publication."""
    head = store.head("demo", "main")
    store.put("demo", "main", "a", b"a0")
    store.remove("demo", "main", "never there")
    with pytest.raises(StoreError, match="nothing to commit"):
        store.commit_branch("demo", "main", "empty")
    assert store.head("demo", "main") == head
    assert not store.dirty("demo", "main")
    assert store.commit_branch("demo", "main", "on purpose", allow_empty=True).parent == head.id


def test_a_store_opened_again_shows_the_same(store: EmbeddedStore, root: Path) -> None:
    head = store.head("demo", "main")
    store.close()
    assert EmbeddedStore(root).head("demo", "main") == head
    assert store.head("demo", "main") == head


def test_many_may_open_a_new_store_at_once(tmp_path: Path) -> None:
    for turn in range(5):
        root = tmp_path / f"store-{turn}"
        start = threading.Barrier(8)

        def open_and_use(number: int, root: Path = root, start: threading.Barrier = start) -> str:
            start.wait(timeout=LIMIT)
            return EmbeddedStore(root).create_repository(f"repository-{number}").id

        with ThreadPoolExecutor(8) as pool:
            assert len(set(pool.map(open_and_use, range(8)))) == 8
        assert len(EmbeddedStore(root).repositories()) == 8


def test_a_writer_waits_only_as_long_as_its_timeout(store: EmbeddedStore, root: Path) -> None:
    head = store.head("demo", "main").id
    publication = Publication("demo", "main", Merge(head, head), "hard", "m", {}, 0.05)
    db = sqlite3.connect(root / "catalogue.sqlite", isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(StoreUnavailableError, match="locked"):
            store.apply(publication)
    finally:
        db.close()


def test_a_failed_transaction_leaves_nothing(store: EmbeddedStore, root: Path) -> None:
    catalogue = Catalogue(root / "catalogue.sqlite")

    def fail_in_the_middle() -> None:
        with catalogue.writing() as db:
            db.execute("DELETE FROM branches")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_in_the_middle()
    assert [branch.name for branch in store.branches("demo")] == ["main"]


def test_a_forked_child_opens_its_own_connection(store: EmbeddedStore, root: Path) -> None:
    head = store.head("demo", "main").id
    catalogue = Catalogue(root / "catalogue.sqlite")
    with catalogue.reading() as mine:
        pass
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads of the test runner
        child = os.fork()
    if child == 0:
        code = 1
        try:
            with catalogue.reading() as db:
                assert db is not mine
            store.put("demo", "main", "child", b"child")
            store.commit_branch("demo", "main", "by the child")
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert store.head("demo", "main").parent == head
    store.put("demo", "main", "parent", b"parent")
    store.commit_branch("demo", "main", "by the parent")
    check(store)
