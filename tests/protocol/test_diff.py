"""What an attempt changed: S2, T7, G2."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perago.protocol.diff import diff
from perago.protocol.values import ChangeSet, Entry, Manifest

entries = st.builds(Entry, st.integers(0, 3), st.sampled_from(["md5:1", "md5:2"]))
unknown = st.builds(Entry, st.integers(0, 3), st.just(""))
manifests = st.dictionaries(st.sampled_from([*"abcdef", "a/b", "a/c"]), entries)


def apply(before: Manifest, steps: ChangeSet, after: Manifest) -> dict[str, Entry]:
    """Do to a manifest what staging does: delete, then upload."""
    kept = {path: entry for path, entry in before.items() if path not in steps.removed}
    return kept | {path: after[path] for path in steps.uploads}


@given(manifests, manifests)
def test_s2_applying_the_diff_gives_the_wanted_state(before: Manifest, after: Manifest) -> None:
    assert apply(before, diff(before, after), after) == after


@given(manifests, manifests)
def test_s2_a_diff_is_empty_exactly_when_nothing_differs(before: Manifest, after: Manifest) -> None:
    assert bool(diff(before, after)) is (before != after)


@given(manifests, manifests)
def test_s2_unchanged_files_are_not_uploaded_again(before: Manifest, after: Manifest) -> None:
    steps = diff(before, after)
    touched = set(steps.uploads) | set(steps.removed)
    assert touched.isdisjoint(path for path in before if before[path] == after.get(path))
    assert len(steps.uploads) == len(set(steps.uploads))


@given(manifests, manifests)
def test_s2_the_parts_are_disjoint_sorted_and_undone_by_the_way_back(
    before: Manifest, after: Manifest
) -> None:
    steps, back = diff(before, after), diff(after, before)
    parts = (*steps.added, *steps.changed, *steps.removed)
    assert len(parts) == len(set(parts))
    assert all(list(part) == sorted(part) for part in (steps.added, steps.changed, steps.removed))
    assert (steps.added, steps.changed, steps.removed) == (back.removed, back.changed, back.added)


@given(st.dictionaries(st.sampled_from("abc"), unknown, min_size=1))
def test_g2_an_unknown_checksum_never_counts_as_equal(manifest: Manifest) -> None:
    assert diff(manifest, manifest).changed == tuple(sorted(manifest))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, {}, ChangeSet()),
        ({}, {"a": Entry(0, "md5:0")}, ChangeSet(added=("a",))),
        ({"a": Entry(0, "md5:0")}, {}, ChangeSet(removed=("a",))),
        ({"a": Entry(1, "md5:1")}, {"a": Entry(1, "md5:2")}, ChangeSet(changed=("a",))),
        ({"a": Entry(1, "md5:1")}, {"a": Entry(1, "sha256:1")}, ChangeSet(changed=("a",))),
        ({"a": Entry(1, "md5:1")}, {"b": Entry(1, "md5:1")}, ChangeSet(("b",), (), ("a",))),
        (
            {"p": Entry(1, "md5:1")},
            {"p/q": Entry(1, "md5:1")},
            ChangeSet(added=("p/q",), removed=("p",)),
        ),
    ],
    ids=["nothing", "first file", "last file", "content", "another hash", "rename", "file to dir"],
)
def test_s2_changes_are_named(before: Manifest, after: Manifest, expected: ChangeSet) -> None:
    assert diff(before, after) == expected
