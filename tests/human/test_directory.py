"""The marker of a taken directory names modules that are imported: only our own is believed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from perago.errors import UsageError
from perago.human.directory import MARKER, find_taken
from tests.human.project import Project, step
from tests.users import MALLORY, needs_root


@pytest.fixture
def taken(project: Project) -> Path:
    project.run(step("correct"))
    return project.take("correct", "fix").parent


@needs_root
def test_a_marker_of_another_user_is_not_believed(project: Project, taken: Path) -> None:
    """A neighbour puts one where others work below it, such as /tmp, with a module to import."""
    shared = project.directory / "shared"
    (shared / "work").mkdir(parents=True)
    module = project.directory / "evil.py"
    module.write_text("from pathlib import Path\nPath('ran').write_text('x')\n")
    marker = json.loads((taken / MARKER).read_text()) | {"modules": ["evil"]}
    (shared / MARKER).write_text(json.dumps(marker))
    os.chown(shared / MARKER, MALLORY, MALLORY)
    for command in ("diff", "check", "submit"):
        said = project.perago("human", command, at=shared / "work")
        assert (said.code, "is not yours" in said.err) == (2, True), said
    assert not (project.directory / "ran").exists()
    assert project.perago("human", "take", "correct", str(shared / "work/new")).code == 0


def test_a_link_is_not_followed_to_a_marker(tmp_path: Path, taken: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / MARKER).symlink_to(taken / MARKER)
    with pytest.raises(UsageError, match="not a marker"):
        find_taken(tmp_path / "other")
