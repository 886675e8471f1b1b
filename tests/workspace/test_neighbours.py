"""New files of a direct workspace can be downloaded beside what nobody listed (D2, S2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perago.errors import UnpublishableFileError
from perago.protocol.paths import collisions
from perago.protocol.values import ChangeSet
from perago.workspace.neighbours import MOST_DIRECTORIES, check_added


@dataclass
class Tree:
    """A, and what an attempt did to it; counts how often it was asked."""

    before: set[str]
    after: set[str]
    asked: list[str] = field(default_factory=list)

    def names(self, directory: str) -> Sequence[str]:
        self.asked.append(directory)
        base = f"{directory}/" if directory else ""
        below = [path[len(base) :] for path in self.before if path.startswith(base)]
        return sorted({"".join(path.partition("/")[:2]) for path in below})

    def before_(self, directory: str) -> Sequence[str]:
        base = f"{directory}/" if directory else ""
        return [path for path in self.before if path.startswith(base)]

    def paths(self, path: str) -> Sequence[str]:
        return [one for one in self.after if one == path or one.startswith(f"{path}/")]


class Place:
    """The tree, with the name that the port has."""

    def __init__(self, tree: Tree) -> None:
        self.names, self.before, self.paths = tree.names, tree.before_, tree.paths


def check(before: set[str], added: set[str], removed: set[str]) -> Tree:
    tree = Tree(before, (before | added) - removed)
    check_added(Place(tree), ChangeSet(tuple(sorted(added)), (), tuple(sorted(removed))))
    return tree


SEGMENT = st.sampled_from(["a", "A", "b", "ü", "u\u0308", "c"])


def apart(paths: set[str]) -> set[str]:
    """Leave out what could not be downloaded beside the others."""
    kept: set[str] = set()
    for path in sorted(paths):
        if not list(collisions({*kept, path})):
            kept.add(path)
    return kept


PATHS = st.sets(st.lists(SEGMENT, min_size=1, max_size=3).map("/".join), max_size=8).map(apart)


@given(before=PATHS, added=PATHS, choice=st.data())
def test_d2_a_new_file_is_refused_exactly_when_the_tree_could_not_be_downloaded(
    before: set[str], added: set[str], choice: st.DataObject
) -> None:
    added -= before
    removed = choice.draw(st.sets(st.sampled_from(sorted(before)))) if before else set()
    if list(collisions((before | added) - removed)):
        with pytest.raises(UnpublishableFileError):
            check(before, added, removed)
    else:
        check(before, added, removed)


def test_d2_many_partitions_are_listed_at_once() -> None:
    many = [f"t/k={number}" for number in range(MOST_DIRECTORIES + 1)]
    before = {f"{folder}/old.parquet" for folder in many}
    tree = check(before, {f"{folder}/new.parquet" for folder in many}, before)
    assert tree.asked == ["", "t"]
    with pytest.raises(UnpublishableFileError, match=r"OLD\.parquet"):
        check(before, {f"{folder}/OLD.parquet" for folder in many}, set())


def test_x2_only_directories_that_get_a_file_are_looked_into() -> None:
    before = {f"d{number}/x" for number in range(100)} | {"t/a"}
    assert check(before, {"t/b", "new/x/y/z"}, set()).asked == ["", "t"]
    assert check(before, set(), {"t/a"}).asked == []
