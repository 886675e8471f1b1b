"""What this machine remembers of listings: within bounds, and private branches in memory only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from perago.protocol.values import ObjectInfo
from perago.stores.lakefs import manifests as module
from perago.stores.lakefs.manifests import Manifests

GIVEN = [ObjectInfo("ws/a", 1, "md5:a"), ObjectInfo("ws/b", 2, "md5:b")]


@pytest.fixture
def manifests(tmp_path: Path) -> Iterator[Manifests]:
    manifests = Manifests(tmp_path / "manifests.sqlite")
    manifests.remember("r", "base", "ws/", GIVEN)
    yield manifests
    manifests.close()


def staged(manifests: Manifests, branch: str = "branch", commit: str = "c") -> None:
    manifests.begin("r", branch, "base")
    manifests.extend("r", branch, [("ws/c", 3, "md5:c")], ["ws/a"])
    manifests.seal("r", branch, commit)


def keys(manifests: Manifests, ref: str) -> list[str] | None:
    found = manifests.listing("r", ref, "ws/")
    return None if found is None else [info.key for info in found]


def test_a_published_commit_follows_from_what_was_staged(manifests: Manifests) -> None:
    staged(manifests)
    assert keys(manifests, "c") is None  # Private: nobody else has to know.
    manifests.publish("r", "merged", "c")
    assert keys(manifests, "merged") == ["ws/b", "ws/c"]


def test_another_process_knows_what_was_published(manifests: Manifests, tmp_path: Path) -> None:
    staged(manifests)
    manifests.publish("r", "merged", "c")
    other = Manifests(tmp_path / "manifests.sqlite")
    assert keys(other, "merged") == ["ws/b", "ws/c"]
    other.close()


def test_a_branch_that_others_write_on_is_not_known(manifests: Manifests) -> None:
    manifests.begin("r", "branch", "base")
    manifests.forget("r", "branch")
    manifests.extend("r", "branch", [("ws/c", 3, "md5:c")], [])
    manifests.seal("r", "branch", "c")
    manifests.publish("r", "merged", "c")
    assert keys(manifests, "merged") is None


def test_branches_that_were_never_sealed_fall_out(
    manifests: Manifests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_MADE", 4)
    manifests.begin("r", "old", "base")
    for number in range(4):
        manifests.begin("r", f"branch-{number}", "base")
    manifests.seal("r", "old", "c-old")
    manifests.seal("r", "branch-3", "c-3")
    manifests.publish("r", "m-old", "c-old")
    manifests.publish("r", "m-3", "c-3")
    assert keys(manifests, "m-old") is None
    assert keys(manifests, "m-3") == ["ws/a", "ws/b"]


def test_the_file_stays_within_bounds(
    manifests: Manifests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 200_000)
    monkeypatch.setattr(module, "_LOOK_EVERY", 10)
    for number in range(3000):
        many = [ObjectInfo(f"ws/{number}/{each}", each, f"md5:{each}") for each in range(20)]
        manifests.remember("r", str(number), "ws/", many)
    assert (tmp_path / "manifests.sqlite").stat().st_size < 2_000_000
    assert keys(manifests, "2999") is not None
    assert keys(manifests, "base") is None


class Counted(str):
    """A key that counts how often it is compared."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return super().__eq__(other)

    def __hash__(self) -> int:
        return super().__hash__()


def test_many_new_and_removed_keys_are_not_compared_with_each_other(manifests: Manifests) -> None:
    """Counted, not timed: 16,000 new keys beside 16,000 removed ones took a quarter of a minute."""
    many = 2000
    puts = [(Counted(f"ws/new-{number}"), 1, "md5:x") for number in range(many)]
    deletes = [Counted(f"ws/old-{number}") for number in range(many)]
    manifests.begin("r", "branch", "base")
    Counted.compared = 0
    manifests.extend("r", "branch", puts, deletes)
    manifests.extend("r", "branch", puts, deletes)
    assert Counted.compared < 20 * many
    manifests.seal("r", "branch", "c")
    manifests.publish("r", "merged", "c")
    found = keys(manifests, "merged")
    assert found is not None
    assert len(found) == many + 2
