"""Names of Spark's part files, and when other names are no change: X13."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from perago.protocol.diff import diff
from perago.protocol.parts import (
    can_be_named,
    content_uuid,
    may_be_renamed,
    new_names,
    only_names_differ,
    part_of,
    tables_of,
)
from perago.protocol.values import ChangeSet, Entry, Manifest

U1, U2 = "01234567-89ab-4cde-8f01-23456789abcd", "fedcba98-7654-4321-8fed-cba987654321"
folders = st.sampled_from(["", "t/", "t/k=1/", "t/k=2/", "a=b/t/", "ü [x]/100%/"])
uuids = st.sampled_from([U1, U2, *(content_uuid(str(n)) for n in range(2))])
rests = st.sampled_from(["-c000.snappy.parquet", ".c001.csv.gz", "_00003.c000.orc", "-c000.json"])
names = st.builds("{}part-0000{}-{}{}".format, folders, st.integers(0, 1), uuids, rests)
others = st.sampled_from(["t/x", "t/_delta_log/0.json", "t/part-0.parquet"])
entries = st.builds(Entry, st.just(1), st.sampled_from(["md5:1", "md5:2", ""]))
manifests = st.dictionaries(names | others, entries, max_size=6)


@pytest.mark.parametrize(
    ("name", "rest"),
    [
        (f"part-00000-{U1}-c000.snappy.parquet", "-c000.snappy.parquet"),
        (f"part-123456-{U1}-c000.csv", "-c000.csv"),
        (f"part-00000-{U1}.c000.csv.gz", ".c000.csv.gz"),
        (f"part-00000-{U1}_00003.c012.zstd.orc", "_00003.c012.zstd.orc"),
        (f"part-00000-{U1}-c1000.txt", "-c1000.txt"),
        (f"part-00000-{U1}-c000.avro", "-c000.avro"),
    ],
)
def test_part_files_are_told_by_their_names(name: str, rest: str) -> None:
    for folder in ("", "t/", "a/b/k=1/", "new\nline/"):
        part = part_of(folder + name)
        assert part is not None
        assert (part.folder, part.uuid, part.rest) == (folder, U1, rest)
        assert part.path(U1) == folder + name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "part-00000.parquet",
        f"part-00000-{U1}.parquet",
        f"part-0-{U1}-c000.parquet",
        f"part-00000-{U1}-c000.jpg",
        f"part-00000-{U1}-c000",
        f"part-00000-{U1}-c000.parquet.a.b",
        f"part-00000-{U1.upper()}-c000.parquet",
        f"my-part-00000-{U1}-c000.parquet",
        f".part-00000-{U1}-c000.parquet.crc",
        f"part-00000-{U1}-c000.parquet/x",
        f"part-00000-{U1}-c000.parquet\n",
    ],
)
def test_no_other_file_is_a_part_file(name: str) -> None:
    assert part_of(name) is None
    assert part_of(f"t/{name}") is None


@given(st.text(), st.text(), st.integers(0, 5))
def test_a_uuid_of_a_content_is_one_and_not_one_of_sparks(
    digest: str, salt: str, turn: int
) -> None:
    made = content_uuid(digest, salt, turn)
    part = part_of(f"part-00000-{made}-c000.parquet")
    assert part is not None
    assert not part.is_random
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-.{12}", made)
    assert made == content_uuid(digest, salt, turn) != content_uuid(digest, salt, turn + 1)


@given(st.dictionaries(names, st.sampled_from("xyz")), st.sets(names), st.sampled_from(["", "s"]))
def test_no_two_files_get_one_name_and_no_name_is_taken_twice(
    digests: dict[str, str], taken: set[str], salt: str
) -> None:
    given_names = new_names(digests, taken, salt)
    new = list(given_names.values())
    assert len(set(new)) == len(new)
    assert set(new).isdisjoint({*taken, *digests})
    assert set(given_names) == {path for path in digests if part_of(path).is_random}  # type: ignore[union-attr]
    for old, name in given_names.items():
        assert part_of(old).slot == part_of(name).slot  # type: ignore[union-attr]
    assert new_names(dict.fromkeys(new, "x"), ()) == {}


@given(st.dictionaries(names, st.sampled_from("xyz")))
def test_names_follow_from_contents_alone(digests: dict[str, str]) -> None:
    """Other random UUIDs for the same contents in the same slots lead to the same names."""
    before = {path: digest for path, digest in digests.items() if part_of(path).is_random}  # type: ignore[union-attr]
    swapped = {
        path.replace(U1, "?").replace(U2, U1).replace("?", U2): digest
        for path, digest in before.items()
    }
    assert sorted(new_names(before, ()).values()) == sorted(new_names(swapped, ()).values())


@given(manifests, manifests)
def test_only_names_differ_means_what_it_says(before: Manifest, after: Manifest) -> None:
    """The oracle forgets the UUIDs of the names that changed and compares what is left."""
    steps = diff(before, after)
    found = only_names_differ(steps, before, after)

    def held(paths: tuple[str, ...], manifest: Manifest) -> Counter[object] | None:
        parts = [part_of(path) for path in paths]
        if None in parts or any(not manifest[path].checksum for path in paths):
            return None
        return Counter(
            (part.slot, manifest[path])
            for part, path in zip(parts, paths, strict=True)
            if part is not None
        )

    old, new = held(steps.removed, before), held(steps.added, after)
    assert found is (bool(steps) and not steps.changed and old is not None and old == new)
    assert not found or may_be_renamed(steps)


@given(st.dictionaries(names, entries.filter(lambda entry: bool(entry.checksum)), min_size=1))
def test_a_table_written_again_under_other_names_is_the_same(before: dict[str, Entry]) -> None:
    after = {
        part.path(content_uuid(path)): entry
        for path, entry in before.items()
        if (part := part_of(path))
    }
    assume(before.keys().isdisjoint(after))
    assert only_names_differ(diff(before, after), before, after)


ONE, TWO, UNKNOWN = Entry(1, "md5:1"), Entry(1, "md5:2"), Entry(1, "")
P1, P2 = (f"t/part-00000-{each}-c000.csv" for each in (U1, U2))


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ({P1: ONE}, {P2: ONE}, True),
        ({P1: ONE, "x": ONE}, {P2: ONE, "x": ONE}, True),
        ({P1: ONE}, {P2: TWO}, False),
        ({P1: ONE}, {P2.replace("00000", "00001"): ONE}, False),
        ({P1: ONE}, {P2.replace("c000", "c001"): ONE}, False),
        ({P1: ONE}, {P2.replace("csv", "json"): ONE}, False),
        ({P1: ONE}, {P2.replace("t/", "u/"): ONE}, False),
        ({P1.replace("t/", "t/k=1/"): ONE}, {P2.replace("t/", "t/k=2/"): ONE}, False),
        ({P1: ONE, "x": ONE}, {P2: ONE}, False),
        ({P1: ONE, "x": ONE}, {P2: ONE, "x": TWO}, False),
        ({P1: ONE}, {P2: ONE, "x": ONE}, False),
        ({P1: ONE}, {}, False),
        ({P1: ONE}, {P1: ONE, P2: ONE}, False),
        ({P1: UNKNOWN}, {P2: UNKNOWN}, False),
        ({"t/a.csv": ONE}, {"t/b.csv": ONE}, False),
        ({}, {}, False),
    ],
)
def test_what_is_and_what_is_not_a_change(before: Manifest, after: Manifest, same: bool) -> None:
    assert only_names_differ(diff(before, after), before, after) is same


@pytest.mark.parametrize(
    ("files", "free"),
    [
        ([], True),
        ([f"part-00000-{U1}-c000.csv", "k=1/x.csv", "_k=1/x", "x"], True),
        (["_SUCCESS", ".x.csv.crc", "_temporary/0/x"], True),
        (["_delta_log/0.json"], False),
        (["_metadata"], False),
        (["k=1/_committed_1"], False),
        ([".hoodie/x"], False),
    ],
)
def test_names_are_free_where_nothing_hidden_mentions_them(files: list[str], free: bool) -> None:
    assert can_be_named(files) is free


def test_tables_are_the_directories_of_part_files() -> None:
    name = f"part-00000-{U1}-c000.parquet"
    steps = ChangeSet(
        added=(f"a/t/k=1/l=2/{name}", f"b/{name}", "c.csv", name, "a/t/note.txt"),
        changed=("x/y",),
        removed=(f"a/t/k=0/{name}",),
    )
    assert list(tables_of(steps)) == ["", "a/t", "b"]
    found = tables_of(steps)["a/t"]
    assert found.added == (f"a/t/k=1/l=2/{name}", "a/t/note.txt")
    assert found.removed == (f"a/t/k=0/{name}",)


@pytest.mark.parametrize(
    "log",
    ["t/_delta_log/1.json", "t/metadata/v2.metadata.json", "t/_spark_metadata/3", "t/.hoodie/x"],
)
def test_a_table_with_a_log_is_not_its_files(log: str) -> None:
    parts = tuple(
        f"t/{place}part-00000-{U1}-c000.parquet" for place in ("", "k=1/", "a1/", "data/")
    )
    assert tables_of(ChangeSet(added=(*parts, log))) == {}
    assert set(tables_of(ChangeSet(added=(*parts, f"u/{log}")))) == {"t", "t/a1", "t/data"}
