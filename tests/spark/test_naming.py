"""Part files are renamed by their content: only those, only new ones, and none is lost (X13)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perago.protocol.parts import part_of
from perago.spark.naming import files_below, rename_parts
from perago.spark.places import LocalPlace, SaveMode


def write(root: Path, contents: dict[str, str]) -> None:
    for name, text in contents.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def by_spark(folder: str = "", number: int = 0) -> str:
    return f"{folder}part-{number:05}-{uuid4()}-c000.snappy.parquet"


def read(root: Path) -> dict[str, str]:
    return {name: (root / name).read_text() for name in files_below(root, "")}


def test_the_same_contents_have_the_same_names(tmp_path: Path) -> None:
    for root in (tmp_path / "a", tmp_path / "b"):
        write(root, {by_spark("t/k=1/", 0): "x", by_spark("t/k=1/", 1): "x", by_spark("t/"): "y"})
        assert len(rename_parts(root, "t")) == 3
        assert rename_parts(root, "t") == []  # Once is enough.
    assert read(tmp_path / "a") == read(tmp_path / "b")


def test_what_is_not_new_or_not_of_this_table_keeps_its_name(tmp_path: Path) -> None:
    old, other = by_spark("t/"), by_spark("u/")
    write(tmp_path, {old: "x", other: "x", "t/notes.csv": "x", "t/part-1.parquet": "x"})
    before = files_below(tmp_path, "t")
    kept = read(tmp_path)
    write(tmp_path, {by_spark("t/"): "x", "t/new.csv": "x"})
    assert len(rename_parts(tmp_path, "t", before)) == 1
    found = read(tmp_path)
    assert kept.items() <= found.items()
    assert "t/new.csv" in found
    assert len(found) == len(kept) + 2


@pytest.mark.parametrize("hidden", ["_delta_log/0.json", "_metadata", ".hoodie/x", "k=1/_list"])
def test_a_table_with_hidden_files_keeps_all_names(tmp_path: Path, hidden: str) -> None:
    write(tmp_path, {by_spark("t/"): "x", f"t/{hidden}": "x"})
    before = read(tmp_path)
    assert rename_parts(tmp_path, "t") == []
    assert read(tmp_path) == before


@given(st.lists(st.sampled_from("xy"), min_size=1, max_size=6), st.sampled_from(["", "s"]))
def test_no_append_replaces_another(
    tmp_path_factory: pytest.TempPathFactory, contents: list[str], salt: str
) -> None:
    root = tmp_path_factory.mktemp("t")
    for content in contents:
        before = files_below(root, "")
        write(root, {by_spark(): content})
        rename_parts(root, "", before, salt)
    assert sorted(read(root).values()) == sorted(contents)


def test_appends_of_several_threads_are_all_kept(tmp_path: Path) -> None:
    place = LocalPlace(tmp_path, {})

    def append(_: int) -> None:
        place.save("t", SaveMode("append"), lambda *_: write(tmp_path, {by_spark("t/"): "same"}))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(append, range(40)))
    found = read(tmp_path)
    assert len(found) == 40
    assert not any(part.is_random for name in found if (part := part_of(name)))


@pytest.mark.parametrize("linked", ["t", "t/k=1", "a"])
def test_no_link_is_followed(tmp_path: Path, linked: str) -> None:
    outside, root = tmp_path / "outside", tmp_path / "root"
    write(outside, {by_spark(): "x", by_spark("t/"): "y"})
    before = read(outside)
    (root / linked).parent.mkdir(parents=True)
    (root / linked).symlink_to(outside, target_is_directory=True)
    assert rename_parts(root, "a/t" if linked == "a" else "t") == []
    assert read(outside) == before


def test_what_cannot_be_renamed_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {by_spark("t/"): "x"})
    before = read(tmp_path)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr("perago.spark.naming.os.rename", refuse)
    assert rename_parts(tmp_path, "t") == []
    assert rename_parts(tmp_path, "nothing") == []
    assert read(tmp_path) == before


def test_formats_with_a_log_keep_their_names(tmp_path: Path) -> None:
    place = LocalPlace(tmp_path, {})
    name = by_spark("t/")
    assert not place.save(
        "t", SaveMode("error", format="delta"), lambda *_: write(tmp_path, {name: ""})
    )
    assert set(read(tmp_path)) == {name}
    another = by_spark("u/")
    assert place.save("u", SaveMode("error"), lambda *_: write(tmp_path, {another: ""}))
