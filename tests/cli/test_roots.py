"""Where attempt directories are made, as a person configures it: V6, W2, S2, section 4."""

from __future__ import annotations

import json
import os
import tempfile
import textwrap
from pathlib import Path

import pytest

from perago.settings import load_settings
from tests.cli.conftest import Perago
from tests.filesystems import kind_of

WANDERER = textwrap.dedent(
    """
    import os
    from pathlib import Path
    from pydantic import BaseModel
    from perago import WorkspaceSpec, task

    class Nothing(BaseModel):
        pass

    @task(name="wander", owner_email="a@b.c", workspace=WorkspaceSpec(prefix="/"))
    def wander(workspace: Path, params: Nothing) -> Nothing:
        (workspace / "new.txt").write_text("new")
        os.chdir(workspace)
        return Nothing()

    @task(name="stay", owner_email="a@b.c", workspace=WorkspaceSpec(prefix="/"))
    def stay(workspace: Path, params: Nothing) -> Nothing:
        assert Path.cwd() == Path(__file__).parent, Path.cwd()
        (workspace / "more.txt").write_text("more")
        return Nothing()
    """
)


def step(name: str, reference: str, workspace: str) -> dict[str, object]:
    given = {"workspace": workspace, "params": {}}
    return {
        "name": name,
        "taskReferenceName": reference,
        "type": "SIMPLE",
        "inputParameters": given,
    }


WORKFLOW = {
    "name": "walk",
    "version": 1,
    "tasks": [
        step("wander", "one", "${workflow.input.workspace}"),
        step("stay", "two", "${one.output.workspace}"),
    ],
}


@pytest.mark.parametrize("mode", ["process", "thread"])
def test_section_4_a_body_that_changes_the_directory_does_not_spoil_the_next_task(
    project: Path, perago: Perago, mode: str
) -> None:
    """One executor runs both, and its root is given relative to where it was started."""
    (project / "walk.py").write_text(WANDERER)
    (project / "walk.json").write_text(json.dumps(WORKFLOW))
    (project / "given").mkdir()
    (project / "given" / "in.txt").write_text("in")
    answer = perago(
        *("run", "walk.json", "walk", "--from", "given", "-j", "1"),
        *("--execution-mode", mode),
        env={"PERAGO_WORKSPACE_ROOT": "roots"},
    )
    assert answer.code == 0, answer.out + answer.err
    left = [path.name for path in (project / "roots").rglob("*") if path.is_dir()]
    assert len(left) == 1, f"one part for the home, and nothing in it: {left}"


@pytest.mark.parametrize("name", ["PERAGO_WORKSPACE_ROOT", "PERAGO_LOG_ROOT", "PERAGO_CACHE_ROOT"])
def test_relative_roots_are_made_absolute_at_the_edge(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = load_settings({name: "here", "PERAGO_HOME": "home"}, Path())
    paths = (settings.workspace_root, settings.local_rooms, settings.log_root, settings.cache_root)
    assert all(path.is_absolute() for path in (settings.home, *paths))
    assert any(tmp_path / "here" in (path, path.parent) for path in paths)


def test_doctor_says_when_a_root_is_somebody_elses(project: Path, inside: Perago) -> None:
    (project / "root" / "photos").mkdir(parents=True)
    (project / "root" / "photos" / "a.jpg").touch()
    answer = inside("doctor", env={"PERAGO_WORKSPACE_ROOT": str(project / "root")})
    assert answer.code == 1
    assert "holds 'photos', which Perago did not make" in answer.out.replace("\n", " ")
    assert sorted(os.listdir(project / "root")) == ["photos"]  # noqa: PTH208 - names


def test_doctor_says_when_files_are_read_again(inside: Perago) -> None:
    memory = Path("/dev/shm")  # noqa: S108 - it is where memory is
    if not memory.is_dir() or kind_of(memory) != "tmpfs":
        pytest.skip("there is no tmpfs at /dev/shm")
    with tempfile.TemporaryDirectory(dir=memory) as root:
        answer = inside("doctor", "--json", env={"PERAGO_WORKSPACE_ROOT": root})
    assert answer.code == 0
    found = [one for one in answer.json["findings"] if one["what"].startswith("changes in")]
    assert [one["health"] for one in found] == ["doubtful"]
    assert "every file is read again" in found[0]["detail"]
