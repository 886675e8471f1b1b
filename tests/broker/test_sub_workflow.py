"""SUB_WORKFLOW in the local broker: a run of its own, driven with the one that it belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from perago.brokers.local.runner import Runner, TaskTable
from perago.brokers.local.state import State
from perago.errors import WorkflowDefinitionError
from perago.protocol.outcome import Outcome
from perago.protocol.values import Status
from perago.workflow.controls import Controls
from perago.workflow.events import Event
from perago.workflow.parsing import parse_workflow
from perago.workflow.records import RunRecord, RunStatus, TaskRecord
from perago.workflow.subworkflow import MOST, with_children
from perago.workflow.tasks import SubWorkflowTask, every
from tests.broker.definitions import (
    Json,
    flow,
    fork,
    join,
    loop,
    parsed,
    simple,
    sub,
    switch,
    system,
    writer,
)
from tests.broker.scripted import FAILED, HANGS, Deed, ManualClock, ScriptedPool

PLACE = {"repository": "r", "branch": "main", "ref_type": "commit", "ref": "c"}


def child(*tasks: Json, name: str = "child", **more: Any) -> Json:
    return flow(*(tasks or (simple("c"),)), **{"name": name, **more})


class Bench:
    """A state, executors that follow a script, and a clock that moves when somebody waits."""

    def __init__(self, directory: Path, **script: list[Deed]) -> None:
        self.clock = ManualClock()
        self.state = State(directory / "state.db")
        self.pool = ScriptedPool(self.clock, dict(script))
        self.events: list[Event] = []
        self.runner = Runner(
            self.state,
            self.pool,
            TaskTable(
                {"t": Controls(retry_count=0), "w": Controls(retry_count=0)},
                writers=frozenset({"w"}),
            ),
            directory,
            self.clock,
            on_event=self.events.append,
        )

    def run(
        self, *tasks: Json, given: Mapping[str, object] | None = None, **more: Any
    ) -> RunRecord:
        made = self.runner.create(flow(*tasks, **more), given or {})
        return self.runner.run(made.id)

    def children(self, run: RunRecord) -> list[RunRecord]:
        return list(self.state.family(run.id)[1:])

    def step(self, run: RunRecord, ref: str) -> TaskRecord:
        return next(t for t in reversed(self.state.tasks(run.id)) if t.reference_name == ref)

    def statuses(self, run: RunRecord) -> list[str]:
        return [f"{t.reference_name} {t.retry_count} {t.status}" for t in self.state.tasks(run.id)]

    def done(self) -> list[str]:
        return [claim.attempt.reference_task_name for claim in self.pool.claims]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def gives(**output: object) -> Deed:
    return Deed(outcome=Outcome(Status.COMPLETED, output))


# --- what it gives ----------------------------------------------------------------------------


def test_the_output_of_the_child_is_that_of_the_step(bench: Bench) -> None:
    bench.pool.script["c"] = [gives(n=7)]
    inner = child(
        simple("c", inputParameters={"x": "${workflow.input.x}", "d": "${workflow.input.d}"}),
        inputTemplate={"d": 1, "x": 0},
        outputParameters={"y": "${c.output.n}"},
    )
    run = bench.run(
        sub("s", inner, x="${workflow.input.v}"),
        simple("z", inputParameters={"all": "${s.output}"}),
        given={"v": 3},
    )
    (made,) = bench.children(run)
    assert (run.status, made.status) == (RunStatus.COMPLETED, RunStatus.COMPLETED)
    assert (made.parent, made.parent_task) == (run.id, bench.step(run, "s").task_id)
    assert made.input == {"d": 1, "x": 3}
    assert bench.step(made, "c").input == {"x": 3, "d": 1}
    assert bench.step(run, "s").output == {"subWorkflowId": made.id, "y": 7}
    assert bench.step(run, "z").input == {"all": {"subWorkflowId": made.id, "y": 7}}


def test_two_deep_each_belongs_to_the_one_that_started_it(bench: Bench) -> None:
    middle = child(sub("m", child()), simple("n"), name="middle")
    run = bench.run(sub("s", middle))
    outer, inner = bench.children(run)
    assert (outer.parent, inner.parent) == (run.id, outer.id)
    assert bench.done() == ["c", "n"]
    assert [event.get("within") for event in bench.events if event["event"] == "task_claimed"] == [
        "s/m",
        "s",
    ]
    assert bench.state.root(inner) == run


def test_each_round_of_a_loop_has_a_run_of_its_own(bench: Bench) -> None:
    inner = child(outputParameters={"n": "${workflow.input.n}"})
    run = bench.run(
        loop("again", "$.s.n < 3", sub("s", inner, n="${again.output.iteration}")),
    )
    assert run.status is RunStatus.COMPLETED
    assert [made.input["n"] for made in bench.children(run)] == [1, 2, 3]


def test_the_steps_of_children_in_a_fork_share_the_executors(bench: Bench) -> None:
    bench.pool.size = 1
    run = bench.run(fork("f", [sub("s", child())], [sub("u", child())]), join("j", "s", "u"))
    assert run.status is RunStatus.COMPLETED
    assert (bench.done(), bench.pool.busiest) == (["c", "c"], 1)


# --- how it fails -----------------------------------------------------------------------------


def test_a_child_that_fails_fails_the_step_with_its_reason(bench: Bench) -> None:
    bench.pool.script["c"] = [FAILED]
    run = bench.run(sub("s", child()), simple("z"))
    (made,) = bench.children(run)
    step = bench.step(run, "s")
    assert (run.status, step.status) == (RunStatus.FAILED, Status.FAILED)
    assert step.reason == f"Sub workflow child.1/{made.id} failure reason: {made.reason}"
    assert bench.done() == ["c"]


def test_a_retry_is_another_run(bench: Bench) -> None:
    bench.pool.script["c"] = [FAILED]
    run = bench.run(sub("s", child(), retries=1, x=1))
    assert bench.statuses(run) == ["s 0 FAILED", "s 1 FAILED"]
    assert len({made.id for made in bench.children(run)}) == 2
    assert bench.step(run, "s").scheduled_at + 60 == bench.step(run, "s").started_at


def test_an_optional_step_lets_the_run_go_on(bench: Bench) -> None:
    bench.pool.script["c"] = [FAILED]
    run = bench.run({**sub("s", child()), "optional": True}, simple("z"))
    assert run.status is RunStatus.COMPLETED
    assert bench.statuses(run) == ["s 0 COMPLETED_WITH_ERRORS", "z 0 COMPLETED"]


def test_a_child_that_is_terminated_terminates_the_run(bench: Bench) -> None:
    def cancel() -> None:
        (made,) = bench.state.family(bench.state.started_runs()[0].id)[1:]
        bench.state.terminate(made.id, "enough", bench.clock.now())

    bench.pool.script["c"] = [HANGS]
    bench.pool.script["b"] = [Deed(seconds=5, then=cancel)]
    run = bench.run(fork("f", [sub("s", child())], [simple("b")]), join("j", "s", "b"))
    assert (run.status, bench.step(run, "s").status) == (RunStatus.TERMINATED, Status.CANCELED)
    assert "failure reason: enough" in bench.step(run, "s").reason
    assert bench.pool.killed == ["c"]


@pytest.mark.parametrize(
    ("status", "step"),
    [("COMPLETED", "COMPLETED"), ("FAILED", "FAILED"), ("TERMINATED", "CANCELED")],
)
def test_a_terminate_ends_the_child_and_what_that_means_for_the_step(
    bench: Bench, status: str, step: str
) -> None:
    inner = child(
        system("TERMINATE", "end", terminationStatus=status, workflowOutput={"n": 1}), simple("c")
    )
    run = bench.run(sub("s", inner), simple("z"))
    assert run.status == status
    assert bench.step(run, "s").status == step
    assert bench.step(run, "s").output["n"] == 1
    assert bench.done() == (["z"] if status == "COMPLETED" else [])


def test_a_child_that_times_out_is_a_failure_that_optional_covers(bench: Bench) -> None:
    bench.pool.script["c"] = [HANGS]
    inner = child(timeoutSeconds=5, timeoutPolicy="TIME_OUT_WF")
    run = bench.run({**sub("s", inner), "optional": True}, simple("z"))
    assert run.status is RunStatus.COMPLETED
    assert bench.pool.killed == ["c"]
    assert bench.run(sub("s", inner)).status is RunStatus.TIMED_OUT


def test_the_end_of_a_run_ends_those_that_belong_to_it(bench: Bench) -> None:
    bench.pool.script["c"] = [HANGS]
    bench.pool.script["b"] = [Deed(seconds=5, outcome=FAILED.outcome)]
    middle = child(sub("m", child()), name="middle")
    run = bench.run(fork("f", [sub("s", middle)], [simple("b")]), join("j", "s", "b"))
    assert run.status is RunStatus.FAILED
    outer, inner = bench.children(run)
    assert outer.status is inner.status is RunStatus.TERMINATED
    why = f"Parent workflow has been terminated with reason: {run.reason}"
    assert outer.reason == why
    assert inner.reason == f"Parent workflow has been terminated with reason: {why}"
    assert bench.statuses(inner) == ["c 0 CANCELED"]
    assert bench.pool.killed == ["c"]


def test_only_the_child_ends_where_a_step_in_the_middle_fails(bench: Bench) -> None:
    """What an optional child had begun ends with it; the run goes on."""
    bench.pool.script["c"] = [HANGS]
    bench.pool.script["b"] = [Deed(seconds=5, outcome=FAILED.outcome)]
    middle = child(
        fork("f", [sub("m", child())], [simple("b")]), join("j", "m", "b"), name="middle"
    )
    run = bench.run({**sub("s", middle), "optional": True}, simple("z"))
    assert run.status is RunStatus.COMPLETED
    assert [made.status for made in bench.children(run)] == ["FAILED", "TERMINATED"]
    assert bench.pool.killed == ["c"]


# --- going on ---------------------------------------------------------------------------------


def test_a_resume_goes_on_inside_the_child_and_repeats_nothing(bench: Bench) -> None:
    bench.pool.script |= {"d": [FAILED]}
    run = bench.run(simple("a"), sub("s", child(simple("c"), simple("d"))), simple("z"))
    (made,) = bench.children(run)
    assert (run.status, bench.done()) == (RunStatus.FAILED, ["a", "c", "d"])
    bench.pool.script["d"] += [FAILED, Deed()]
    # The run of a sub workflow goes on with the one that it belongs to.
    assert bench.runner.resume(made.id).id == run.id
    resumed = bench.runner.resume(run.id)
    assert resumed.status is RunStatus.COMPLETED
    assert bench.done() == ["a", "c", "d", "d", "d", "z"]
    assert [each.id for each in bench.children(run)] == [made.id]


def test_a_resume_goes_on_with_a_child_that_was_ended_by_its_run(bench: Bench) -> None:
    bench.pool.script |= {
        "d": [HANGS, Deed()],
        "b": [Deed(seconds=5, outcome=FAILED.outcome), Deed()],
    }
    inner = child(simple("c"), simple("d"))
    run = bench.run(fork("f", [sub("s", inner)], [simple("b")]), join("j", "s", "b"))
    assert run.status is RunStatus.FAILED
    assert bench.runner.resume(run.id).status is RunStatus.COMPLETED
    assert sorted(bench.done()) == ["b", "b", "c", "d", "d"]


def test_a_child_that_ended_before_its_step_knew_it_is_not_run_again(bench: Bench) -> None:
    def stop() -> None:
        bench.runner.stop()

    bench.pool.script["c"] = [Deed(then=stop)]
    run = bench.run(sub("s", child()))
    assert run.status is RunStatus.RUNNING
    again = Bench(bench.state.path.parent)
    assert again.runner.resume(run.id).status is RunStatus.COMPLETED
    assert again.done() == []


def test_the_clock_of_children_does_not_count_while_nothing_runs(bench: Bench) -> None:
    bench.pool.script["c"] = [Deed(seconds=1, then=bench.runner.stop, dies="killed")]
    inner = child(timeoutSeconds=10, timeoutPolicy="TIME_OUT_WF")
    run = bench.run({**sub("s", inner), "retryCount": 0}, simple("z"))
    bench.clock.sleep(3600)
    again = Bench(bench.state.path.parent)
    again.clock.time = bench.clock.time
    resumed = again.runner.resume(run.id)
    assert "timeoutSeconds" not in resumed.reason


# --- what is refused before the first step ----------------------------------------------------


def test_a_step_in_a_child_is_checked_before_the_first_step_of_the_run(bench: Bench) -> None:
    with pytest.raises(WorkflowDefinitionError, match=r"\(s\): workflow 'child': .*'nobody'"):
        bench.run(simple("a"), sub("s", child(simple("c", "nobody"))))
    assert bench.state.runs() == ()


@pytest.mark.parametrize(
    ("param", "problem"),
    [
        (None, "subWorkflowParam.name is missing"),
        ({"name": "gone"}, "'gone' is a workflow that is not here"),
        ({"name": "${workflow.input.x}"}, "is known only when it runs"),
        ({"name": "w", "workflowDefinition": "${x.output}"}, "must be an object"),
        ({"name": "w", "priority": 3}, "priority is not honoured here"),
        ({"name": "w", "vers": 3}, "vers is not a field of a SUB_WORKFLOW"),
        ({"workflowDefinition": {"tasks": []}}, "name is missing"),
    ],
)
def test_a_call_that_could_not_run_is_refused(param: object, problem: str) -> None:
    with pytest.raises(WorkflowDefinitionError) as caught:
        parsed({**system("SUB_WORKFLOW", "s"), "subWorkflowParam": param})
    assert problem in str(caught.value)


def test_a_timeout_of_the_step_itself_is_refused() -> None:
    with pytest.raises(WorkflowDefinitionError, match="timeoutSeconds is not applied"):
        parsed({**sub("s", child()), "taskDefinition": {"name": "s", "timeoutSeconds": 3}})


# --- where definitions come from --------------------------------------------------------------


def by_name(ref: str, name: str, version: int | None = None) -> Json:
    param = {"name": name} | ({} if version is None else {"version": version})
    return {**system("SUB_WORKFLOW", ref), "subWorkflowParam": param}


def found_among(*known: Json) -> Any:
    def find(name: str, version: int | None) -> Json | None:
        fits = [one for one in known if one["name"] == name and version in {None, one["version"]}]
        return max(fits, key=lambda one: one["version"], default=None)

    return find


def test_definitions_are_put_where_they_are_called_wherever_that_is() -> None:
    known = found_among(
        child(name="one"),
        child(by_name("deep", "one"), name="two"),
        child(name="two", version=2),
    )
    definition = flow(
        fork("f", [by_name("a", "one")], [by_name("b", "two", 1)]),
        join("j", "a", "b"),
        switch("x", 1, [by_name("c", "two")], k=[by_name("d", "one")]),
        loop("l", "false", by_name("e", "one")),
    )
    filled, problems = with_children(definition, known, "flow.json")
    assert problems == []
    steps = every(parse_workflow(filled, {"t"}).tasks)
    calls = {s.reference_name: s for s in steps if isinstance(s, SubWorkflowTask)}
    assert {ref: (call.called, call.version) for ref, call in calls.items()} == {
        "a": ("one", 1),
        "b": ("two", 1),
        "c": ("two", 2),
        "d": ("one", 1),
        "e": ("one", 1),
    }
    assert filled["tasks"][0]["forkTasks"][1][0]["subWorkflowParam"]["workflowDefinition"]["tasks"][
        0
    ]["subWorkflowParam"]["workflowDefinition"] == child(name="one")


def test_a_workflow_that_is_not_there_is_named() -> None:
    _, (problem,) = with_children(flow(by_name("s", "gone", 2)), found_among(), "flow.json")
    assert str(problem) == (
        "flow.json: step 's' calls workflow 'gone' version 2, which is not here;"
        " name the file of that workflow, too, or put it beside this one"
    )


def test_a_workflow_that_calls_itself_is_refused() -> None:
    alone = flow(by_name("s", "flow"))
    _, (problem,) = with_children(alone, found_among(alone), "flow.json")
    assert "calls itself" in str(problem)
    one, two = child(by_name("a", "two"), name="one"), child(by_name("b", "one"), name="two")
    _, (problem,) = with_children(one, found_among(one, two), "one.json")
    assert "step 'b' calls workflow 'one', which calls itself" in str(problem)
    # Another version of it is another workflow.
    newer = child(by_name("s", "one", 1), name="one", version=2)
    assert with_children(newer, found_among(newer, child(name="one")), "one.json")[1] == []


def test_calls_that_multiply_are_refused_in_time() -> None:
    levels = [child(name="w0")]
    for number in range(1, 15):
        inner = f"w{number - 1}"
        levels.append(child(by_name("a", inner), by_name("b", inner), name=f"w{number}"))
    _, problems = with_children(levels[-1], found_among(*levels), "w.json")
    assert f"more than {MOST}" in str(problems[0])


# --- W9 ---------------------------------------------------------------------------------------


def test_w9_a_writer_in_a_child_clashes_with_one_beside_the_call(bench: Bench) -> None:
    """Where only the run knows the branch: the definition names two that turn out to be one."""
    inner = child(writer("c", "${workflow.input.place}"), name="inner")
    for left, right in (
        ([sub("s", inner, place="${a.output.one}")], [writer("x", "${a.output.two}")]),
        ([sub("s", inner, place="${a.output.one}")], [sub("u", inner, place="${a.output.two}")]),
        (
            [writer("x", "${a.output.two}")],
            [
                sub(
                    "s",
                    child(sub("m", inner, place="${workflow.input.p}"), name="middle"),
                    p="${a.output.one}",
                )
            ],
        ),
    ):
        bench.pool.script["a"] = [gives(one=PLACE, two=PLACE)]
        names = [left[-1]["taskReferenceName"], right[-1]["taskReferenceName"]]
        run = bench.run(simple("a"), fork("f", left, right), join("j", *names))
        assert run.status is RunStatus.FAILED
        assert "both write branch 'main'" in run.reason


def test_w9_writers_of_calls_that_follow_each_other_do_not_clash(bench: Bench) -> None:
    inner = child(writer("c", "${workflow.input.place}"), name="inner")
    bench.pool.script |= {"a": [gives(one=PLACE)], "c": [gives(workspace=PLACE)]}
    run = bench.run(
        simple("a"),
        sub("s", inner, place="${a.output.one}"),
        sub("u", inner, place="${s.output.workspace}"),
    )
    assert run.status is RunStatus.COMPLETED
