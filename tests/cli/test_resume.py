"""What helps after a failed run is said; what would be ignored is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Perago

RUN = ("run", "workflow.json", "tasks")


@pytest.fixture(autouse=True)
def _made(project: Path, inside: Perago) -> None:
    assert inside("init", ".").code == 0
    tasks = project / "tasks.py"
    tasks.write_text(tasks.read_text().replace("count=1, delay_seconds=2", "count=0"))


def test_params_that_do_not_fit_need_a_new_run(perago: Perago) -> None:
    answer = perago(*RUN, "--from", "data", "-i", 'top="many"')
    assert answer.code == 1
    assert "params of task 'top_words' do not fit" in answer.out
    assert "correct it, then start a new run:\n  perago run workflow.json tasks\n" in answer.out
    assert "--resume" not in answer.out


def test_files_that_break_a_pre_guardrail_need_a_new_run(project: Path, perago: Perago) -> None:
    (project / "empty").mkdir()
    answer = perago(*RUN, "--from", "empty", "--branch", "main")
    assert answer.code == 1
    steps = answer.out[answer.out.index("resuming reads the same files") :]
    assert steps.index("perago run workflow.json tasks --branch main\n") < steps.index("--resume")
    assert "if the guardrail is wrong, change it, then resume with:\n" in steps


def test_a_task_that_is_fixed_can_be_resumed(project: Path, perago: Perago) -> None:
    tasks = project / "tasks.py"
    tasks.write_text(tasks.read_text().replace("return Counted", "1 / 0\n    return Counted"))
    answer = perago(*RUN, "--from", "data")
    assert answer.code == 1
    steps = answer.out[answer.out.index("if the task is wrong") :]
    assert steps.index("perago run --resume ") < steps.index("perago run workflow.json tasks\n")
    run = perago("runs", "--json").json[0]["run"]
    again = perago("run", "--resume", run)
    assert "start a new run:\n  perago run WORKFLOW MODULE\n" in again.out


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (("--from", "data"), "--from"),
        (("--repo", "words"), "--repo"),
        (("--branch", "main"), "--branch"),
        (("-i", "top=1"), "--input"),
        (("--input-file", "x.json"), "--input-file"),
        (("--params", "{}"), "--params"),
        (("--store", "embedded"), "--store"),
        (("workflow.json", "tasks"), "a workflow"),
    ],
)
def test_resume_refuses_what_it_would_ignore(
    inside: Perago, options: tuple[str, ...], word: str
) -> None:
    answer = inside("run", "--resume", "12345678", *options)
    assert answer.code == 2
    assert f"--resume and {word} contradict each other" in answer.err
    assert answer.err.count("\n") == 1


def test_a_workspace_is_given_once(inside: Perago, project: Path) -> None:
    given = '{"repository": "words", "branch": "main", "ref_type": "commit", "ref": "x"}'
    answer = inside(*RUN, "--from", "data", "-i", f"workspace={given}")
    assert answer.code == 2
    assert "--from and the input 'workspace' contradict each other" in answer.err
    tasks = project / "pure.py"
    tasks.write_text(
        "from pydantic import BaseModel\nfrom perago import task\n"
        "class P(BaseModel): ...\n"
        "@task(name='p', owner_email='a@example.com')\ndef p(params: P) -> P:\n    return P()\n"
    )
    answer = inside("run", "pure", "--from", "data")
    assert answer.code == 2
    assert "--from has no effect: no task here has a workspace" in answer.err


def test_a_run_that_its_workflow_ended_is_not_resumed(project: Path, perago: Perago) -> None:
    stop = {"terminationStatus": "FAILED", "terminationReason": "no need"}
    step = {"name": "stop", "taskReferenceName": "stop", "type": "TERMINATE"}
    flow = {"name": "stops", "version": 1, "schemaVersion": 2}
    flow |= {"tasks": [step | {"inputParameters": stop}]}
    (project / "stops.json").write_text(json.dumps(flow))
    answer = perago("run", "stops.json", "tasks")
    assert answer.code == 1
    assert "FAILED  no need" in answer.out
    assert "--resume" not in answer.out
    assert (
        "step 'stop' ended the run, and would end it again if it were resumed; with other input or"
        " other files, start a new run:\n  perago run stops.json tasks\n"
    ) in answer.out
    again = perago("run", "--resume", "last")
    assert (again.code, "FAILED  no need" in again.out) == (1, True)


TAKE_A_RUN = (("run", "--resume"), ("inspect",), ("watch",), ("cancel",), ("restart",))


@pytest.mark.parametrize("words", TAKE_A_RUN, ids=lambda words: words[0])
def test_last_is_the_newest_run_wherever_a_run_is_taken(
    perago: Perago, inside: Perago, words: tuple[str, ...]
) -> None:
    none = inside(*words, "last")
    assert (none.code, none.err.count("\n")) == (2, 1), none
    assert inside(*RUN, "--from", "data").code == 0
    newest = inside(*RUN, "--json").json["run"]
    by_name, by_id = (inside(*words, run, "--json") for run in ("last", newest))
    if words == ("restart",):
        assert by_name.json["status"] == "COMPLETED"
    else:
        assert (by_name.code, by_name.out, by_name.err) == (by_id.code, by_id.out, by_id.err)
        assert newest in by_name.out + by_name.err
    assert "'last' is" in " ".join(perago(words[0], "--help").out.split())
