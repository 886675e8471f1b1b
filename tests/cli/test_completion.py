"""A shell completes runs, repositories and branches, and is never shown an error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from perago.app.local import Home
from perago.dev import LakeFSEndpoint
from tests.cli.conftest import Perago
from tests.lakefs_lab import new_name
from tests.patience import LIMIT, until


def completed(project: Path, line: str) -> list[str]:
    """Ask as bash does; the last word of the line is the one to complete."""
    words = line.split(" ")
    done = subprocess.run(
        [Path(sys.executable).parent / "perago"],
        cwd=project,
        env={
            "_PERAGO_COMPLETE": "complete_bash",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(words) - 1),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.fixture
def run_id(project: Path, perago: Perago) -> str:
    assert perago("init", ".").code == 0
    ran = perago("run", "workflow.json", "tasks", "--from", "data", "--json").json
    home = Home(project / ".perago", project / "rooms")
    home.store.create_branch("words", "work", ran["output"]["workspace"]["ref"])
    home.store.create_repository("wards", "other")
    home.close()
    return str(ran["run"])


def test_runs_repositories_and_branches_are_completed(project: Path, run_id: str) -> None:
    assert completed(project, "perago run --resume ") == [run_id]
    assert completed(project, f"perago run --resume {run_id[:3]}") == [run_id]
    assert completed(project, "perago run --resume zz") == []
    assert completed(project, "perago log wo") == ["words"]
    assert sorted(completed(project, "perago diff --repo w")) == ["wards", "words"]
    assert sorted(completed(project, "perago log --branch ")) == ["main", "other", "work"]
    assert completed(project, "perago log wards --branch ") == ["other"]
    assert sorted(completed(project, "perago log words --branch ")) == ["main", "work"]
    assert sorted(completed(project, "perago diff --repo words ")) == ["main", "work"]
    assert completed(project, "perago diff --repo wards ") == ["other"]
    assert sorted(completed(project, "perago checkout out ")) == ["main", "other", "work"]
    assert completed(project, f"perago inspect {run_id[:8]}") == [run_id]


def test_where_there_is_nothing_nothing_is_offered_or_made(project: Path) -> None:
    assert completed(project, "perago run --resume ") == []
    assert completed(project, "perago log ") == []
    assert completed(project, "perago log --branch ") == []
    (project / ".env").write_text("PERAGO_EXECUTION_MODE=fiber\n")
    assert completed(project, "perago log ") == []
    assert [path.name for path in project.iterdir()] == [".env"]
    (project / ".env").unlink()
    (project / ".perago").mkdir()
    (project / ".perago" / "runs.sqlite").write_text("no database")
    assert completed(project, "perago run --resume ") == []


def test_lakefs_is_asked_when_it_is_named(
    project: Path, perago: Perago, lakefs_server: LakeFSEndpoint
) -> None:
    (project / ".env").write_text(
        f"LAKECTL_SERVER_ENDPOINT_URL={lakefs_server.endpoint}\n"
        f"LAKECTL_CREDENTIALS_ACCESS_KEY_ID={lakefs_server.access_key_id}\n"
        f"LAKECTL_CREDENTIALS_SECRET_ACCESS_KEY={lakefs_server.secret}\n"
        f"PERAGO_CACHE_ROOT={project / 'cache'}\n"
    )
    name = new_name()
    for each in (name, new_name()):
        assert perago("repo", "init", each).code == 0
    head = "perago log --store lakefs"
    # A prompt does not wait for a slow server: ask until it was fast enough.
    assert until(lambda: completed(project, f"{head} {name[:-1]}") == [name], "a fast answer")
    assert until(
        lambda: completed(project, f"{head} {name} --branch ") == ["main"], "a fast answer"
    )
    (project / ".env").write_text("LAKECTL_SERVER_ENDPOINT_URL=http://127.0.0.1:1\n")
    assert completed(project, f"{head} ") == []
