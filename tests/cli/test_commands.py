"""The commands a newcomer types, on a project made by ``perago init``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Answer, Perago

RUN = ("run", "workflow.json", "tasks", "--from", "data")


@pytest.fixture
def words(project: Path, perago: Perago) -> Answer:
    """Make a project and run its workflow once."""
    assert perago("init", ".").code == 0
    return perago(*RUN, "--json")


def test_init_run_log_inspect_diff_checkout_gc(
    project: Path, perago: Perago, words: Answer
) -> None:
    assert words.code == 0, words
    run = words.json
    assert run["status"] == "COMPLETED"
    assert run["output"]["words"][0] == "boats"

    log = perago("log", "--json").json
    newest = log["publications"][0]
    assert newest["changes"]["added"] == ["counts.csv"]
    assert newest["metadata"]["perago.task"] == "count_words"

    found = perago("inspect", newest["commit"][:8], "--json").json
    assert found["commit"]["added"] == ["counts.csv"]
    assert [phase["name"] for phase in found["executions"][0]["phases"]][:3] == [
        "input",
        "attempt directory",
        "download",
    ]
    told = perago("inspect", run["run"][:8])
    assert "count_words" in told.out
    assert "require_file('counts.csv')" in told.out

    diff = perago("diff", newest["parents"][0], newest["commit"], "--json").json
    assert diff["added"] == ["counts.csv"]

    assert perago("checkout", "out").code == 0
    assert (project / "out" / "counts.csv").read_text().startswith("word,count\n")

    collected = perago("gc", "--json").json
    assert collected["directories"] == []
    assert collected["branches"] == []

    assert [item["status"] for item in perago("runs", "--json").json] == ["COMPLETED"]


def test_the_same_files_twice_are_no_change(perago: Perago, words: Answer) -> None:
    again = perago(*RUN)
    assert again.code == 0, again
    assert "nothing to publish" in again.out


def test_a_single_task_works_on_the_only_repository(perago: Perago, words: Answer) -> None:
    answer = perago("run", "tasks:top_words", "--params", '{"top": 1}', "--json")
    assert answer.json["output"]["result"] == {"words": ["boats"]}


def test_a_single_task_may_have_any_name(project: Path, perago: Perago) -> None:
    assert perago("init", ".").code == 0
    tasks = project / "tasks.py"
    tasks.write_text(tasks.read_text().replace('"count_words"', '"count [all] v1.5"'))
    answer = perago("run", "tasks:count_words", "--from", "data", "--json")
    assert answer.code == 0, answer
    assert answer.json["output"]["result"]["files"] == 2


def test_a_failed_run_exits_1_and_goes_on_after_mending(
    project: Path, perago: Perago, words: Answer
) -> None:
    tasks = project / "tasks.py"
    good = tasks.read_text()
    tasks.write_text(good.replace("return Counted", "raise ValueError('oops')\n    return Counted"))
    workflow = json.loads((project / "workflow.json").read_text())
    for task in workflow["tasks"]:
        task["retryCount"] = 0
    (project / "workflow.json").write_text(json.dumps(workflow))
    failed = perago("run", "workflow.json", "tasks", "--json")
    assert failed.code == 1
    assert "ValueError: oops" in failed.json["reason"]
    tasks.write_text(good)
    resumed = perago("run", "--resume", failed.json["run"], "--json")
    assert resumed.code == 0, resumed
    assert resumed.json["status"] == "COMPLETED"


def test_a_tasks_own_output_is_shown_with_its_step(project: Path, perago: Perago) -> None:
    assert perago("init", ".").code == 0
    tasks = project / "tasks.py"
    tasks.write_text(tasks.read_text().replace("    texts =", "    print('hello')\n    texts =", 1))
    answer = perago(*RUN)
    assert "count | hello" in answer.out


def test_thread_mode_runs_in_one_process(perago: Perago, words: Answer) -> None:
    answer = perago("run", "workflow.json", "tasks", "--execution-mode", "thread", "--json")
    assert answer.code == 0, answer
    assert answer.json["status"] == "COMPLETED"


def test_extract_writes_one_object_or_a_list(project: Path, perago: Perago) -> None:
    assert perago("init", ".").code == 0
    assert perago("extract", "tasks", "-o", "defs.json").code == 0
    definitions = json.loads((project / "defs.json").read_text())
    assert [found["name"] for found in definitions] == ["count_words", "top_words"]
    one = perago("extract", "tasks:top_words").json
    assert one["inputKeys"] == ["workspace", "params"]
    assert one["inputSchema"]["data"]["properties"]["params"]["properties"]["top"]["minimum"] == 1


def test_check_shows_configuration_without_secrets(project: Path, perago: Perago) -> None:
    assert perago("init", ".").code == 0
    (project / ".env").write_text(
        "export LAKECTL_SERVER_ENDPOINT_URL='http://localhost:8000'\n"
        'LAKECTL_CREDENTIALS_ACCESS_KEY_ID="key"\n'
        "LAKECTL_CREDENTIALS_SECRET_ACCESS_KEY=canary\n"
    )
    answer = perago("check", "tasks")
    assert "http://localhost:8000" in answer.out
    assert "canary" not in answer.out + answer.err


def test_help_and_version(inside: Perago) -> None:
    assert inside("--version").out == "perago 0.7.0\n"
    for command in ("", "run", "log", "inspect", "diff", "checkout", "gc", "init", "runs"):
        assert "Usage" in inside(*filter(None, [command]), "--help").out


def test_w9a_writers_that_do_not_read_each_other_are_refused_before_anything_starts(
    project: Path, perago: Perago
) -> None:
    assert perago("init", ".").code == 0
    tasks = project / "tasks.py"
    tasks.write_text(tasks.read_text().replace("read_only=True, ", ""))
    workflow = json.loads((project / "workflow.json").read_text())
    assert perago("check", "tasks", "workflow.json").code == 0
    for task in workflow["tasks"]:
        task["name"] = "count_words"
        task["inputParameters"]["workspace"] = "${workflow.input.workspace}"
    workflow["tasks"][1]["inputParameters"]["params"] = {}
    workflow["outputParameters"] = {}
    (project / "workflow.json").write_text(json.dumps(workflow))
    for command in (
        ("check", "tasks", "workflow.json"),
        ("run", "workflow.json", "tasks", "--from", "data"),
        ("register", "tasks", "workflow.json"),
    ):
        answer = perago(*command)
        assert answer.code == 2, answer
        assert "task 'top' writes branch" in answer.err
        assert "${count.output.workspace}" in answer.err
    assert perago("runs", "--json").out.strip() in {"", "[]"}


def test_check_takes_workflow_files_and_their_tasks(project: Path, perago: Perago) -> None:
    assert perago("init", ".").code == 0
    answer = perago("check", "tasks", "workflow.json", "--json")
    assert answer.json["workflows"] == ["workflow.json"]
    assert "workflow.json" in perago("check", "tasks", "workflow.json").out
    alone = perago("check", "workflow.json")
    assert alone.code == 2
    assert "perago check MODULE WORKFLOW.json" in alone.err
