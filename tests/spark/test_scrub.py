"""What Spark leaves beside data is removed in the attempt directory, and nowhere else (V6)."""

from __future__ import annotations

from pathlib import Path

import pytest

from perago.spark.places import LocalPlace

LEFT = ("_SUCCESS", "t/_SUCCESS", "t/_temporary/0/part", "a/b/c/_SUCCESS")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in (*LEFT, "t/part-0.parquet", "had/_SUCCESS"):
        write(tmp_path / "workspace" / name)
    return tmp_path / "workspace"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    for name in LEFT:
        write(tmp_path / "outside" / name)
    return tmp_path / "outside"


def write(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("" if path.name == "_SUCCESS" else "x")


def files(root: Path) -> list[str]:
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())


def test_leftovers_go_unless_the_input_had_them(root: Path) -> None:
    LocalPlace(root, {"had/_SUCCESS": None}).scrub()
    assert files(root) == ["had/_SUCCESS", "t/part-0.parquet"]


@pytest.mark.parametrize("name", ["", "t", "a/b", "new", "_temporary"])
def test_no_link_that_a_body_made_is_followed(root: Path, outside: Path, name: str) -> None:
    place = root / name
    if place.exists():
        place.rename(outside.parent / "aside")
    place.symlink_to(outside, target_is_directory=True)
    LocalPlace(root, {}).scrub()
    assert files(outside) == sorted(LEFT)


def test_a_deep_tree_is_no_trouble(root: Path) -> None:
    write(root / "/".join("d" * 300) / "_SUCCESS")
    LocalPlace(root, {}).scrub()
    assert "_SUCCESS" not in files(root)
