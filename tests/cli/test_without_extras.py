"""An installation without extras: every command that needs none works, the others say which."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.environment import clean_environment
from tests.patience import LIMIT

EXTRAS = (
    *("conductor", "httptools", "matplotlib", "obstore", "opentelemetry"),
    *("pandas", "psycopg", "pyarrow", "pyspark", "urllib3"),
)
BLOCKED = f"""
from importlib.machinery import PathFinder

find = PathFinder.find_spec

def absent(name, path=None, target=None):
    return None if name.partition(".")[0] in {EXTRAS!r} else find(name, path, target)

PathFinder.find_spec = absent
"""
WORKS = (
    "check tasks workflow.json",
    "extract tasks",
    "run workflow.json tasks --from data",
    "run tasks:top_words",
    "runs",
    "log",
    "inspect main",
    "diff",
    "checkout ../now",
    "report",
    "verify",
    "doctor",
    "gc",
    "graph workflow.json tasks",
    "new workflow tasks -o chain.json",
    "branch list",
)
REFUSED = (
    "run workflow.json tasks --store lakefs",
    "register tasks",
    "start tasks",
    "submit words",
    "log --store lakefs",
    "repo init words",
)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a project that has been run, as on a machine that has no extra."""
    place = tmp_path_factory.mktemp("bare")
    (place / "absent").mkdir()
    (place / "absent" / "sitecustomize.py").write_text(BLOCKED)
    assert perago(place, "init words").returncode == 0
    done = perago(place / "words", WORKS[2])
    assert done.returncode == 0, done.stdout
    return place / "words"


def perago(directory: Path, command: str) -> subprocess.CompletedProcess[str]:
    return python(directory, "-m", "perago", *command.split())


def python(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    absent = next(path for path in (directory, *directory.parents) if (path / "absent").is_dir())
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=directory,
        env=clean_environment() | {"PYTHONPATH": str(absent / "absent")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=LIMIT,
    )


@pytest.mark.parametrize("command", WORKS)
def test_a_command_that_needs_no_extra_works(project: Path, command: str) -> None:
    done = perago(project, command)
    assert "Traceback" not in done.stdout
    assert done.returncode == 0, done.stdout


def test_a_workflow_runs_from_python(project: Path) -> None:
    text = "import perago; r = perago.run('workflow.json', 'tasks'); print(r.completed, len(r.log))"
    done = python(project, "-c", text)
    assert "Traceback" not in done.stdout
    assert "True" in done.stdout


@pytest.mark.parametrize("command", REFUSED)
def test_a_command_that_needs_one_says_what_is_missing(project: Path, command: str) -> None:
    done = perago(project, command)
    assert "Traceback" not in done.stdout
    assert done.stdout.startswith("error: ")
    assert done.returncode not in {0, 70}, done.stdout
