"""The example of all kinds of nodes: Python, a program, TypeScript, Spark and two people."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.songs.__main__ import HERE, MODULES, correct
from perago.dev import ConductorEndpoint, LakeFSEndpoint
from tests.environment import clean_environment
from tests.patience import LIMIT
from tests.typescript.project import Package
from tests.worker.stage import Stage, eventually

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Package:
    """Give the TypeScript package, built."""
    return Package.at(tmp_path_factory.mktemp("typescript"))


def test_the_example_with_one_command(package: Package, tmp_path: Path) -> None:
    """What ``make songs`` does, on the embedded store."""
    words = ["--scratch", str(tmp_path / "scratch"), "--package", str(package.packed())]
    done = subprocess.run(
        [sys.executable, "-m", "examples.songs", *words],
        cwd=ROOT,
        env=clean_environment() | {"PERAGO_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for line in ("corrected_by  ada", "words         29", "approved      True"):
        assert line in done.stdout
    assert "correct by ada" in done.stdout


@pytest.fixture
def stage(
    tmp_path: Path, conductor_server: ConductorEndpoint, lakefs_server: LakeFSEndpoint
) -> Iterator[Stage]:
    made = Stage(tmp_path, conductor_server, lakefs_server)
    yield made
    made.close()


def test_the_example_on_real_servers(package: Package, stage: Stage) -> None:
    """The same tasks and the same workflow, under Conductor and on lakeFS."""
    (stage.directory / "examples").symlink_to(ROOT / "examples")
    project = package.project(stage.directory / "typescript")
    manifest = project.declare(ROOT / HERE / "doubts.ts", "doubts")
    stage.settings |= {"PATH": os.pathsep.join((str(package.node.directory), os.environ["PATH"]))}
    module, *others = (*MODULES, str(manifest))
    done = stage.perago("register", module, *others, f"{HERE}/workflow.json")
    assert done.returncode == 0, done.stderr
    stage.start(*others, "-j", "1", module=module)
    workspace = stage.workspace()
    said = stage.perago("submit", "songs", "--repo", workspace["repository"], "--json")
    workflow = json.loads(said.stdout)["id"]

    task = _waiting(stage, workflow, "correct")
    people = ("--tasks", f"{HERE}/songs.toml")
    done = stage.perago("human", "take", task, "fix", *people, PERAGO_PERSON="ada")
    assert done.returncode == 0, done.stderr
    corrected = correct(stage.directory / "fix/workspace")
    words = ("human", "submit", "fix", "--result", f"corrected={corrected}")
    done = stage.perago(*words, PERAGO_PERSON="ada")
    assert done.returncode == 0, done.stderr
    task = _waiting(stage, workflow, "release")
    done = stage.perago("human", "approve", task, "--yes", *people, PERAGO_PERSON="ben")
    assert done.returncode == 0, done.stderr

    output = stage.completed(workflow)["output"]
    assert (output["doubts"], output["corrected_by"], output["words"]) == (4, "ada", 29)
    assert output["approved"] is True
    assert output["released"] == output["workspace"]["ref"] == stage.head(workspace)
    assert stage.read(workspace, "lyrics/harbour.txt").endswith(b"across the sea\n")


def _waiting(stage: Stage, workflow: str, step: str) -> str:
    def found() -> str:
        for task in stage.workflow(workflow)["tasks"]:
            assert task["status"] != "FAILED", task["reasonForIncompletion"]
            if (task["referenceTaskName"], task["status"]) == (step, "IN_PROGRESS"):
                return str(task["taskId"])
        return ""

    return str(eventually(found, f"{step} to wait"))
