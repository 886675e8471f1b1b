"""Z4: what a file is, is told by its first bytes; what it says becomes lines."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perago.ui.contents import (
    Beside,
    hex_lines,
    image_type,
    kind_of,
    lines_of,
    side_by_side,
    table_suffix,
    text_of,
)

PNG = b"\x89PNG\r\n\x1a\n\0\0"


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0....", "image/jpeg"),
        (b"GIF87a..", "image/gif"),
        (b"GIF89a..", "image/gif"),
        (b"RIFF....WEBPVP8 ", "image/webp"),
        (b"RIFF....WAVE", None),
        (b"<svg xmlns='http://www.w3.org/2000/svg'>", None),
        (b"<!doctype html>", None),
        (b"<?xml version='1.0'?><svg/>", None),
        (b"BM......", None),
        (b"%PDF-1.7", None),
        (b"", None),
    ],
)
def test_only_four_kinds_of_images_are_images(head: bytes, kind: str | None) -> None:
    assert image_type(head) == kind


@pytest.mark.parametrize(
    ("key", "head", "kind"),
    [
        ("a.txt", b"words", "text"),
        ("a", b"", "text"),
        ("a.svg", b"<svg onload='alert(1)'/>", "text"),
        ("a.png", b"<svg onload='alert(1)'/>", "text"),
        ("a.html", b"<script>alert(1)</script>", "text"),
        ("a.txt", PNG, "image"),
        ("a.csv", PNG, "image"),
        ("a.csv", b"id\n1\n", "table"),
        ("A.PARQUET", b"PAR1", "table"),
        ("a.csv", b"", "text"),
        ("a.bin", b"\0\1\2", "hex"),
        ("a.txt", b"\xff\xfe", "hex"),
        ("a.zip", b"PK\3\4", "hex"),
    ],
)
def test_how_a_content_is_shown(key: str, head: bytes, kind: str) -> None:
    assert kind_of(key, head, whole=True) == kind


def test_a_character_that_was_cut_at_the_end_does_not_make_it_binary() -> None:
    content = "héllo €".encode()
    for cut in range(1, len(content)):
        found = text_of(content[:cut], whole=False)
        assert found is not None
        assert "héllo €".startswith(found)
    assert text_of(content[:-1], whole=True) is None


@settings(deadline=None)
@given(st.binary(max_size=300), st.booleans())
def test_any_bytes_are_a_text_or_none(content: bytes, whole: bool) -> None:
    found = text_of(content, whole=whole)
    assert found is None or content.decode("utf-8-sig", "ignore").startswith(found)
    assert len(hex_lines(content)) == -(-len(content) // 16)
    assert "".join(line[10:58].replace(" ", "") for line in hex_lines(content)) == content.hex()


def test_lines_are_parted_as_editors_do() -> None:
    assert lines_of("a\r\nb\n\n\tc") == ["a", "b", "", "        c"]
    assert lines_of("") == []
    assert lines_of("a\x0cb\u2028c") == ["a\x0cb\u2028c"]
    (long,) = lines_of("x" * 5000)
    assert len(long) == 1000
    assert long.endswith("…")


@pytest.mark.parametrize(
    ("key", "suffix"),
    [
        ("a.csv", ".csv"),
        ("a.CSV", ".csv"),
        ("a.csv.gz", ".csv.gz"),
        ("x/part-0.snappy.parquet", ".parquet"),
        ("a.csv/b", None),
        ("csv", None),
        ("a.json", None),
    ],
)
def test_tables_are_known_by_their_names(key: str, suffix: str | None) -> None:
    assert table_suffix(key) == suffix


def test_lines_that_changed_stand_beside_each_other() -> None:
    old = ["a", "b", "c", *"0123456789", "y"]
    new = ["a", "B", "c", *"0123456789", "y", "z"]
    assert list(side_by_side(old, new)) == [
        Beside("same", 1, "a", 1, "a"),
        Beside("replace", 2, "b", 2, "B"),
        Beside("same", 3, "c", 3, "c"),
        Beside("same", 4, "0", 4, "0"),
        Beside("same", 5, "1", 5, "1"),
        Beside("gap"),
        Beside("same", 12, "8", 12, "8"),
        Beside("same", 13, "9", 13, "9"),
        Beside("same", 14, "y", 14, "y"),
        Beside("insert", None, "", 15, "z"),
    ]
    assert list(side_by_side(old, old)) == []
    assert list(side_by_side([], ["a"])) == [Beside("insert", None, "", 1, "a")]
    assert list(side_by_side(["a"], [])) == [Beside("delete", 1, "a", None, "")]
