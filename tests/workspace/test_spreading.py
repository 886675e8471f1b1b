"""Attempt directories that stay out of each other's way on disk."""

from __future__ import annotations

from pathlib import Path

from perago.workspace.spreading import spread


def test_a_spread_directory_works_like_any_other(tmp_path: Path) -> None:
    spread(tmp_path)
    assert spread(tmp_path) is spread(tmp_path)  # Twice is fine, whatever the file system.
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "file").write_text("content")
    assert (tmp_path / "room" / "file").read_text() == "content"


def test_what_cannot_be_spread_is_left_alone(tmp_path: Path) -> None:
    assert not spread(tmp_path / "nowhere")
    file = tmp_path / "file"
    file.touch()
    assert not spread(file)
    assert not spread(Path("/proc/self"))
