"""Parse a Conductor WorkflowDef; what is not run here is refused by name before a run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from perago.errors import WorkflowDefinitionError
from perago.workflow.controls import Controls, TimeoutAction
from perago.workflow.definition import Workflow
from perago.workflow.fields import Fields
from perago.workflow.javascript import check_script
from perago.workflow.kinds import (
    check_task_fields,
    check_workflow_fields,
    kind_of,
)
from perago.workflow.looping import check_loop, like_a_round
from perago.workflow.order import order_of
from perago.workflow.references import check_references
from perago.workflow.spelling import close_to
from perago.workflow.subworkflow import PARAM, check_param
from perago.workflow.tasks import (
    DynamicForkTask,
    ForkTask,
    JoinTask,
    LoopTask,
    SetVariableTask,
    SimpleTask,
    SubWorkflowTask,
    SwitchTask,
    TaskKind,
    Tasks,
    TerminateTask,
    WaitTask,
    WorkflowTask,
    every,
)
from perago.workflow.termination import check_termination
from perago.workflow.waiting import check_wait

_JAVASCRIPT = frozenset({"javascript", "graaljs"})


def parse_workflow(
    definition: object, known_tasks: Collection[str], source: str = "workflow"
) -> Workflow:
    """Turn the JSON of a WorkflowDef into a checked value.

    ``known_tasks`` are the task definitions that exist; ``source`` names the file in messages.
    """
    if not isinstance(definition, Mapping):
        raise WorkflowDefinitionError(
            f"{source} is not a JSON object", remedy="give a Conductor WorkflowDef"
        )
    fields = Fields(source, "", definition)
    check_workflow_fields(fields)
    name = fields.text("name")
    tasks = _Parser(known_tasks).tasks(fields, "tasks")
    if not tasks:
        raise fields.refuse("tasks", "is empty", "add at least one task")
    _refuse_twins(source, tasks)
    _refuse_stray_joins(source, tasks)
    order = order_of(definition.get("tasks"))
    outputs = fields.mapping("outputParameters")
    variables = fields.mapping("variables")
    check_references(source, tasks, order, outputs, variables)
    return Workflow(
        name=name,
        version=fields.integer("version", 1),
        tasks=tasks,
        order=order,
        description=fields.text("description", ""),
        input_parameters=fields.texts("inputParameters"),
        input_template=fields.mapping("inputTemplate"),
        output_parameters=outputs,
        variables=variables,
        timeout_seconds=fields.number("timeoutSeconds", 0),
        timeout_policy=_workflow_timeout_policy(fields),
    )


def _workflow_timeout_policy(fields: Fields) -> TimeoutAction:
    policy = fields.choice("timeoutPolicy", TimeoutAction, TimeoutAction.ALERT_ONLY)
    if policy is TimeoutAction.RETRY:
        raise fields.wrong("timeoutPolicy", "TIME_OUT_WF or ALERT_ONLY")
    return policy


@dataclass(frozen=True, slots=True)
class _Parser:
    known_tasks: Collection[str]

    def tasks(self, fields: Fields, key: str) -> Tasks:
        """Parse a list of workflow tasks."""
        found: list[WorkflowTask] = []
        for index, item in enumerate(fields.items(key)):
            task = self._task(fields.below(key, index, item))
            if isinstance(task, JoinTask) and found and isinstance(found[-1], DynamicForkTask):
                task = replace(task, fork=found[-1].reference_name)
            found.append(task)
        return tuple(found)

    def _task(self, fields: Fields) -> WorkflowTask:
        kind = kind_of(fields)
        check_task_fields(fields, kind)
        name = fields.text("name")
        reference_name = fields.text("taskReferenceName")
        named = Fields(fields.source, f"{fields.where} ({reference_name})", fields.data)
        make: dict[TaskKind, Callable[[Fields, str, str], WorkflowTask]] = {
            TaskKind.SIMPLE: self._simple,
            TaskKind.HUMAN: self._simple,
            TaskKind.FORK_JOIN: self._fork,
            TaskKind.FORK_JOIN_DYNAMIC: self._dynamic_fork,
            TaskKind.JOIN: self._join,
            TaskKind.SWITCH: self._switch,
            TaskKind.SET_VARIABLE: self._set_variable,
            TaskKind.TERMINATE: self._terminate,
            TaskKind.WAIT: self._wait,
            TaskKind.DO_WHILE: self._loop,
            TaskKind.SUB_WORKFLOW: self._sub_workflow,
        }
        return make[kind](named, name, reference_name)

    def _simple(self, fields: Fields, name: str, reference_name: str) -> SimpleTask:
        if name not in self.known_tasks:
            raise fields.refuse(
                "name", f"{name!r} is not a known task", close_to(name, self.known_tasks)
            )
        return simple_task(fields, name, reference_name)

    def _fork(self, fields: Fields, name: str, reference_name: str) -> ForkTask:
        listed = fields.items("forkTasks")
        if not listed:
            raise fields.refuse("forkTasks", "is empty", "give at least one branch of tasks")
        branches: list[Tasks] = []
        for index, branch in enumerate(listed):
            key = f"forkTasks[{index}]"
            inner = self.tasks(Fields(fields.source, fields.where, {key: branch}), key)
            if not inner:
                raise fields.refuse(key, "is empty", "remove the branch or add a task to it")
            branches.append(inner)
        return ForkTask(name, reference_name, fields.where, tuple(branches))

    def _dynamic_fork(self, fields: Fields, name: str, reference_name: str) -> DynamicForkTask:
        given = fields.mapping("inputParameters")
        named = []
        for key in ("dynamicForkTasksParam", "dynamicForkTasksInputParamName"):
            named.append(parameter := fields.text(key))
            if parameter not in given:
                raise fields.refuse(
                    key,
                    f"{parameter!r} is not one of the inputParameters",
                    close_to(parameter, given),
                )
        return DynamicForkTask(name, reference_name, fields.where, given, *named)

    def _join(self, fields: Fields, name: str, reference_name: str) -> JoinTask:
        return JoinTask(name, reference_name, fields.where, fields.texts("joinOn"))

    def _switch(self, fields: Fields, name: str, reference_name: str) -> SwitchTask:
        evaluator = fields.text("evaluatorType", "value-param")
        script = evaluator in _JAVASCRIPT
        if not script and evaluator != "value-param":
            raise fields.refuse(
                "evaluatorType",
                f"{evaluator!r} is not run here",
                "use javascript, or value-param and name one of the inputParameters",
            )
        expression, given = fields.text("expression"), fields.mapping("inputParameters")
        if script:
            check_script(fields, "expression")
        elif expression not in given:
            raise fields.refuse(
                "expression",
                f"{expression!r} is not one of the inputParameters",
                close_to(expression, given),
            )
        cases = fields.mapping("decisionCases")
        inside = {
            value: self.tasks(Fields(fields.source, fields.path("decisionCases"), cases), value)
            for value in cases
        }
        default = self.tasks(fields, "defaultCase")
        return SwitchTask(
            name, reference_name, fields.where, expression, given, inside, default, script
        )

    def _set_variable(self, fields: Fields, name: str, reference_name: str) -> SetVariableTask:
        given = fields.mapping("inputParameters")
        return SetVariableTask(name, reference_name, fields.where, given)

    def _terminate(self, fields: Fields, name: str, reference_name: str) -> TerminateTask:
        given = fields.mapping("inputParameters")
        check_termination(Fields(fields.source, fields.path("inputParameters"), given))
        return TerminateTask(name, reference_name, fields.where, given)

    def _wait(self, fields: Fields, name: str, reference_name: str) -> WaitTask:
        given = fields.mapping("inputParameters")
        check_wait(Fields(fields.source, fields.path("inputParameters"), given))
        return WaitTask(name, reference_name, fields.where, given)

    def _loop(self, fields: Fields, name: str, reference_name: str) -> LoopTask:
        given, body = fields.mapping("inputParameters"), self.tasks(fields, "loopOver")
        if not body:
            raise fields.refuse("loopOver", "is empty", "give at least one task")
        check_loop(fields, given, body)
        if (evaluator := fields.text("evaluatorType", "javascript")) not in _JAVASCRIPT:
            raise fields.refuse(
                "evaluatorType", f"{evaluator!r} is not run here", "use javascript, or leave it out"
            )
        condition = check_script(fields, "loopCondition")
        return LoopTask(name, reference_name, fields.where, given, condition, body)

    def _sub_workflow(self, fields: Fields, name: str, reference_name: str) -> SubWorkflowTask:
        param = Fields(fields.source, fields.path(PARAM), fields.mapping(PARAM))
        called, definition = check_param(param)
        where = f"{fields.source}: {fields.where}: workflow {called!r}"
        parse_workflow(definition, self.known_tasks, where)
        retries = fields.data.get("retryCount")
        return SubWorkflowTask(
            name=name,
            reference_name=reference_name,
            where=fields.where,
            input=fields.mapping("inputParameters"),
            called=called,
            version=None if param.data.get("version") is None else param.integer("version", 1),
            definition=definition,
            optional=fields.flag("optional"),
            start_delay=fields.number("startDelay", 0),
            retry_count=None if retries is None else fields.integer("retryCount", 0),
            controls=_retries_of_a_call(fields, name),
        )


def simple_task(fields: Fields, name: str, reference_name: str) -> SimpleTask:
    """Read a step that is somebody's work."""
    retries = fields.data.get("retryCount")
    return SimpleTask(
        name=name,
        reference_name=reference_name,
        where=fields.where,
        input=fields.mapping("inputParameters"),
        optional=fields.flag("optional"),
        start_delay=fields.number("startDelay", 0),
        retry_count=None if retries is None else fields.integer("retryCount", 0),
        controls=_embedded_controls(fields, name),
        kind=kind_of(fields),
    )


def _embedded_controls(fields: Fields, name: str) -> Controls | None:
    """Read ``taskDefinition``: in Conductor an embedded definition goes before the registered."""
    embedded = fields.mapping("taskDefinition")
    if not embedded:
        return None
    inner = Fields(fields.source, fields.path("taskDefinition"), embedded)
    if inner.text("name", name) != name:
        raise inner.refuse("name", f"is not {name!r}", "give both the same name")
    if embedded.get("inputTemplate"):
        raise inner.refuse(
            "inputTemplate", "is not applied here", "put the values into inputParameters"
        )
    return Controls.from_taskdef(embedded, f"{fields.source}: {inner.where}")


def _retries_of_a_call(fields: Fields, name: str) -> Controls | None:
    """Read the ``taskDefinition`` of a SUB_WORKFLOW, of which only the retries are applied."""
    found = _embedded_controls(fields, name)
    for key in ("timeoutSeconds", "totalTimeoutSeconds"):
        inner = Fields(
            fields.source, fields.path("taskDefinition"), fields.mapping("taskDefinition")
        )
        if inner.data.get(key):
            raise inner.refuse(
                key, "is not applied here to a SUB_WORKFLOW", "give the workflow that is called one"
            )
    return found


def _refuse_twins(source: str, tasks: Tasks) -> None:
    seen: dict[str, WorkflowTask] = {}
    for task in every(tasks):
        first = seen.setdefault(task.reference_name, task)
        if first is not task:
            raise WorkflowDefinitionError(
                f"{source}: {task.where}.taskReferenceName is also used by {first.where}",
                remedy="give every task its own taskReferenceName",
            )
    if alike := like_a_round(tasks):
        raise WorkflowDefinitionError(
            f"{source}: {alike.where}.taskReferenceName {alike.reference_name!r} is the name of a"
            " round of a loop's step",
            remedy="choose another taskReferenceName",
        )


def _refuse_stray_joins(source: str, tasks: Tasks) -> None:
    """Each FORK_JOIN is followed by its JOIN, and no JOIN stands alone."""
    for index, task in enumerate(tasks):
        before = tasks[index - 1] if index else None
        behind = tasks[index + 1] if index + 1 < len(tasks) else None
        if isinstance(task, ForkTask | DynamicForkTask):
            if not isinstance(behind, JoinTask):
                raise WorkflowDefinitionError(
                    f"{source}: {task.where} is a FORK_JOIN without a JOIN after it",
                    remedy="add a JOIN as the next task of the same list",
                )
            for branch in task.branches if isinstance(task, ForkTask) else ():
                _refuse_stray_joins(source, branch)
        elif isinstance(task, JoinTask):
            _refuse_stray_join(source, task, before)
        elif isinstance(task, SwitchTask):
            for case in (*task.cases.values(), task.default):
                _refuse_stray_joins(source, case)
        elif isinstance(task, LoopTask):
            _refuse_stray_joins(source, task.body)


def _refuse_stray_join(source: str, join: JoinTask, before: WorkflowTask | None) -> None:
    if isinstance(before, DynamicForkTask):
        if join.join_on:
            raise WorkflowDefinitionError(
                f"{source}: {join.where}.joinOn names tasks, but a dynamic fork is before it",
                remedy="leave it empty: all tasks of the fork are waited for",
            )
        return
    if not isinstance(before, ForkTask):
        raise WorkflowDefinitionError(
            f"{source}: {join.where} is a JOIN without a FORK_JOIN before it",
            remedy="put it directly after the FORK_JOIN it joins",
        )
    if not join.join_on:
        raise WorkflowDefinitionError(
            f"{source}: {join.where}.joinOn is empty",
            remedy="name the last task of each branch of the FORK_JOIN",
        )
    _refuse_foreign_join_on(source, join, before)


def _refuse_foreign_join_on(source: str, join: JoinTask, fork: ForkTask) -> None:
    certain = {name for branch in fork.branches for name in _certain(branch)}
    for name in join.join_on:
        if name not in certain:
            raise WorkflowDefinitionError(
                f"{source}: {join.where}.joinOn names {name!r}, which does not run in every run"
                f" of {fork.reference_name!r}",
                remedy=close_to(name, certain),
            )


def _certain(tasks: Tasks) -> Iterator[str]:
    """Name the tasks a branch runs whatever its SWITCHes choose."""
    for task in tasks:
        yield task.reference_name
        if isinstance(task, ForkTask):
            for branch in task.branches:
                yield from _certain(branch)
