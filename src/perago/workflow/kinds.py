"""Which kinds of task and which fields of Conductor are run, harmless, or refused."""

from __future__ import annotations

from typing import Final

from perago.workflow.fields import Fields, shown
from perago.workflow.spelling import close_to
from perago.workflow.tasks import TaskKind

_NOT_RUN_HERE: Final = "run this workflow on a Conductor server, or build it of " + ", ".join(
    TaskKind
)

_COMMON: Final = frozenset({"name", "taskReferenceName", "type", "inputParameters"})
_OF_WORK: Final = _COMMON | {"optional", "startDelay", "retryCount", "taskDefinition"}
_USED: Final = {
    TaskKind.SIMPLE: _OF_WORK,
    # Conductor gives a step to people at once, whatever its startDelay says.
    TaskKind.HUMAN: _OF_WORK - {"startDelay"},
    # The SDK repeats the joinOn of the JOIN on its FORK_JOIN; only the JOIN acts on it.
    TaskKind.FORK_JOIN: _COMMON | {"forkTasks", "joinOn"},
    TaskKind.FORK_JOIN_DYNAMIC: _COMMON
    | {"dynamicForkTasksParam", "dynamicForkTasksInputParamName"},
    TaskKind.JOIN: _COMMON | {"joinOn"},
    TaskKind.SWITCH: _COMMON | {"evaluatorType", "expression", "decisionCases", "defaultCase"},
    TaskKind.SET_VARIABLE: _COMMON,
    TaskKind.TERMINATE: _COMMON,
    TaskKind.WAIT: _COMMON,
    TaskKind.DO_WHILE: _COMMON | {"evaluatorType", "loopCondition", "loopOver"},
    TaskKind.SUB_WORKFLOW: _OF_WORK | {"subWorkflowParam"},
}
_HARMLESS_ON_TASK: Final = frozenset({"description", "metadata", "rateLimited", "workflowTaskType"})
# Conductor writes every field into an exported definition, so these are refused when they say
# something, not when they are null, false, 0 or empty.
_REFUSED_ON_TASK: Final = frozenset(
    {
        *("asyncComplete", "cacheConfig", "caseExpression", "caseValueParam"),
        *("defaultExclusiveJoinTask", "dynamicForkJoinTasksParam"),
        *("dynamicTaskNameParam", "items", "joinStatus"),
        *("onStateChange", "permissive", "scriptExpression", "sink"),
        "subWorkflow",
    }
)
_OF_SOME_KIND: Final = frozenset[str]().union(*_USED.values())

_USED_BY_WORKFLOW: Final = frozenset(
    {
        *("name", "version", "description", "tasks", "inputParameters", "inputTemplate"),
        *("outputParameters", "timeoutSeconds", "timeoutPolicy", "variables", "schemaVersion"),
    }
)
_HARMLESS_ON_WORKFLOW: Final = frozenset(
    {
        *("ownerEmail", "ownerApp", "createTime", "updateTime", "createdBy", "updatedBy"),
        *("accessPolicy", "tags", "overwriteTags", "restartable", "metadata", "maskedFields"),
        *("workflowStatusListenerEnabled", "workflowStatusListenerSink", "rateLimitConfig"),
        *("failureWorkflowVersion", "enforceSchema", "$schema"),
    }
)
_REFUSED_ON_WORKFLOW: Final = frozenset(
    {"failureWorkflow", "inputSchema", "outputSchema", "cacheConfig", "onStateChange", "triggers"}
)
_SCHEMA_VERSION: Final = 2


def kind_of(fields: Fields) -> TaskKind:
    """Read ``type``; a kind that is not run here is refused by name."""
    name = fields.text("type", TaskKind.SIMPLE)
    if name not in list(TaskKind):
        reference = fields.data.get("taskReferenceName")
        raise fields.refuse(
            "type", f"{name!r} of task {shown(reference)} is not run here", _NOT_RUN_HERE
        )
    return TaskKind(name)


def check_task_fields(fields: Fields, kind: TaskKind) -> None:
    """Refuse, by name, fields of a task that would be ignored."""
    for key, value in fields.data.items():
        if key in _USED[kind] or key in _HARMLESS_ON_TASK:
            continue
        if key in _OF_SOME_KIND or key in _REFUSED_ON_TASK:
            if value:
                raise fields.refuse(key, f"is not honoured here on a {kind} task", f"remove {key}")
            continue
        raise fields.refuse(
            key,
            "is not a field of a workflow task",
            close_to(key, _OF_SOME_KIND | _HARMLESS_ON_TASK),
        )


def check_workflow_fields(fields: Fields) -> None:
    """Refuse, by name, fields of a WorkflowDef that would be ignored."""
    for key, value in fields.data.items():
        if key in _USED_BY_WORKFLOW or key in _HARMLESS_ON_WORKFLOW:
            continue
        if key in _REFUSED_ON_WORKFLOW:
            if value:
                raise fields.refuse(key, "is not honoured here", f"remove {key}")
            continue
        raise fields.refuse(
            key, "is not a field of a WorkflowDef", close_to(key, _USED_BY_WORKFLOW)
        )
    if fields.integer("schemaVersion", _SCHEMA_VERSION) != _SCHEMA_VERSION:
        raise fields.wrong("schemaVersion", str(_SCHEMA_VERSION))
