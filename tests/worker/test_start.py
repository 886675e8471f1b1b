"""What a worker refuses to begin with (W2), each in one sentence with its exit code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.worker.stage import Stage, eventually

NONE = dict.fromkeys(
    (
        "LAKECTL_SERVER_ENDPOINT_URL",
        "LAKECTL_CREDENTIALS_ACCESS_KEY_ID",
        "LAKECTL_CREDENTIALS_SECRET_ACCESS_KEY",
    ),
    "",
)


@pytest.mark.parametrize(
    ("module", "settings", "code", "words"),
    [
        ("deeds", NONE, 3, "lakeFS is not configured"),
        ("deeds", {"LAKECTL_SERVER_ENDPOINT_URL": ""}, 3, "LAKECTL_SERVER_ENDPOINT_URL is missing"),
        ("deeds", {"CONDUCTOR_SERVER_URL": ""}, 3, "Conductor is not configured"),
        ("deeds", {"CONDUCTOR_SERVER_URL": "http://127.0.0.1:9/api"}, 4, "no answer"),
        ("deeds", {}, 3, "Conductor does not know the tasks"),
        ("nowhere", {}, 2, "module 'nowhere' was not found"),
        ("broken", {}, 2, "broken.py line 1"),
        ("deeds", {"PERAGO_KILL_AT": "x"}, 3, "PERAGO_KILL_AT"),
        ("deeds", {"PERAGO_EXECUTION_MODE": "magic"}, 3, "PERAGO_EXECUTION_MODE"),
    ],
)
def test_a_worker_refuses_to_begin(
    stage: Stage, module: str, settings: dict[str, str], code: int, words: str
) -> None:
    (stage.directory / "broken.py").write_text("1 / 0\n")
    done = stage.perago("start", module, **settings)
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert done.stderr.count("\n") == 1, "one sentence"
    assert not (stage.root / ".perago-supervisor.json").exists()


def test_w2_the_remedy_for_an_unregistered_task_works(stage: Stage) -> None:
    refused = stage.perago("start", "deeds")
    assert "perago register deeds" in refused.stderr
    stage.register()
    worker = stage.start()
    assert worker.stop() == 0


def test_w2_a_root_has_one_worker(stage: Stage) -> None:
    stage.register()
    first = stage.start("-j", "1")
    refused = stage.perago("start", "deeds")
    assert refused.returncode == 2
    assert f"in use by another worker (pid {first.process.pid})" in refused.stderr
    second = stage.start("-j", "1", PERAGO_WORKSPACE_ROOT=str(stage.directory / "other"))
    workflow = stage.run()
    stage.completed(workflow)
    assert (first.stop(), second.stop()) == (0, 0)


@pytest.mark.parametrize("content", ["1\n", "999999999\n", ""])
def test_w2_a_lock_file_that_nobody_holds_keeps_nobody_out(stage: Stage, content: str) -> None:
    stage.register()
    stage.root.mkdir()
    (stage.root / ".perago-supervisor.lock").write_text(content)
    assert stage.start("-j", "1").stop() == 0


def test_v6_a_root_that_is_somebody_elses_is_refused_and_left_alone(stage: Stage) -> None:
    stage.register()
    theirs = stage.root / "jenkins-job" / "workspace" / "code.py"
    theirs.parent.mkdir(parents=True)
    theirs.touch()
    refused = stage.perago("start", "deeds", "-j", "1")
    assert refused.returncode == 2
    assert "holds 'jenkins-job', which Perago did not make" in refused.stderr
    assert "set PERAGO_WORKSPACE_ROOT to a directory of its own" in refused.stderr
    assert [path.name for path in stage.root.iterdir()] == ["jenkins-job"]
    assert theirs.exists()


def test_w5_a_start_sweeps_what_a_dead_worker_left(stage: Stage) -> None:
    stage.register()
    workspace = stage.workspace()
    worker = stage.start("-j", "1")
    stage.run("write", workspace=workspace, do="deaf", path=str(stage.directory / "a"))
    path = stage.directory / "a.begun"
    eventually(path.exists)
    worker.kill()
    assert len(stage.attempt_dirs()) == 1
    again = stage.start("-j", "1", ready=False)
    eventually(lambda: not stage.attempt_dirs())
    again.stop()


def test_w1_a_package_means_its_modules(stage: Stage) -> None:
    package = stage.directory / "pack"
    package.mkdir()
    for name in ("one", "two"):
        (package / f"{name}.py").write_text(MODULE.format(name=f"{name}_{stage.tag}"))
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text("raise SystemExit('not to be imported')\n")
    done = stage.perago("check", "pack", "--json")
    assert f"one_{stage.tag}" in done.stdout
    assert f"two_{stage.tag}" in done.stdout


MODULE = """
from pydantic import BaseModel
from perago import task
class P(BaseModel):
    pass
@task(name="{name}", owner_email="a@example.com")
def run(params: P) -> P:
    return params
"""


def test_an_executor_that_cannot_start_ends_the_worker_with_the_sentence(stage: Stage) -> None:
    (stage.directory / "only_here.py").write_text(
        "import os, multiprocessing\n"
        "if multiprocessing.parent_process() is not None:\n    os._exit(9)\n"
        + MODULE.format(name=f"only_{stage.tag}")
    )
    done = stage.perago("register", "only_here")
    assert done.returncode == 0, done.stderr
    started = stage.perago("start", "only_here", "-j", "1")
    assert started.returncode == 3
    assert "an executor ended 3 times before it was ready (exit code 9)" in started.stderr
    assert not Path(stage.root / "anything").exists()
