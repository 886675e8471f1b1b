"""Which keys become files and which never do: D1, D2, S2, S3."""

from __future__ import annotations

import tempfile
import unicodedata
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perago.errors import UnpublishableFileError, UnsafePathError
from perago.protocol.paths import (
    ACTIONS,
    MARKER,
    Selection,
    check_beside,
    check_local,
    collisions,
    fold,
    normalise_prefix,
    plan_download,
    refuse_path,
    refuse_prefix,
)
from perago.protocol.printable import brief
from perago.protocol.values import Entry, ObjectInfo

NFC, NFD = "caf\u00e9", "cafe\u0301"
ROOT = Selection()


def objects(*keys: str, size: int = 1) -> list[ObjectInfo]:
    return [ObjectInfo(key, size, "md5:0") for key in keys]


# --- D1: what is mapped ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prefix", "key", "path"),
    [
        ("audio/render", "audio/render/raw/input.txt", "raw/input.txt"),
        ("", "raw/input.txt", "raw/input.txt"),
        ("ws", "ws/a", "a"),
        ("ws", "ws/ws/a", "ws/a"),
        ("", "deep/" * 100 + "a", "deep/" * 100 + "a"),
        ("", "name with blank\nand newline", "name with blank\nand newline"),
        ("", "n" * 255, "n" * 255),
        ("", "~", "~"),
        ("", "-rf", "-rf"),
        ("", "..a/a..", "..a/a.."),
        ("", f"{MARKER}.txt", f"{MARKER}.txt"),
        ("", f"{MARKER}/a", f"{MARKER}/a"),
        ("", f"x/{ACTIONS}/a.yaml", f"x/{ACTIONS}/a.yaml"),
        ("", f"{ACTIONS}2/a", f"{ACTIONS}2/a"),
        ("", "\u00e9\u4e2d\U0001f600", "\u00e9\u4e2d\U0001f600"),
    ],
)
def test_d1_the_prefix_is_stripped(prefix: str, key: str, path: str) -> None:
    assert plan_download(Selection(prefix), objects(key)) == {path: Entry(1, "md5:0")}


@pytest.mark.parametrize(
    ("prefix", "info"),
    [
        pytest.param("ws", ObjectInfo("ws2/a", 1, ""), id="a sibling that starts alike"),
        pytest.param("ws", ObjectInfo("ws", 1, ""), id="an object named as the prefix"),
        pytest.param("ws", ObjectInfo("other/a", 1, ""), id="another directory"),
        pytest.param("ws", ObjectInfo("../ws/a", 1, ""), id="hostile, but not ours"),
        pytest.param("", ObjectInfo("a/", 0, "", kind="common_prefix"), id="not an object"),
        pytest.param("", ObjectInfo("a", 1, "", kind="common_prefix"), id="not an object either"),
        pytest.param("", ObjectInfo("dir/", 0, ""), id="D2 directory marker"),
        pytest.param("ws", ObjectInfo("ws/", 0, ""), id="D2 directory marker of the prefix"),
        pytest.param("", ObjectInfo("a//", 0, ""), id="D2 directory marker of an empty name"),
        pytest.param("", ObjectInfo(MARKER, 1, ""), id="the marker"),
        pytest.param("ws", ObjectInfo(f"ws/x/{MARKER}", 1, ""), id="the marker, deeper"),
        pytest.param("", ObjectInfo(f"{ACTIONS}/a.yaml", 1, ""), id="a hook of the server"),
        pytest.param("", ObjectInfo(ACTIONS, 1, ""), id="the name of the hooks' directory"),
    ],
)
def test_d1_what_is_not_content_is_not_mapped(prefix: str, info: ObjectInfo) -> None:
    assert plan_download(
        Selection(prefix), [info, ObjectInfo(f"{prefix}/b".strip("/"), 1, "")]
    ) == {"b": Entry(1, "")}


def test_t6_include_and_exclude_narrow_the_workspace() -> None:
    selection = Selection("ws", include=("raw/**", "*.csv"), exclude=("**/*.tmp",))
    keys = objects("ws/raw/a", "ws/raw/b.tmp", "ws/t.csv", "ws/other/x", "ws/t.tmp")
    assert list(plan_download(selection, keys)) == ["raw/a", "t.csv"]


def test_the_plan_is_sorted_and_an_empty_listing_is_an_empty_plan() -> None:
    assert list(plan_download(ROOT, objects("b", "a/z", "a.b"))) == ["a.b", "a/z", "b"]
    assert plan_download(ROOT, []) == {}


# --- D2: what is refused ---------------------------------------------------------------------

HOSTILE = {
    "parent": "../x",
    "parent inside": "a/../b",
    "only parent": "..",
    "absolute": "/etc/passwd",
    "two slashes": "//etc/passwd",
    "NUL": "a\0b",
    "empty segment": "a//b",
    "trailing slash with content": "a/",
    "only a slash": "/",
    "dot": "./a",
    "dot inside": "a/./b",
    "dot at the end": "a/.",
    "backslash": "a\\..\\b",
    "drive": "C:\\x",
    "segment of 256 bytes": "n" * 256,
    "segment of 256 bytes in UTF-8": "\u00e9" * 128,
    "more than 1024 bytes": "d/" * 512 + "x",
    "replacement character": "bad-\ufffd",
    "undecodable byte": "bad-\udcff",
    "lone surrogate": "a/\ud800",
}


@pytest.mark.parametrize("key", [pytest.param(key, id=name) for name, key in HOSTILE.items()])
@pytest.mark.parametrize("prefix", ["", "ws"])
def test_d2_a_hostile_key_fails_the_whole_plan_and_is_named_escaped(prefix: str, key: str) -> None:
    full = f"{prefix}/{key}" if prefix else key
    with pytest.raises(UnsafePathError) as caught:
        plan_download(Selection(prefix), objects(f"{prefix}/a" if prefix else "a", full))
    assert brief(ascii(full)) in str(caught.value)
    assert len(str(caught.value)) < 400
    assert str(caught.value).isascii()
    assert str(caught.value).isprintable()
    assert caught.value.remedy


@pytest.mark.parametrize("path", ["/etc/passwd", "//etc", "/"])
def test_d2_an_absolute_path_is_called_absolute(path: str) -> None:
    assert refuse_path(path) == "is absolute"


TWINS = {
    "case": ("Data.csv", "data.csv"),
    "case of a directory on the way": ("A/x", "a/x"),
    "case of two directories with different files": ("A/x", "a/y"),
    "case of deeper directories": ("r/A/b/x", "r/a/c/y"),
    "Unicode form": (NFC, NFD),
    "Unicode form of two directories": (f"{NFC}/x", f"{NFD}/y"),
    "case and Unicode form": (NFC.upper(), NFD),
    "sharp s": ("stra\u00dfe", "STRASSE"),
    "dotted capital I": ("\u0130", "i\u0307"),
    "Kelvin sign": ("\u212a", "k"),
    "iota below, with an accent": ("\u1fbc\u0342", "\u1fb7"),
    "file beside directory": ("p", "p/q"),
    "file beside deeper directory": ("p", "p/q/r"),
    "file beside directory in another case": ("P", "p/q"),
    "file beside directory, names between": ("p", "p!", "p-", "p/q"),
}


@pytest.mark.parametrize("keys", [pytest.param(keys, id=name) for name, keys in TWINS.items()])
def test_d2_keys_that_some_file_system_takes_for_one_are_refused_everywhere(
    keys: tuple[str, ...],
) -> None:
    for order in (keys, keys[::-1]):
        with pytest.raises(UnsafePathError) as caught:
            plan_download(Selection("ws"), objects(*(f"ws/{key}" for key in order)))
        for key in (keys[0], keys[-1]):
            assert ascii(f"ws/{key}") in str(caught.value)
        with pytest.raises(UnpublishableFileError) as local:
            check_local(ROOT, order)
        for key in (keys[0], keys[-1]):
            assert ascii(key) in str(local.value)


@pytest.mark.parametrize(
    "paths",
    [
        ("a", "b", "a.b", "a-b"),
        ("a/x", "a/y", "b/x", "a/b/x"),
        ("p", "pq", "p.d/q"),
        ("A/x", "A/y", "A/B/z"),
    ],
    ids=str,
)
def test_d2_different_names_stay_different(paths: Sequence[str]) -> None:
    assert list(collisions(paths)) == []
    assert check_local(ROOT, paths) == tuple(sorted(paths))


@pytest.mark.parametrize("keys", [pytest.param(keys, id=name) for name, keys in TWINS.items()])
def test_d2_a_new_file_is_refused_beside_what_the_task_does_not_see(keys: tuple[str, ...]) -> None:
    first, *_, last = keys
    for new, kept in ((first, last), (last, first)):
        with pytest.raises(UnpublishableFileError) as caught:
            check_beside([new, "other"], [kept, "more/x"])
        assert ascii(new) in str(caught.value)
        assert ascii(kept) in str(caught.value)
    check_beside(["other"], keys)  # What was there before is not this attempt's doing.
    check_beside([], keys)


# --- prefixes --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prefix", "normal"), [("/", ""), ("a", "a"), ("/a", "a"), ("a/b/", "a/b"), ("/a/b/", "a/b")]
)
def test_d1_an_accepted_prefix_is_reduced(prefix: str, normal: str) -> None:
    assert refuse_prefix(prefix) is None
    assert normalise_prefix(prefix) == normal


@pytest.mark.parametrize(
    "prefix",
    [
        "",
        "a//b",
        "..",
        "a/../b",
        ".",
        "a/.",
        "a\\b",
        "a\0b",
        ACTIONS,
        f"/{ACTIONS}/",
        f"{ACTIONS}/x",
    ],
    ids=ascii,
)
def test_d1_a_bad_prefix_is_refused_with_a_remedy(prefix: str) -> None:
    problem = refuse_prefix(prefix)
    assert problem is not None
    assert ";" in problem or "choose" in problem


# --- S2, S3: the way back --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("selection", "path"),
    [
        pytest.param(ROOT, MARKER, id="marker"),
        pytest.param(ROOT, f"a/{MARKER}", id="marker, deeper"),
        pytest.param(Selection(exclude=("tmp/**",)), "tmp/x/y", id="excluded"),
        pytest.param(Selection(exclude=("**/*.tmp",)), "bad\udcff.tmp", id="excluded, hostile"),
        pytest.param(Selection(exclude=(f"{ACTIONS}/**",)), f"{ACTIONS}/a", id="excluded hooks"),
    ],
)
def test_s2_what_download_ignores_is_never_published(selection: Selection, path: str) -> None:
    assert check_local(selection, [path, "kept"]) == ("kept",)


@pytest.mark.parametrize(
    ("selection", "path", "why"),
    [
        pytest.param(ROOT, f"{ACTIONS}/a.yaml", "no task may write", id="S3 hooks"),
        pytest.param(ROOT, ACTIONS, "no task may write", id="S3 a file in the place of hooks"),
        pytest.param(Selection("p" * 100), "d/" * 463 + "x", "with its prefix", id="D2 long key"),
        pytest.param(Selection(include=("raw/**",)), "out", "include patterns", id="not included"),
        pytest.param(ROOT, "bad\udcff", "not valid UTF-8", id="undecodable"),
        pytest.param(ROOT, "a\\b", "backslash", id="backslash"),
        pytest.param(ROOT, "n" * 256, "255 bytes", id="over-long"),
    ],
)
def test_s3_what_could_not_be_read_back_is_refused(
    selection: Selection, path: str, why: str
) -> None:
    with pytest.raises(UnpublishableFileError, match=why) as caught:
        check_local(selection, [path])
    assert brief(ascii(path)) in str(caught.value)


def test_s3_hooks_below_a_prefix_are_ordinary_files() -> None:
    assert check_local(Selection("ws"), [f"{ACTIONS}/a.yaml"]) == (f"{ACTIONS}/a.yaml",)


# --- properties ------------------------------------------------------------------------------

PIECES = [
    *("a", "A", "b", "ab", "ws", NFC, NFD, NFC.upper(), "\u00df", "SS", "-", "~", " ", "\n"),
    *("..", ".", "", "\0", "\\", "\ufffd", "\udcff", "C:", "n" * 255, "n" * 256, MARKER, ACTIONS),
]
segments = st.one_of(
    st.sampled_from(PIECES),
    st.text(max_size=6),
    st.text(st.characters(categories=["Cs", "Mn", "Lu", "Ll"]), max_size=4),
)
keys = st.lists(segments, min_size=1, max_size=6).map("/".join)
safe_segments = st.text(
    st.characters(categories=["Lu", "Ll", "Lt", "Mn", "Nd", "So", "Zs", "Po"]),
    min_size=1,
    max_size=8,
)
selections = st.sampled_from(
    [ROOT, Selection("ws"), Selection("a/b"), Selection("", ("**/*",), ("b/**",))]
)


def accepted(selection: Selection, listed: Sequence[str]) -> list[str]:
    try:
        return list(plan_download(selection, objects(*listed)))
    except UnsafePathError as error:
        assert str(error).isascii()  # noqa: PT017 - the text of a refusal is checked too
        return []


@given(selection=selections, listed=st.lists(st.one_of(keys, keys.map("ws/".__add__)), max_size=8))
def test_d2_no_plan_escapes_is_absolute_or_collides(
    selection: Selection, listed: list[str]
) -> None:
    plan = accepted(selection, listed)
    names: dict[str, str] = {}
    for path in plan:
        pure = PurePosixPath(path)
        assert not pure.is_absolute()
        assert {"..", "."}.isdisjoint(path.split("/"))
        assert str(pure) == path
        assert selection.key(path) in listed
        assert all(len(part.encode()) <= 255 for part in pure.parts)
        for part in [pure, *pure.parents][:-1]:
            spelled = names.setdefault(fold(str(part)), str(part))
            assert spelled == str(part), "two spellings of one name"
    directories = {str(parent) for path in plan for parent in PurePosixPath(path).parents}
    assert directories.isdisjoint(plan)


@settings(deadline=None)
@given(st.lists(st.lists(safe_segments, min_size=1, max_size=4).map("/".join), max_size=8))
def test_d2_every_accepted_plan_can_be_written_and_read_back(listed: list[str]) -> None:
    plan = accepted(ROOT, listed)
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        for path in plan:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            with (root / path).open("x") as file:
                file.write(ascii(path))
        found = {str(p.relative_to(root)): p.read_text() for p in root.rglob("*") if p.is_file()}
    assert found == {path: ascii(path) for path in plan}
    assert check_local(ROOT, plan) == tuple(plan), "S2: what was downloaded can be published"


@given(st.text(max_size=12))
def test_fold_takes_canonical_and_case_variants_for_one(text: str) -> None:
    for variant in (unicodedata.normalize(form, text) for form in ("NFC", "NFD")):
        assert fold(variant) == fold(text)
    assert fold(fold(text)) == fold(text)


@given(keys)
def test_a_path_is_refused_for_the_same_reasons_up_and_down(path: str) -> None:
    """What ``refuse_path`` lets pass has only plain segments; nothing else decides."""
    if refuse_path(path) is None:
        assert "".join(path.split("/"))
        assert not path.startswith("/")
        path.encode()
