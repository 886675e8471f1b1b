"""DO_WHILE and conditions in JavaScript; the differential test holds them against Conductor."""

from __future__ import annotations

import pytest

from perago.errors import WorkflowDefinitionError
from perago.protocol.values import Status
from perago.workflow import javascript
from perago.workflow.javascript import ScriptError, as_case, evaluate, is_true
from perago.workflow.records import RunStatus
from perago.workflow.tracing import walk
from tests.broker.definitions import (
    Json,
    World,
    fork,
    join,
    loop,
    parsed,
    script,
    simple,
    switch,
    system,
    writer,
)

THREE = "$.again.iteration < 3"


def started(*tasks: Json, **given: object) -> World:
    world = World(parsed(*tasks), given)
    world.settle()
    return world


def refused(*tasks: Json) -> str:
    with pytest.raises(WorkflowDefinitionError) as caught:
        parsed(*tasks)
    return str(caught.value)


# --- rounds ------------------------------------------------------------------------------------


def test_a_loop_runs_its_steps_once_a_round() -> None:
    read = {"n": "${again.output.iteration}", "last": "${b.output.n}"}
    world = started(
        loop("again", THREE, simple("a", inputParameters=read), simple("b")),
        simple("c", inputParameters={"a": "${a.output.n}", "all": "${again.output}"}),
    )
    for number in (1, 2, 3):
        last = number - 1 or None
        assert world.open(f"a__{number}").input == {"n": number, "last": last}
        assert world.open(f"a__{number}").attempt.iteration == number
        world.finish(f"a__{number}", output={"n": number * 10})
        world.finish(f"b__{number}", output={"n": number})
    rounds = {str(n): {"a": {"n": n * 10}, "b": {"n": n}} for n in (1, 2, 3)}
    assert world.open("c").input == {"a": 30, "all": {"iteration": 3, **rounds}}
    (again,) = world.attempts("again")
    assert (again.status, again.iteration) == (Status.COMPLETED, 3)


def test_the_condition_sees_its_input_anew_and_the_last_round() -> None:
    condition = "$.limit > $.a.n && $.seen === $.a.n"
    world = started(
        loop("again", condition, simple("a"), limit="${workflow.input.x}", seen="${a.output.n}"),
        x=2,
    )
    world.finish("a__1", output={"n": 1})
    world.finish("a__2", output={"n": 2})
    assert world.run.status is RunStatus.COMPLETED
    assert world.attempts("again")[0].input == {"limit": 2, "seen": None}


def test_a_round_is_over_when_all_of_its_branches_are() -> None:
    world = started(
        loop("again", THREE, fork("f", [simple("a")], [simple("b")]), join("j", "a")),
        simple("c"),
    )
    world.finish("a__1", output={"n": 1})
    assert world.attempts("j__1")[0].output == {"a__1": {"n": 1}}
    assert "f__2" not in world.statuses()
    world.finish("b__1")
    assert world.statuses()["f__2"] == "COMPLETED"


def test_a_failed_round_is_tried_again_and_the_loop_goes_on() -> None:
    world = started(loop("again", "$.again.iteration < 2", simple("a", retryCount=0)))
    world.finish("a__1", output={"n": 1})
    world.finish("a__2", Status.FAILED)
    assert world.statuses() == {"again": "CANCELED", "a__1": "COMPLETED", "a__2": "FAILED"}
    world.reopen()
    assert world.open("a__2").retry_count == 1
    world.finish("a__2", output={"n": 2})
    assert world.run.status is RunStatus.COMPLETED
    (again,) = world.attempts("again")
    assert again.output == {"iteration": 2, "1": {"a": {"n": 1}}, "2": {"a": {"n": 2}}}


def test_a_condition_that_fails_fails_the_run_and_is_asked_again_by_a_resume() -> None:
    world = started(loop("again", "$.b.n < 3", simple("a")))
    world.finish("a__1")
    assert world.run.status is RunStatus.FAILED
    assert world.statuses()["again"] == "FAILED_WITH_TERMINAL_ERROR"
    assert "loopCondition '$.b.n < 3' failed: TypeError" in world.run.reason
    world.reopen()
    assert world.run.status is RunStatus.FAILED
    assert len(world.attempts("a__1")) == 1


def test_variables_and_ends_inside_of_a_loop() -> None:
    world = started(
        loop(
            "again",
            "true",
            simple("a"),
            system("SET_VARIABLE", "keep", last="${a.output.n}"),
            switch(
                "s",
                "${workflow.variables.last}",
                **{
                    "2": [
                        system(
                            "TERMINATE",
                            "end",
                            terminationStatus="COMPLETED",
                            workflowOutput={"n": "${workflow.variables.last}"},
                        )
                    ]
                },
            ),
        ),
    )
    world.finish("a__1", output={"n": 1})
    world.finish("a__2", output={"n": 2})
    assert (world.run.status, world.run.output) == (RunStatus.COMPLETED, {"n": 2})
    assert world.statuses()["again"] == "CANCELED"


def test_w9_a_writer_of_one_round_is_not_beside_that_of_another() -> None:
    workspace = {"repository": "r", "branch": "main", "ref": "x"}
    task = loop("again", "$.again.iteration < 2", writer("a", workspace))
    world = World(parsed(task), writers=frozenset({"w"}))
    world.settle()
    world.finish("a__1")
    world.finish("a__2")
    assert world.run.status is RunStatus.COMPLETED
    task = loop("again", "true", fork("f", [writer("a", workspace)], [writer("b", workspace)]))
    task["loopOver"].append(join("j", "a", "b"))
    world = World(parsed(task), writers=frozenset({"w"}))
    world.settle()
    assert "may run at the same time" in world.run.reason


# --- what is refused ---------------------------------------------------------------------------

STEP = simple("a")
REFUSED = {
    "no steps": (loop("again", "true"), "loopOver is empty"),
    "no condition": (loop("again", "", STEP), "loopCondition"),
    "not a script": (loop("again", "$.a <", STEP), "loopCondition is not JavaScript: SyntaxError"),
    "a loop inside": (
        loop("again", "true", switch("s", 1, x=[loop("inner", "true", STEP)])),
        "has the loop 'inner' inside",
    ),
    "a name with a mark": (loop("again", "true", simple("a__1")), "__ marks the rounds"),
    "keepLastN": (loop("again", "true", STEP, keepLastN=2), "inputParameters.keepLastN would"),
    "items": ({**loop("again", "true", STEP), "items": "${workflow.input.x}"}, "items is not hon"),
    "items as input": (loop("again", "true", STEP, items=[1]), "inputParameters.items would"),
    "a return": (loop("again", "return true", STEP), "loopCondition is not JavaScript"),
    "two brackets": (loop("again", "}{", STEP), "loopCondition is not JavaScript"),
    "an expression": (loop("again", "'${a.output.x}' < 3", STEP), "has ${...}, which is not"),
    "half a letter": (loop("again", "\ud800", STEP), "loopCondition is not JavaScript"),
    "_items": (loop("again", "true", STEP, _items=[1]), "inputParameters._items would"),
    "optional": ({**loop("again", "true", STEP), "optional": True}, "optional is not honoured"),
    "a lonely join": (loop("again", "true", join("j", "a")), "JOIN without a FORK_JOIN"),
    "a parallel branch": (
        loop(
            "again",
            "true",
            fork("f", [STEP], [simple("b", inputParameters={"x": "${a.output.n}"})]),
            join("j", "a", "b"),
        ),
        "reads 'a', which need not be finished when 'b' starts",
    ),
    "a condition on what does not exist": (
        loop("again", "true", STEP, x="${nothing.output}"),
        "'nothing', which is not a task",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_loop_that_cannot_be_run_is_refused(name: str) -> None:
    task, problem = REFUSED[name]
    assert problem in refused(task)


@pytest.mark.parametrize("name", ["a__1", "a__20"])
def test_a_step_that_is_named_like_a_round_is_refused(name: str) -> None:
    for tasks in (
        (simple(name), loop("again", "true", STEP)),
        (loop("again", "true", STEP), simple(name)),
    ):
        assert f"{name!r} is the name of a round of a loop's step" in refused(*tasks)
    parsed(loop("again", "true", STEP), simple("b__1"), simple("a__x"))


@pytest.mark.parametrize("text", ["5n", r"'\ud800'", "'\0'"])
def test_what_python_has_no_value_for_is_an_error_of_the_script(text: str) -> None:
    with pytest.raises(ScriptError):
        evaluate(text, {})


def test_without_the_engine_scripts_are_refused_with_the_fix(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(javascript, "find_spec", lambda _: None)
    for task in (loop("again", "true", STEP), script("s", "$.a", {"a": 1}, x=[STEP])):
        said = refused(task)
        assert "is JavaScript, which is not installed here" in said
        assert "install 'perago[javascript]'" in said


def test_the_steps_of_a_loop_are_walked() -> None:
    found = [task["taskReferenceName"] for task, _ in walk([loop("again", "true", STEP)])]
    assert found == ["again", "a"]


# --- scripts -----------------------------------------------------------------------------------

GIVEN: Json = {
    "a": 2,
    "o": {"k": "v", "size": 1},
    "l": [1, 2, {"x": 3}],
    "n": None,
    "f": 1.0,
    "g": 1.5,
    "t": True,
    "s": "text",
}
CASES = {
    "$.a > 1 ? 'big' : 'small'": "big",
    "if ($.a > 1) { 'yes' } else { 'no' }": "yes",
    "var z = 3; z": "3",
    "(function () { return $.o.k })()": "v",
    "$.missing": "null",
    "$.n": "null",
    "$.missing === undefined": "true",
    "$.f": "1",
    "$.g": "1.5",
    "0.1 + 0.2": "0.30000000000000004",
    "$.l.length": "3",
    "$.l.includes(2)": "true",
    "$.l.slice(0, 2).map(x => x * 2).join('-')": "2-4",
    "$.l[2].x": "3",
    "$.l[9]": "null",
    "let r = 0; for (const x of $.l.slice(0, 2)) r += x; r": "3",
    "[...$.l].length": "3",
    "Array.isArray($.l)": "true",
    "$.o instanceof Object": "true",
    "JSON.stringify($.l.slice(0, 1))": "[1]",
    "`${$.s}!`": "text!",
    "12345678901234": "12345678901234",
    "1 / 0": "Infinity",
    "0 / 0": "NaN",
}


def test_the_result_of_a_script_is_the_name_of_a_case() -> None:
    for text, case in CASES.items():
        assert as_case(evaluate(text, GIVEN)) == case, text


DIFFERENT = [
    *("Object.keys($.o)", "JSON.stringify($.o)", "'k' in $.o", "$.o.hasOwnProperty('k')"),
    *("$.o.size", "$.o.size()", "$.get('a')", "'' + $.o", "'' + $.l", "$.o.toString()"),
    *("for (const x in $.o) x", "$.a = 9", "$.l.push(3)", "$.l.sort()", "$.l.size()"),
    *("delete $.a", "({a: 1})", "[1]", "1e21", "1e-7", "-0", "console.log(1)", "throw 'x'"),
    *("nope", "while (true) {}", "'x'.repeat(1e9)"),
]


def test_a_script_that_a_server_would_read_otherwise_fails_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(javascript, "SECONDS", 0.1)
    for text in DIFFERENT:
        with pytest.raises(ScriptError):
            as_case(evaluate(text, GIVEN))
    with pytest.raises(ScriptError, match="is not the same on a Conductor server"):
        evaluate("1", {"deep": [{"n": 2**53 + 1}]})


@pytest.mark.parametrize(
    ("result", "truth"),
    [(True, True), (False, False), (1, True), (0, False), (-1, False), (0.5, True)],
)
def test_what_is_true(result: object, truth: bool) -> None:
    assert is_true(result) is truth
    assert not is_true("true")
    assert not is_true(None)


def test_a_switch_that_a_script_decides() -> None:
    task = script("s", "$.a.n > 1 ? 'big' : 'small'", {"a": "${a.output}"}, big=[simple("b")])
    world = started(simple("a"), task)
    world.finish("a", output={"n": 2})
    assert world.statuses()["b"] == "SCHEDULED"


def test_a_switch_whose_script_fails() -> None:
    world = started(script("s", "nope", {}, x=[simple("a")]), simple("b"))
    assert world.run.status is RunStatus.FAILED
    assert world.statuses() == {"s": "FAILED"}
    assert "task 's' ended FAILED: ReferenceError" in world.run.reason
    world.reopen()
    assert world.run.status is RunStatus.FAILED
