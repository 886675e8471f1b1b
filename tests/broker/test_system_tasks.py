"""Tasks that the broker runs itself; the differential test holds them against Conductor."""

from __future__ import annotations

from typing import Any

import pytest

from perago.errors import WorkflowDefinitionError
from perago.protocol.values import Status
from perago.workflow.records import RunStatus
from perago.workflow.waiting import due_at
from tests.broker.definitions import Json, World, fork, join, parsed, simple, system


def started(*tasks: Json, given: Json | None = None, **more: Any) -> World:
    world = World(parsed(*tasks, **more), given or {})
    world.settle()
    return world


def refused(*tasks: Json, **more: Any) -> str:
    with pytest.raises(WorkflowDefinitionError) as caught:
        parsed(*tasks, **more)
    return str(caught.value)


# --- SET_VARIABLE ------------------------------------------------------------------------------


def test_variables_are_what_was_set_last_over_the_definition() -> None:
    world = started(
        simple("a", inputParameters={"x": "${workflow.variables.x}"}),
        system("SET_VARIABLE", "s", x="${a.output.n}", y={"k": "${workflow.variables.x}"}),
        system("SET_VARIABLE", "again", x="${workflow.variables.y.k}", z=None),
        simple("b", inputParameters={"all": "${workflow.variables}"}),
        variables={"x": 1, "d": "kept"},
    )
    assert world.open("a").input == {"x": 1}
    world.finish("a", output={"n": 2})
    assert world.open("b").input == {"all": {"x": 1, "d": "kept", "y": {"k": 1}, "z": None}}
    (first,) = world.attempts("s")
    assert (first.status, first.input, first.output) == (
        Status.COMPLETED,
        {"x": 2, "y": {"k": 1}},
        {},
    )


def test_a_variable_is_seen_by_what_begins_after_it_was_set() -> None:
    read = {"x": "${workflow.variables.x}"}
    world = started(
        fork(
            "f",
            [system("SET_VARIABLE", "s", x=2), simple("a", inputParameters=read)],
            [simple("b", inputParameters=read)],
        ),
        join("j", "a", "b"),
        variables={"x": 1},
    )
    assert [world.open(name).input["x"] for name in "ab"] == [2, 1]
    assert [task.reference_name for task in world.tasks.values()] == ["f", "s", "b", "j", "a"]


def test_variables_survive_a_resume_and_are_not_set_again() -> None:
    world = started(
        system("SET_VARIABLE", "s", x="${workflow.input.x}"),
        simple("a", retryCount=0, inputParameters={"x": "${workflow.variables.x}"}),
        given={"x": 1},
    )
    world.finish("a", Status.FAILED)
    assert world.run.reason
    world.reopen()
    assert len(world.attempts("s")) == 1
    world.finish("a")
    assert world.run.status is RunStatus.COMPLETED


def test_a_variable_that_nothing_sets_is_refused() -> None:
    read = simple("a", inputParameters={"x": "${workflow.variables.lats}"})
    setting = system("SET_VARIABLE", "s", last=1)
    said = refused(setting, read)
    assert "tasks[1] (a).inputParameters.x: ${workflow.variables.lats} reads a variable" in said
    assert "did you mean 'last'?" in said
    assert "nothing sets" in refused(read, variables={"other": 1})
    assert "nothing sets" in refused(simple("a"), outputParameters={"x": read["inputParameters"]})
    assert parsed(read, variables={"lats": 1}).variables == {"lats": 1}


def test_only_its_input_is_honoured() -> None:
    said = refused({**system("SET_VARIABLE", "s", x=1), "optional": True})
    assert "optional is not honoured here on a SET_VARIABLE task" in said


# --- TERMINATE ---------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["COMPLETED", "FAILED", "TERMINATED"])
def test_a_run_ends_as_it_is_told(status: str) -> None:
    world = started(
        simple("a"),
        system(
            "TERMINATE",
            "end",
            terminationStatus=status,
            terminationReason="found ${a.output.n}",
            workflowOutput={"n": "${a.output.n}"},
        ),
        simple("never"),
        outputParameters={"other": "${a.output.n}"},
    )
    world.finish("a", output={"n": 3})
    assert (world.run.status, world.run.reason) == (RunStatus(status), "found 3")
    assert world.run.output == {"n": 3}
    assert world.statuses() == {"a": "COMPLETED", "end": "COMPLETED"}


@pytest.mark.parametrize(
    ("given", "output"),
    [({}, {}), ({"workflowOutput": None}, {}), ({"workflowOutput": [1]}, {"output": [1]})],
)
def test_what_a_run_gives_when_it_is_ended(given: Json, output: Json) -> None:
    world = started(system("TERMINATE", "end", terminationStatus="FAILED", **given))
    (task,) = world.attempts("end")
    assert (world.run.output, task.output) == (output, output)
    assert world.run.reason == f"Workflow is FAILED by TERMINATE task: {task.task_id}"


def test_what_runs_beside_it_is_cancelled() -> None:
    ending = [simple("a"), system("TERMINATE", "end", terminationStatus="COMPLETED")]
    world = started(
        fork("f", ending, [simple("b"), simple("c")], [simple("d")]), join("j", "c", "d")
    )
    world.end(world.claim("b"), Status.COMPLETED)
    world.finish("a")
    assert world.run.status is RunStatus.COMPLETED
    ends = {"a": "COMPLETED", "b": "COMPLETED", "end": "COMPLETED", "f": "COMPLETED"}
    assert world.statuses() == {**ends, "c": "CANCELED", "d": "CANCELED", "j": "CANCELED"}


def test_a_run_that_ended_itself_ends_again_when_it_is_resumed() -> None:
    ending = [system("TERMINATE", "end", terminationStatus="FAILED", workflowOutput={"n": 1})]
    world = started(fork("f", [simple("a")], ending), join("j", "a"))
    world.reopen()
    assert (world.run.status, world.run.output) == (RunStatus.FAILED, {"n": 1})
    assert world.statuses()["a"] == "CANCELED"
    assert len(world.attempts("a")) == 1


@pytest.mark.parametrize("status", [None, "completed", "RUNNING", "${workflow.input.x}", 1])
def test_the_status_is_one_that_conductor_registers(status: object) -> None:
    said = refused(system("TERMINATE", "end", terminationStatus=status))
    assert "terminationStatus must be one of COMPLETED, FAILED, TERMINATED" in said


def test_wrong_input_of_a_terminate_is_refused() -> None:
    task = system("TERMINATE", "end", terminationStatus="FAILED", terminationReason=3)
    assert "(end).inputParameters.terminationReason must be a text" in refused(task)
    task = system("TERMINATE", "end", terminationStatus="FAILED", reason="x")
    assert "reason is not input of a TERMINATE task" in refused(task)
    task = system("TERMINATE", "end", terminationStatus="FAILED")
    assert "optional is not honoured" in refused({**task, "optional": True})


# --- WAIT --------------------------------------------------------------------------------------

DURATIONS = {
    "0s": 0,
    "5s": 5,
    "2 Seconds": 2,
    " 1 min 30 secs ": 90,
    "1h": 3600,
    "2 days 1 hour 1 minute 1 second": 2 * 86400 + 3661,
    "1d2h3m4s": 86400 + 7384,
}
MOMENTS = {
    "1970-01-01 00:01 UTC": 60,
    "1970-01-02 00:00 GMT": 86400,
    "1970-01-01 02:00 GMT+02:00": 0,
    "1970-01-01 02:00 GMT+2:00": 0,
    "1970-01-01 00:00 -0130": 5400,
    "1969-12-31 23:59 UTC": -60,
}


def test_every_way_to_write_a_time() -> None:
    for text, seconds in DURATIONS.items():
        assert due_at({"duration": text}, 1000.0) == 1000 + seconds, text
        parsed(system("WAIT", "w", duration=text))
    for text, moment in MOMENTS.items():
        assert due_at({"until": text}, 1000.0) == moment, text
        parsed(system("WAIT", "w", until=text))


WRONG_TIMES = [
    *(
        {"duration": text}
        for text in ("soon", "-1s", "100ms", "1s 1h", "1.5h", "5", "1٣s", "999999999d 99h")
    ),
    *({"duration": value} for value in ("", " ", None, 5)),
    {"until": "2030-01-01"},
    {"until": "2030-01-01 00:00"},
    {"until": "2030-13-01 00:00 UTC"},
    {"until": "2030-01-01 00:00 PST"},
    {"until": "2030-01-01 00:00 GMT+99:00"},
    {"until": "soon"},
    {},
    {"duration": "1s", "until": "2030-01-01 00:00 UTC"},
    {"for": "1s"},
]


@pytest.mark.parametrize("given", WRONG_TIMES, ids=str)
def test_a_time_that_cannot_be_told_is_refused(given: Json) -> None:
    assert "tasks[0] (w).inputParameters" in refused(system("WAIT", "w", **given))


def test_a_wait_is_over_when_its_time_has_passed() -> None:
    world = started(
        system("WAIT", "w", duration="${workflow.input.d}"),
        simple("a", inputParameters={"was": "${w.status}", "out": "${w.output}"}),
        given={"d": "1 minute"},
    )
    assert world.statuses() == {"w": "IN_PROGRESS"}
    assert world.ask().wake_at == world.now + 60
    world.now += 59
    assert not world.ask().actions
    world.now += 1
    world.settle()
    assert world.open("a").input == {"was": "COMPLETED", "out": {}}


def test_a_moment_that_has_passed_is_not_waited_for() -> None:
    world = started(system("WAIT", "w", until="1970-01-01 00:00 UTC"), simple("a"))
    assert world.statuses() == {"w": "COMPLETED", "a": "SCHEDULED"}


@pytest.mark.parametrize("given", [{"duration": "soon"}, {"duration": None}, {"until": "soon"}])
def test_a_time_that_turns_out_wrong_fails_the_run(given: Json) -> None:
    key, value = next(iter(given.items()))
    world = started(system("WAIT", "w", **{key: "${workflow.input.t}"}), given={"t": value})
    assert world.run.status is RunStatus.FAILED
    assert world.statuses() == {"w": "FAILED_WITH_TERMINAL_ERROR"}
    assert f"task 'w' ended FAILED_WITH_TERMINAL_ERROR: {key} {value!r} is not" in world.run.reason
    world.reopen()
    assert world.run.status is RunStatus.FAILED


def test_a_wait_goes_on_after_a_resume_from_where_it_began() -> None:
    world = started(
        fork("f", [system("WAIT", "w", duration="1 hour")], [simple("a", retryCount=0)]),
        join("j", "w", "a"),
    )
    world.now += 1000
    world.finish("a", Status.FAILED)
    assert world.statuses()["w"] == "CANCELED"
    world.now += 1000
    world.reopen()
    assert world.statuses()["w"] == "IN_PROGRESS"
    world.finish("a")
    assert world.ask().wake_at == world.now + 1600
    world.now += 1600
    world.settle()
    assert world.run.status is RunStatus.COMPLETED
    assert len(world.attempts("w")) == 1
