from __future__ import annotations

from typing import Any

import pytest

from perago.errors import WorkflowDefinitionError
from perago.workflow.controls import Controls, RetryLogic, TimeoutAction
from perago.workflow.parsing import parse_workflow
from perago.workflow.tasks import ForkTask, JoinTask, SimpleTask, SwitchTask
from tests.broker.definitions import Json, flow, fork, join, parsed, simple, switch

KNOWN = ("t", "w", "render")


def refused(definition: object) -> WorkflowDefinitionError:
    with pytest.raises(WorkflowDefinitionError) as caught:
        parse_workflow(definition, KNOWN, "flow.json")
    return caught.value


def test_everything_that_is_honoured() -> None:
    workflow = parse_workflow(
        flow(
            simple(
                "a",
                inputParameters={"params": {"n": 1}},
                optional=True,
                startDelay=5,
                retryCount=7,
                taskDefinition={"name": "t", "retryLogic": "LINEAR_BACKOFF", "retryCount": 1},
                description="first",
            ),
            fork("f", [simple("b"), simple("c")], [simple("d")]),
            join("j", "c", "d"),
            switch("s", "${workflow.input.kind}", [simple("z")], big=[simple("y")]),
            description="words",
            version=3,
            inputParameters=["kind"],
            inputTemplate={"kind": "small"},
            outputParameters={"x": "${c.output.result}"},
            timeoutSeconds=60,
            timeoutPolicy="TIME_OUT_WF",
            variables={"v": 1},
            ownerEmail="a@example.com",
            restartable=True,
            createTime=0,
            failureWorkflow="",
        ),
        KNOWN,
    )
    first, forked, joined, switched = workflow.tasks
    assert isinstance(first, SimpleTask)
    assert (first.optional, first.start_delay, first.retry_count) == (True, 5, 7)
    assert first.controls == Controls(retry_logic=RetryLogic.LINEAR_BACKOFF, retry_count=1)
    assert first.controls_among({}).retry_count == 7
    assert isinstance(forked, ForkTask)
    assert [len(branch) for branch in forked.branches] == [2, 1]
    assert isinstance(joined, JoinTask)
    assert joined.join_on == ("c", "d")
    assert isinstance(switched, SwitchTask)
    assert [task.reference_name for task in switched.chosen("big")] == ["y"]
    assert [task.reference_name for task in switched.chosen("small")] == ["z"]
    assert workflow.started_with({"x": 1}) == {"kind": "small", "x": 1}
    assert workflow.started_with({"kind": "big"}) == {"kind": "big"}
    assert (workflow.version, workflow.timeout_seconds) == (3, 60)
    assert workflow.timeout_policy is TimeoutAction.TIME_OUT_WF


def test_a_definition_as_conductor_exports_it() -> None:
    """A server writes out every field; what says nothing is no reason to refuse."""
    exported = simple(
        "a",
        decisionCases={},
        defaultCase=[],
        forkTasks=[],
        startDelay=0,
        joinOn=[],
        optional=False,
        defaultExclusiveJoinTask=[],
        asyncComplete=False,
        loopOver=[],
        retryCount=None,
        evaluatorType=None,
        expression=None,
        onStateChange={},
        permissive=False,
        rateLimited=None,
        sink=None,
        taskDefinition=None,
        cacheConfig=None,
    )
    parsed(exported, ownerApp="", workflowStatusListenerEnabled=False, metadata={})


def test_type_defaults_to_simple() -> None:
    parsed({"name": "t", "taskReferenceName": "a"})


KINDS_NOT_RUN = [
    *("DYNAMIC", "HTTP", "INLINE"),
    *("EVENT", "DECISION", "JSON_JQ_TRANSFORM", "LAMBDA"),
    *("KAFKA_PUBLISH", "EXCLUSIVE_JOIN", "START_WORKFLOW", "NOOP", "USER_DEFINED", "simple"),
]


@pytest.mark.parametrize("kind", KINDS_NOT_RUN)
def test_a_kind_that_is_not_run_is_refused_by_name(kind: str) -> None:
    error = refused(flow(simple("a"), {**simple("b"), "type": kind}))
    assert f"'{kind}'" in error.message
    assert "tasks[1]" in error.message
    assert '"b"' in error.message
    assert "Conductor server" in error.remedy


@pytest.mark.parametrize("nested", ["fork", "case", "default"])
def test_a_kind_that_is_not_run_is_found_wherever_it_is(nested: str) -> None:
    bad = {**simple("b"), "type": "HTTP"}
    definition = {
        "fork": flow(fork("f", [simple("a"), bad]), join("j", "a")),
        "case": flow(switch("s", 1, one=[bad])),
        "default": flow(switch("s", 1, [bad])),
    }[nested]
    assert "'HTTP'" in refused(definition).message


TASK_FIELDS_NOT_HONOURED: Json = {
    "asyncComplete": True,
    "onStateChange": {"onStart": []},
    "loopCondition": "true",
    "loopOver": [simple("x")],
    "dynamicTaskNameParam": "n",
    "dynamicForkTasksParam": "n",
    "dynamicForkTasksInputParamName": "n",
    "subWorkflowParam": {"name": "w"},
    "sink": "kafka",
    "joinOn": ["x"],
    "decisionCases": {"x": []},
    "caseValueParam": "x",
    "scriptExpression": "1",
    "cacheConfig": {"ttl": 1},
    "permissive": True,
}


@pytest.mark.parametrize("key", TASK_FIELDS_NOT_HONOURED)
def test_a_task_field_that_is_not_honoured_is_refused_by_name(key: str) -> None:
    error = refused(flow(simple("a", **{key: TASK_FIELDS_NOT_HONOURED[key]})))
    assert f"tasks[0].{key}" in error.message
    assert error.remedy == f"remove {key}"


@pytest.mark.parametrize("key", ["optional", "startDelay", "retryCount"])
def test_task_fields_that_mean_nothing_on_a_system_task(key: str) -> None:
    definition = flow({**switch("s", 1, [simple("a")]), key: 1 if key != "optional" else True})
    assert key in refused(definition).message


@pytest.mark.parametrize(
    "key", ["failureWorkflow", "inputSchema", "outputSchema", "cacheConfig", "onStateChange"]
)
def test_a_workflow_field_that_is_not_honoured_is_refused_by_name(key: str) -> None:
    error = refused(flow(simple("a"), **{key: {"name": "x"}}))
    assert f"flow.json: {key}" in error.message


MISTAKES: dict[str, tuple[object, str, str]] = {
    "not an object": ([1], "flow.json is not a JSON object", "WorkflowDef"),
    "no name": ({"tasks": [simple("a")]}, "name is missing", "name"),
    "blank name": (flow(simple("a"), name=" "), "name must be a text that is not blank", "name"),
    "no tasks": ({"name": "x"}, "tasks is empty", "at least one"),
    "tasks is no list": (flow(tasks={"a": 1}), "tasks must be a list", "tasks"),
    "task is no object": (flow(tasks=["a"]), "tasks[0] must be an object", "task"),
    "task without a name": (flow({"taskReferenceName": "a"}), "tasks[0].name is missing", "name"),
    "task without a reference name": (
        flow({"name": "t"}),
        "tasks[0].taskReferenceName is missing",
        "taskReferenceName",
    ),
    "reference name used twice": (
        flow(simple("a"), fork("f", [simple("a")]), join("j", "a")),
        "(f).forkTasks[0][0] (a).taskReferenceName is also used by tasks[0] (a)",
        "its own",
    ),
    "unknown task": (
        flow(simple("a", "rendr")),
        "tasks[0] (a).name 'rendr' is not a known task",
        "did you mean 'render'?",
    ),
    "misspelled task field": (
        flow(simple("a", inputParamters={})),
        "tasks[0].inputParamters is not a field",
        "did you mean 'inputParameters'?",
    ),
    "misspelled workflow field": (
        flow(simple("a"), outputParameter={}),
        "outputParameter is not a field",
        "did you mean 'outputParameters'?",
    ),
    "retryCount is text": (
        flow(simple("a", retryCount="3")),
        'retryCount must be a whole number of at least 0, not "3"',
        "retryCount",
    ),
    "negative startDelay": (flow(simple("a", startDelay=-1)), "startDelay must be", "startDelay"),
    "optional is text": (flow(simple("a", optional="no")), "must be true or false", "optional"),
    "inputParameters is a list": (
        flow(simple("a", inputParameters=[])),
        "inputParameters must be an object",
        "inputParameters",
    ),
    "workflow inputParameters is an object": (
        flow(simple("a"), inputParameters={"a": 1}),
        "inputParameters must be a list",
        "inputParameters",
    ),
    "version is text": (flow(simple("a"), version="1"), "version must be", "version"),
    "schemaVersion 1": (flow(simple("a"), schemaVersion=1), "schemaVersion must be 2", "schema"),
    "unknown timeoutPolicy": (
        flow(simple("a"), timeoutPolicy="NEVER"),
        "timeoutPolicy must be one of",
        "timeoutPolicy",
    ),
    "workflow timeoutPolicy RETRY": (
        flow(simple("a"), timeoutPolicy="RETRY"),
        "timeoutPolicy must be TIME_OUT_WF or ALERT_ONLY",
        "timeoutPolicy",
    ),
    "unknown retryLogic in an embedded definition": (
        flow(simple("a", taskDefinition={"retryLogic": "SOMETIMES"})),
        "taskDefinition: retryLogic must be one of FIXED",
        "retryLogic",
    ),
    "embedded definition of another task": (
        flow(simple("a", taskDefinition={"name": "x"})),
        "taskDefinition.name is not 't'",
        "same name",
    ),
    "embedded inputTemplate": (
        flow(simple("a", taskDefinition={"inputTemplate": {"a": 1}})),
        "inputTemplate is not applied here",
        "inputParameters",
    ),
    "fork without branches": (flow(fork("f"), join("j", "a")), "forkTasks is empty", "branch"),
    "fork with an empty branch": (
        flow(fork("f", [simple("a")], []), join("j", "a")),
        "forkTasks[1] is empty",
        "branch",
    ),
    "fork without a join": (
        flow(fork("f", [simple("a")])),
        "(f) is a FORK_JOIN without a JOIN after it",
        "add a JOIN",
    ),
    "fork with a join further down": (
        flow(fork("f", [simple("a")]), simple("b"), join("j", "a")),
        "without a JOIN after it",
        "add a JOIN",
    ),
    "nested fork without a join": (
        flow(fork("f", [fork("g", [simple("a")])]), join("j", "g")),
        "(g) is a FORK_JOIN without a JOIN",
        "add a JOIN",
    ),
    "join without a fork": (flow(simple("a"), join("j", "a")), "without a FORK_JOIN", "after"),
    "join on nothing": (flow(fork("f", [simple("a")]), join("j")), "joinOn is empty", "last task"),
    "join on an unknown task": (
        flow(fork("f", [simple("alpha")]), join("j", "alhpa")),
        "joinOn names 'alhpa'",
        "did you mean 'alpha'?",
    ),
    "join on a task outside the fork": (
        flow(simple("a"), fork("f", [simple("b")]), join("j", "a")),
        "joinOn names 'a'",
        "known are: b",
    ),
    "join on a task that a switch may leave out": (
        flow(fork("f", [switch("s", 1, one=[simple("a")])]), join("j", "a")),
        "joinOn names 'a', which does not run in every run of 'f'",
        "known are: s",
    ),
    "switch in python": (
        flow({**switch("s", 1), "evaluatorType": "python"}),
        "evaluatorType 'python' is not run here",
        "value-param",
    ),
    "switch by what is not a script": (
        flow({**switch("s", 1), "evaluatorType": "graaljs", "expression": "$.on ==="}),
        "(s).expression is not JavaScript: SyntaxError",
        "correct expression",
    ),
    "switch without an expression": (
        flow({**switch("s", 1), "expression": None}),
        "(s).expression is missing",
        "expression",
    ),
    "switch on an unknown parameter": (
        flow({**switch("s", 1), "expression": "onn"}),
        "expression 'onn' is not one of the inputParameters",
        "did you mean 'on'?",
    ),
    "case is no list": (
        flow({**switch("s", 1), "decisionCases": {"x": simple("a")}}),
        "(s).decisionCases.x must be a list",
        "x",
    ),
    "reading an unknown task": (
        flow(simple("load"), simple("b", inputParameters={"x": ["${laod.output.y}"]})),
        "tasks[1] (b).inputParameters.x[0]: ${laod.output.y} names 'laod'",
        "did you mean 'load'?",
    ),
    "reading an unknown field of a task": (
        flow(simple("a"), simple("b", inputParameters={"x": "${a.outputs.y}"})),
        "has no field 'outputs'",
        "did you mean 'output'?",
    ),
    "reading an unknown field of the workflow": (
        flow(simple("a", inputParameters={"x": "${workflow.secrets.key}"})),
        "has no field 'secrets'",
        "known are",
    ),
    "reading itself": (
        flow(simple("a", inputParameters={"x": "${a.output.y}"})),
        "reads 'a', which need not be finished when 'a' starts",
        "before it",
    ),
    "reading a later task": (
        flow(simple("a", inputParameters={"x": "${b.output.y}"}), simple("b")),
        "reads 'b', which need not be finished when 'a' starts",
        "before it",
    ),
    "reading a parallel task": (
        flow(
            fork("f", [simple("a")], [simple("b", inputParameters={"x": "${a.output}"})]),
            join("j", "a", "b"),
        ),
        "reads 'a', which need not be finished when 'b' starts",
        "JOIN",
    ),
    "reading a branch its join does not wait for": (
        flow(
            fork("f", [simple("a")], [simple("b")]),
            join("j", "a"),
            simple("c", inputParameters={"x": "${b.output}"}),
        ),
        "reads 'b'",
        "JOIN",
    ),
    "output reads an unknown task": (
        flow(simple("a"), outputParameters={"x": "${b.output}"}),
        "outputParameters.x: ${b.output} names 'b'",
        "known are",
    ),
    "output wants a task id": (
        flow(simple("a"), outputParameters={"x": "${CPEWF_TASK_ID}"}),
        "names 'CPEWF_TASK_ID'",
        "known are",
    ),
    "a filter in an expression": (
        flow(simple("a", inputParameters={"x": "${workflow.input.a[?(@.b)]}"})),
        "flow.json: tasks[0] (a).inputParameters.x: expression '${workflow.input.a[?(@.b)]}'",
        "names, [number]",
    ),
    "an expression that is not closed": (
        flow(simple("a", inputParameters={"x": "echo ${HOME"})),
        "is not closed",
        "$${",
    ),
    "a task called workflow": (
        flow(simple("workflow")),
        "'workflow' has a meaning of its own",
        "another name",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_sentence_with_place_and_remedy(mistake: str) -> None:
    definition, message, remedy = MISTAKES[mistake]
    error = refused(definition)
    assert error.message.startswith("flow.json")
    assert message in error.message
    assert remedy in error.remedy
    assert "\n" not in str(error)


def test_what_may_be_read() -> None:
    reads: Json = {"params": ["${a.output.x}", "${s.output}", "${y.output}", "${j.output.b.x}"]}
    parsed(
        simple("a"),
        switch("s", "${a.output.kind}", big=[simple("y", inputParameters={"p": "${a.status}"})]),
        fork("f", [simple("b")], [simple("c", inputParameters={"p": "${a.output}"})]),
        join("j", "b", "c"),
        simple("z", inputParameters=reads),
        outputParameters={"all": "${z.output} ${y.taskId}"},
    )


def test_controls_of_a_taskdef() -> None:
    taskdef: dict[str, Any] = {
        "name": "t",
        "retryCount": 2,
        "retryLogic": "EXPONENTIAL_BACKOFF",
        "retryDelaySeconds": 5,
        "maxRetryDelaySeconds": 30,
        "backoffJitterMs": 10,
        "timeoutPolicy": "RETRY",
        "timeoutSeconds": 7,
        "totalTimeoutSeconds": 70,
        "responseTimeoutSeconds": 600,
        "concurrentExecLimit": 1,
        "rateLimitPerFrequency": 2,
        "rateLimitFrequencyInSeconds": 3,
    }
    assert Controls.from_taskdef(taskdef) == Controls(
        retry_count=2,
        retry_logic=RetryLogic.EXPONENTIAL_BACKOFF,
        retry_delay_seconds=5,
        max_retry_delay_seconds=30,
        backoff_jitter_ms=10,
        timeout_policy=TimeoutAction.RETRY,
        timeout_seconds=7,
        total_timeout_seconds=70,
        concurrent_exec_limit=1,
        rate_limit_per_frequency=2,
        rate_limit_frequency_in_seconds=3,
    )
    assert Controls.from_taskdef({"name": "t", "concurrentExecLimit": None}) == Controls()


def test_the_sdk_repeats_join_on_on_the_fork() -> None:
    parsed({**fork("f", [simple("a")]), "joinOn": ["a"]}, join("j", "a"))
