"""Three-way merges from the merge base, and the head they expect."""

from __future__ import annotations

import pytest

from perago.errors import LostRaceError, MergeConflictError, PublishFenceError, StoreError
from perago.stores.embedded import EmbeddedStore
from tests.embedded.contents import tree


def change(store: EmbeddedStore, branch: str, key: str, content: bytes | None) -> str:
    if content is None:
        store.remove("demo", branch, key)
    else:
        store.put("demo", branch, key, content)
    return store.commit_branch("demo", branch, f"{branch}: {key}").id


@pytest.fixture
def forked(store: EmbeddedStore) -> EmbeddedStore:
    store.create_branch("demo", "side", "main")
    return store


def test_both_sides_changes_come_together(forked: EmbeddedStore) -> None:
    ours = change(forked, "main", "a", b"a1")
    theirs = change(forked, "side", "b", None)
    change(forked, "side", "c", b"c1")
    merged = forked.merge("demo", "side", "main", squash=False, message="m", metadata={"k": "v"})
    assert tree(forked, "demo", "main") == {"a": b"a1", "c": b"c1"}
    assert merged.parents == (ours, forked.head("demo", "side").id)
    assert merged.metadata == {"k": "v"}
    assert theirs != forked.head("demo", "main").id


def test_a_squash_has_one_parent(forked: EmbeddedStore) -> None:
    ours = change(forked, "main", "a", b"a1")
    change(forked, "side", "c", b"c1")
    assert forked.merge("demo", "side", "main", squash=True, message="m").parents == (ours,)


@pytest.mark.parametrize(
    ("mine", "yours"), [(b"x", b"y"), (None, b"y"), (b"x", None)], ids=["both", "gone", "kept"]
)
def test_a_path_changed_differently_on_both_sides_is_a_conflict(
    forked: EmbeddedStore, mine: bytes | None, yours: bytes | None
) -> None:
    head = change(forked, "main", "a", mine)
    change(forked, "side", "a", yours)
    with pytest.raises(MergeConflictError, match="'a'"):
        forked.merge("demo", "side", "main", squash=True, message="m")
    assert forked.head("demo", "main").id == head


def test_a_conflict_names_the_first_paths_and_counts_the_rest(forked: EmbeddedStore) -> None:
    for branch in ("main", "side"):
        for number in range(8):
            forked.put("demo", branch, f"n{number}", branch.encode())
        forked.commit_branch("demo", branch, "many")
    with pytest.raises(MergeConflictError, match=r"'n0', 'n1', 'n2', 'n3', 'n4' and 3 more"):
        forked.merge("demo", "side", "main", squash=True, message="m")


def test_the_same_change_on_both_sides_is_no_conflict(forked: EmbeddedStore) -> None:
    for branch in ("main", "side"):
        change(forked, branch, "a", b"same")
    change(forked, "side", "c", b"c1")
    forked.merge("demo", "side", "main", squash=True, message="m")
    assert tree(forked, "demo", "main") == {"a": b"same", "b": b"b0", "c": b"c1"}


def test_g1_an_empty_merge_is_refused(forked: EmbeddedStore) -> None:
    change(forked, "main", "a", b"same")
    change(forked, "side", "a", b"same")
    with pytest.raises(StoreError, match="changes nothing"):
        forked.merge("demo", "side", "main", squash=True, message="m")


def test_p4_a_dirty_target_is_refused(forked: EmbeddedStore) -> None:
    change(forked, "side", "c", b"c1")
    forked.put("demo", "main", "loose", b"x")
    with pytest.raises(PublishFenceError, match="uncommitted"):
        forked.merge("demo", "side", "main", squash=True, message="m")


def test_the_base_moves_forward_with_every_merge(forked: EmbeddedStore) -> None:
    """Were the fork still the base, the second merge would see 'a' changed on both sides."""
    change(forked, "side", "a", b"a1")
    forked.merge("demo", "side", "main", squash=False, message="first")
    change(forked, "main", "a", b"a2")
    change(forked, "side", "c", b"c1")
    forked.merge("demo", "side", "main", squash=False, message="second")
    assert tree(forked, "demo", "main") == {"a": b"a2", "b": b"b0", "c": b"c1"}


def test_a_best_common_ancestor_is_found_over_a_longer_way(forked: EmbeddedStore) -> None:
    """Main merged side long ago and went on; the nearest shared commit still counts."""
    change(forked, "side", "a", b"a1")
    forked.merge("demo", "side", "main", squash=False, message="early")
    for number in range(5):
        change(forked, "main", "m", b"%d" % number)
    change(forked, "side", "s", b"s1")
    forked.merge("demo", "main", "side", squash=False, message="back")
    assert tree(forked, "demo", "side") == {"a": b"a1", "b": b"b0", "m": b"4", "s": b"s1"}


def test_expected_head_is_compared_in_the_same_transaction(forked: EmbeddedStore) -> None:
    old = forked.head("demo", "main").id
    new = change(forked, "main", "a", b"a1")
    change(forked, "side", "c", b"c1")
    with pytest.raises(LostRaceError, match=f"at {new}, expected {old}"):
        forked.merge("demo", "side", "main", squash=True, expected_head=old, message="m")
    with pytest.raises(LostRaceError):
        forked.hard_reset("demo", "main", "side", expected_head=old)
    forked.merge("demo", "side", "main", squash=True, expected_head=new, message="m")


def test_hard_reset_moves_the_branch_and_drops_uncommitted_changes(forked: EmbeddedStore) -> None:
    old = forked.head("demo", "main").id
    change(forked, "main", "a", b"a1")
    forked.put("demo", "main", "loose", b"x")
    assert forked.hard_reset("demo", "main", old[:10]).id == old
    assert not forked.dirty("demo", "main")
    assert tree(forked, "demo", "main") == {"a": b"a0", "b": b"b0"}
