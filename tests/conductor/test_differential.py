"""The same definitions on a real Conductor and in the local broker give the same.

Compared are the status and the output of the workflow, and of every attempt its reference name,
status, input and output. Time and identifiers differ.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from perago.brokers.conductor.client import ConductorClient
from perago.workflow.subworkflow import with_children
from tests.broker.definitions import fork, join, loop, script, simple, switch, system
from tests.conductor.differential import TASK, Case, Json, here, on_conductor, register


def step(ref: str, **given: Any) -> Json:
    return simple(ref, TASK, inputParameters=given)


def dynamic(ref: str) -> Json:
    return {
        **system(
            "FORK_JOIN_DYNAMIC",
            ref,
            tasks="${workflow.input.tasks}",
            inputs="${workflow.input.inputs}",
        ),
        "dynamicForkTasksParam": "tasks",
        "dynamicForkTasksInputParamName": "inputs",
    }


def by_hand(ref: str, **given: Any) -> Json:
    return {**step(ref, **given), "type": "HUMAN"}


def fails(ref: str, **more: Any) -> Json:
    return {**step(ref, status="FAILED", give={"half": 1}), **more}


def calls(ref: str, which: int = 0, version: int | None = 1, **given: Any) -> Json:
    """Call one of the children of a case."""
    param = {"name": f"${which}"} | ({} if version is None else {"version": version})
    return {**system("SUB_WORKFLOW", ref, **given), "subWorkflowParam": param}


def again(task: Json, retries: int) -> Json:
    """Try a step again at once."""
    at_once = {"name": task["name"], "retryCount": retries, "retryDelaySeconds": 0}
    limits = {"timeoutSeconds": 0, "responseTimeoutSeconds": 600, "ownerEmail": "data@example.com"}
    return {**task, "taskDefinition": {**at_once, **limits}}


CHILD: Final = Case(
    [step("c", n="${workflow.input.x}", d="${workflow.input.d}")],
    more={"inputTemplate": {"d": 5}, "outputParameters": {"y": "${c.output.n}"}},
)
PLAIN: Final = Case([step("c", n="${workflow.input.x}"), step("e", n="${c.output}")])
FAILS: Final = Case([step("a", n=1), fails("c"), step("e")])
HANGS: Final = Case([step("c", hold=True)])
INLINE: Final = Case([step("c", n=1)]).definition()

ROUND: Final = step("a", n="${again.output.iteration}")
GIVEN: Final = {"a": 2, "o": {"k": "v"}, "l": [1, 2], "n": None, "f": 1.0, "g": 1.5, "t": True}

CASES: Final = {
    "one step": Case([step("a", n="${workflow.input.x}")], {"x": 1}),
    "a step that fails": Case([step("a", n=1), fails("b"), step("c")]),
    "a step that fails for good": Case([step("a", status="FAILED_WITH_TERMINAL_ERROR")]),
    "a step that fails twice": Case([fails("a", retryCount=1)]),
    "an optional step that fails": Case([fails("a", optional=True), step("b", n="${a.output}")]),
    "fork and join": Case(
        [fork("f", [step("a", n=1)], [step("b", give={})]), join("j", "a", "b")],
    ),
    "a step behind a join": Case(
        [
            fork("f", [step("a", n=1), step("c", n=3)], [step("b", n=2)]),
            join("j", "c", "b"),
            step("d", n="${j.output}", was="${a.output.n}"),
        ],
    ),
    "a branch that fails": Case(
        [fork("f", [fails("a")], [step("b", hold=True)]), join("j", "a", "b"), step("c")]
    ),
    "an optional branch that fails": Case(
        [
            fork("f", [fails("a", optional=True)], [step("b", n=2)]),
            join("j", "a", "b"),
            step("c", n="${j.output}", was="${j.status}"),
        ]
    ),
    "a switch": Case(
        [switch("s", "${workflow.input.x}", x=[step("a", n=1)]), step("b", n="${s.output}")],
        {"x": "x"},
    ),
    "a switch without a case": Case(
        [switch("s", "${workflow.input.x}", x=[step("a", n=1)]), step("b", n="${s.output}")],
        {"x": "y"},
    ),
    "a switch with a default": Case([switch("s", 3, [step("d", n=1)], x=[step("a", n=1)])]),
    "a switch with an empty case": Case([switch("s", "x", [step("d", n=1)], x=[])]),
    "variables": Case(
        [
            step("a", n="${workflow.variables.x}"),
            system("SET_VARIABLE", "s", x="${workflow.input.x}", y={"k": "n ${a.output.n}"}),
            step("b", n="${workflow.variables.x}", all="${workflow.variables}"),
            system("SET_VARIABLE", "s2", x=None, y="${workflow.variables.y.k}"),
        ],
        {"x": 2},
        {
            "variables": {"x": 1, "d": [1]},
            "outputParameters": {
                "all": "${workflow.variables}",
                "in": "${s2.input}",
                "name": "${s.taskDefName}",
                "type": "${s.taskType}",
            },
        },
    ),
    "a variable in a branch": Case(
        [
            fork(
                "f",
                [system("SET_VARIABLE", "s", x=2), step("a", n="${workflow.variables.x}")],
                [step("b", n="${workflow.variables.x}")],
            ),
            join("j", "a", "b"),
        ],
        more={"variables": {"x": 1}},
    ),
    **{
        f"terminate {status}": Case(
            [
                step("a", n=1),
                system(
                    "TERMINATE",
                    "end",
                    terminationStatus=status,
                    terminationReason="found ${a.output.n}",
                    workflowOutput={"n": "${a.output.n}"},
                ),
                step("b"),
            ],
            more={"outputParameters": {"other": "${a.output.n}"}},
        )
        for status in ("COMPLETED", "FAILED", "TERMINATED")
    },
    "terminate without output": Case(
        [step("a", n=1), system("TERMINATE", "end", terminationStatus="COMPLETED")],
        more={"outputParameters": {"other": "${a.output.n}"}},
    ),
    "terminate with a list": Case(
        [system("TERMINATE", "end", terminationStatus="FAILED", workflowOutput=[1, {"k": None}])],
    ),
    "terminate in a case": Case(
        [
            step("a", n=1),
            switch(
                "s",
                "${a.output.n}",
                **{"1": [system("TERMINATE", "end", terminationStatus="COMPLETED")]},
            ),
            step("b"),
        ],
    ),
    "terminate beside others": Case(
        [
            fork(
                "f",
                [step("a"), system("TERMINATE", "end", terminationStatus="COMPLETED")],
                [step("b", hold=True)],
            ),
            join("j", "a", "b"),
        ],
    ),
    "wait": Case(
        [system("WAIT", "w", duration="1 secs"), step("a", n="${w.output}", was="${w.input}")]
    ),
    "wait at the end": Case(
        [step("a", n=1), system("WAIT", "w", duration="${workflow.input.d}")], {"d": "0s"}
    ),
    "wait until": Case(
        [
            system("WAIT", "w", until="2020-01-01 00:00 UTC"),
            system("WAIT", "v", until="2020-01-01 00:00 GMT+02:00"),
            system("WAIT", "u", until="2020-01-01 00:00 +0200"),
            step("a", n="${u.status}"),
        ],
    ),
    "a wait that is cancelled": Case(
        [
            fork("f", [system("WAIT", "w", duration="1 day")], [step("a"), fails("b")]),
            join("j", "w", "b"),
        ],
    ),
    "a loop": Case(
        [
            loop(
                "again",
                "if ($.again['iteration'] < $.limit) { true; } else { false; }",
                step("a", n="${again.output.iteration}"),
                step("b", n="${a.output.n}", last="${b.output.n}", was="${a.iteration}"),
                limit="${workflow.input.x}",
            ),
            step("c", n="${again.output}", a="${a.output.n}", name="${a.referenceTaskName}"),
        ],
        {"x": 3},
    ),
    "a loop by what its steps give": Case(
        [loop("again", "$.a.n < 2 && $.v == $.a.n", ROUND, v="${a.output.n}")]
    ),
    "a loop with a switch": Case(
        [
            loop(
                "again",
                "$.again.iteration < 3",
                ROUND,
                switch("s", "${a.output.n}", **{"2": [step("two", n=2)]}),
                step("e", n="${two.output.n}"),
            ),
        ],
    ),
    "a loop with a fork": Case(
        [
            loop(
                "again",
                "$.again.iteration < 2",
                fork("f", [ROUND], [step("b", n=2)]),
                join("j", "a", "b"),
                step("e", n="${j.output}"),
            ),
        ],
    ),
    "a loop that fails": Case(
        [
            loop(
                "again",
                "true",
                ROUND,
                switch("s", "${a.output.n}", **{"2": [fails("two")]}),
            ),
            step("c"),
        ],
    ),
    "a loop with an optional step": Case(
        [loop("again", "$.again.iteration < 2", fails("a", optional=True), step("b")), step("c")]
    ),
    "a condition that fails": Case([loop("again", "$.nope.x < 3", step("a")), step("c")]),
    "a condition that is a number": Case([loop("again", "2 - $.again.iteration", step("a"))]),
    "a condition that is a text": Case([loop("again", "'true'", step("a"))]),
    "a loop with variables": Case(
        [
            loop(
                "again",
                "$.again.iteration < 2",
                step("a", n="${workflow.variables.x}"),
                system("SET_VARIABLE", "s", x="${again.output.iteration}"),
            ),
            step("c", n="${workflow.variables.x}"),
        ],
    ),
    "a loop with a wait": Case(
        [loop("again", "$.again.iteration < 2", system("WAIT", "w", duration="0s"), ROUND)]
    ),
    "a loop with an end": Case(
        [
            loop(
                "again",
                "true",
                ROUND,
                switch(
                    "s",
                    "${a.output.n}",
                    **{"2": [system("TERMINATE", "end", terminationStatus="COMPLETED")]},
                ),
            ),
        ],
    ),
    **{
        f"a switch by {text}": Case([script("s", text, GIVEN, **{"2": [step("a", n=1)]})])
        for text in (
            *("$.a", "$.a + ''", "$.missing", "$.n", "$.f", "$.g", "4 / 2", "0.1 + 0.2", "$.t"),
            *("$.l.every(x => x > 0)", "$.l.find(x => x > 1)", "$.l.findIndex(x => x > 1)"),
            *("$.l.slice(0, 1).concat([5]).join()", "$.l.map(x => x * 2).join('-')", "$.o.k"),
            *("if ($.a > 1) { 'yes' } else { 'no' }", "nope", "$.l.at(-1)", "[...$.l].length"),
        )
    },
    "a dynamic fork": Case(
        [dynamic("d"), join("j"), step("z", n="${j.output}", was="${d.output}")],
        {
            "tasks": [
                {**step("a", own=1), "type": "SIMPLE"},
                by_hand("b", n="${workflow.input.v}"),
            ],
            "inputs": {"a": {"n": 1, "own": 2}, "other": {"n": 3}},
            "v": 7,
        },
    ),
    "a dynamic fork of nothing": Case(
        [dynamic("d"), join("j"), step("z", n="${j.output}")], {"tasks": [], "inputs": {}}
    ),
    "a dynamic fork without a list": Case([dynamic("d"), join("j")], {"tasks": 5, "inputs": {}}),
    "a dynamic fork without inputs": Case([dynamic("d"), join("j")], {"tasks": [step("a")]}),
    "a dynamic fork that fails": Case(
        [dynamic("d"), join("j"), step("z")],
        {"tasks": [fails("a"), step("b", hold=True)], "inputs": {}},
    ),
    "a dynamic fork with an optional step": Case(
        [dynamic("d"), join("j"), step("z", n="${j.output}")],
        {"tasks": [fails("a", optional=True), step("b", n=2)], "inputs": {}},
    ),
    "a dynamic fork in a branch": Case(
        [
            fork("f", [dynamic("d"), join("i")], [step("c", n=3)]),
            join("j", "i", "c"),
            step("z", n="${j.output}"),
        ],
        {"tasks": [step("a", n=1)], "inputs": {}},
    ),
    "a person": Case([by_hand("a", n=1), step("b", n="${a.output.n}")]),
    "a person who fails": Case([by_hand("a", status="FAILED", give={"half": 1}), step("b")]),
    "a person who fails twice": Case(
        [{**by_hand("a", status="FAILED", give={}), "retryCount": 1}, step("b")]
    ),
    "a person who fails for good": Case(
        [{**by_hand("a", status="FAILED_WITH_TERMINAL_ERROR"), "retryCount": 1}]
    ),
    "an optional person who fails": Case(
        [{**by_hand("a", status="FAILED"), "optional": True}, step("b", n="${a.status}")]
    ),
    "people beside a step": Case(
        [
            fork("f", [by_hand("a", n=1)], [step("b", n=2)], [by_hand("c", n=3)]),
            join("j", "a", "b", "c"),
            step("d", n="${j.output}", was="${a.taskType}"),
        ]
    ),
    "a person in a loop": Case(
        [loop("again", "$.again.iteration < 2", by_hand("a", n="${again.output.iteration}"))]
    ),
    "a person whose workflow ends": Case(
        [fork("f", [by_hand("a", hold=True)], [fails("b")]), join("j", "a", "b")]
    ),
    "a sub workflow": Case(
        [
            calls("s", x="${workflow.input.v}"),
            step("z", n="${s.output.y}", all="${s.output}", was="${s.status}", t="${s.taskType}"),
        ],
        {"v": 3},
        children=(CHILD,),
    ),
    "a sub workflow without output": Case([calls("s", x={"k": [1]})], children=(PLAIN,)),
    "a sub workflow without a version": Case(
        [calls("s", version=None, x=1), step("z", n="${s.input.subWorkflowVersion}")],
        children=(CHILD,),
    ),
    "a sub workflow without input": Case(
        [calls("s"), step("z", n="${s.output}")],
        children=(Case([step("c", n="${workflow.input}")], more={"inputTemplate": {"d": 5}}),),
    ),
    "a sub workflow that stands in the step": Case(
        [
            {
                **calls("s", x=1),
                "subWorkflowParam": {"name": "x", "version": 7, "workflowDefinition": INLINE},
            }
        ],
    ),
    "a sub workflow that fails": Case([calls("s", x=1), step("z")], children=(FAILS,)),
    "a sub workflow that fails twice": Case(
        [again(calls("s", x="${workflow.input.v}"), 1)], {"v": 2}, children=(FAILS,)
    ),
    "an optional sub workflow that fails": Case(
        [{**calls("s", x=1), "optional": True}, step("z", n="${s.output.half}", was="${s.status}")],
        children=(FAILS,),
    ),
    "a sub workflow that is terminated": Case(
        [calls("s", x=1), step("z")], children=(HANGS,), ends="child"
    ),
    "an optional sub workflow that is terminated": Case(
        [{**calls("s", x=1), "optional": True}, step("z")], children=(HANGS,), ends="child"
    ),
    "a workflow that is terminated while its sub workflow runs": Case(
        [calls("s", x=1), step("z")], children=(HANGS,), ends="parent"
    ),
    **{
        f"a sub workflow that ends {status}": Case(
            [calls("s", x=1), step("z", n="${s.output.n}")],
            children=(
                Case(
                    [
                        step("c", n=1),
                        system(
                            "TERMINATE",
                            "end",
                            terminationStatus=status,
                            terminationReason="found",
                            workflowOutput={"n": "${c.output.n}"},
                        ),
                        step("e"),
                    ]
                ),
            ),
        )
        for status in ("COMPLETED", "FAILED", "TERMINATED")
    },
    "a workflow that fails while its sub workflow runs": Case(
        [
            # So that the child has begun.
            fork("f", [calls("s", x=1)], [system("WAIT", "w", duration="2 secs"), fails("e")]),
            join("j", "s", "e"),
        ],
        children=(HANGS,),
    ),
    "a sub workflow in a sub workflow": Case(
        [calls("s", 1, x=1), step("z", n="${s.output.w}")],
        children=(
            CHILD,
            Case(
                [calls("m", x="${workflow.input.x}"), step("o", n="${m.output.y}")],
                more={"outputParameters": {"w": "${m.output.y}", "o": "${o.output.n}"}},
            ),
        ),
    ),
    "a failure two deep": Case(
        [calls("s", 1, x=1), step("z")],
        children=(FAILS, Case([step("b", n=1), calls("m", x=1)])),
    ),
    "a sub workflow in a loop": Case(
        [
            loop("again", "$.again.iteration < 2", calls("s", x="${again.output.iteration}")),
            step("z", n="${again.output.iteration}", y="${s.output.y}"),
        ],
        children=(CHILD,),
    ),
    "sub workflows in a fork": Case(
        [
            fork("f", [calls("s", x=1)], [calls("u", x=2), step("b", n="${u.output.y}")]),
            join("j", "s", "b"),
            step("z", n="${j.output.s.y}", b="${j.output.b}"),
        ],
        children=(CHILD,),
    ),
    "a sub workflow in a case": Case(
        [switch("w", "x", x=[calls("s", x=1)]), step("z", n="${s.output.y}")], children=(CHILD,)
    ),
    "a person in a sub workflow": Case(
        [calls("s", x=1), step("z", n="${s.output.n}")], children=(Case([by_hand("c", n=4)]),)
    ),
    "a switch at the end": Case([step("a", n=1), switch("s", None, x=[step("b")])]),
}


TRIES = 4


@pytest.mark.parametrize("name", CASES)
def test_both_brokers_do_the_same(name: str, truth: ConductorClient, tmp_path: Path) -> None:
    register(truth)
    local = here(tmp_path, CASES[name])
    # The server decides in several threads: what becomes of a step that is cut short depends on
    # which of them is first. What happens here has to be one of the things that happen there.
    for _ in range(TRIES - 1):
        if local == on_conductor(truth, CASES[name]):
            return
    assert local == on_conductor(truth, CASES[name])


def test_a_sub_workflow_that_is_not_there_fails_there_and_is_refused_here(
    truth: ConductorClient,
) -> None:
    """There it is looked for when the step begins; here before the first one does."""
    register(truth)
    case = Case([{**calls("s", x=1), "subWorkflowParam": {"name": "nobody", "version": 1}}])
    there = on_conductor(truth, case)
    assert (there["status"], there["tasks"]["s 0"]["status"]) == ("FAILED", "FAILED")
    _, (problem,) = with_children(case.definition(), lambda *_: None, "workflow")
    assert "calls workflow 'nobody' version 1, which is not here" in str(problem)
