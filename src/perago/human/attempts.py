"""What a person does becomes an attempt: the same steps, fences and guards as a program's (Q11).

*take* and *check* are attempts that publish nothing and report nothing. *submit* is a whole one,
whose body takes over the person's files; what does not come through is not reported, so that it can
be repeated.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from perago.attempt.lifecycle import transact
from perago.attempt.progress import AttemptProgress
from perago.attempt.report import report
from perago.attempt.services import AttemptServices
from perago.errors import PeragoError, RuntimeConfigError, TaskFailed, UsageError
from perago.human.directory import WORKSPACE, TakenDirectory, refuse_inside
from perago.human.files import Copies, PersonsFiles, Version, carry_over, hand_out, read_files
from perago.ports import Store
from perago.protocol.job import split_input
from perago.protocol.outcome import Outcome
from perago.protocol.values import Claim, Person, WorkspaceInput
from perago.tasks.bodies import HumanBody
from perago.tasks.definition import TaskDefinition
from perago.tasks.json_schemas import JsonSchema
from perago.transfer.filling import filling, tree_of
from perago.workflow.human import HumanTask

Result = Mapping[str, object]
_NOTHING = ".perago-nothing"


@dataclass(frozen=True, slots=True)
class HumanStep:
    """A step that waits for a person, with the declaration of its task and what attempts need."""

    task: HumanTask
    definition: TaskDefinition
    body: HumanBody
    store: Store
    recorded: Callable[[Claim], AttemptServices]
    """Makes what an execution needs that publishes."""
    unrecorded: Callable[[], AttemptServices]
    """Makes what an execution needs that publishes nothing: it leaves no events."""

    @property
    def workspace(self) -> WorkspaceInput | None:
        """Read the version that the step begins with."""
        has = self.definition.workspace is not None
        return split_input(self.task.input, workspace=has)[0]

    @property
    def version(self) -> Version:
        """Return that version as files."""
        workspace, spec = self.workspace, self.definition.workspace
        if workspace is None or spec is None:
            raise UsageError(f"step {self.task.step!r} has no workspace")
        return Version(self.store, workspace, spec.selection)


@dataclass(frozen=True, slots=True)
class Submitted:
    """What became of a submit: its outcome, and whether the engine took it."""

    outcome: Outcome
    accepted: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """Where a directory was taken: the engine, the project, the modules."""

    where: str
    project: Path
    modules: tuple[str, ...]


def take(
    step: HumanStep, directory: Path, person: str, place: Place, edits: TakenDirectory | None
) -> TakenDirectory:
    """Check a step as an attempt would, and give the person a directory with its files."""
    claim = step.task.claim(_new_id(), Person(person))
    directory = directory.resolve()
    refuse_inside(directory)
    if edits is not None and not step.definition.writable:
        raise UsageError(
            f"step {step.task.step!r} only reads: there is no place for your edits",
            remedy="take it without --edits",
        )
    if edits is not None and edits.attempt.task_def_name != step.task.attempt.task_def_name:
        raise UsageError(
            f"{edits.path} was taken for the task {edits.attempt.task_def_name!r}",
            remedy=f"name a directory that was taken for {step.task.attempt.task_def_name!r}",
        )
    taken = TakenDirectory(
        path=directory,
        where=place.where,
        project=place.project,
        modules=place.modules,
        store=step.task.store,
        attempt=step.task.attempt,
        workspace=step.workspace,
        person=person,
        # A later submit may complete what an earlier one of the same attempt published.
        submits=edits.submits if edits and edits.attempt == step.task.attempt else (),
    )
    with filling(directory) as draft:
        target = tree_of(draft) / WORKSPACE

        def copy(root: Path | None) -> Result:
            if root is not None:
                hand_out(root, target, directory)
            return {}

        _rehearse(step, claim, copy, guarded=False)
        if edits is not None:
            old = _version_of(edits, step.version)
            carry_over(edits, old, step.version, target, directory)
        # With the files or not at all: a directory without its marker is nobody's.
        taken.write(tree_of(draft))
    return taken


def changes(step: HumanStep, taken: TakenDirectory) -> PersonsFiles:
    """Compare the person's files with the version they began with."""
    return read_files(taken, step.version)


def check(step: HumanStep, taken: TakenDirectory, result: Result | None) -> None:
    """Ask the guards of the result, and its schema where it is known; publish nothing."""
    if result is not None:
        refuse_result(step, result)
    files = changes(step, taken)
    _rehearse(
        step,
        step.task.claim(_new_id(), Person(taken.person)),
        _HandedIn(step, lambda: files, result or {}),
        guarded=True,
        any_result=result is None,
    )


def submit(step: HumanStep, person: str, taken: TakenDirectory | None, result: Result) -> Submitted:
    """Publish the person's work and complete the step; what fails is not reported."""
    refuse_result(step, result)
    if taken is None and step.definition.writable:
        raise UsageError(
            f"step {step.task.step!r} is about files, and none were taken",
            remedy=f"take it first: perago human take {step.task.attempt.task_id[:8]} DIR",
        )
    execution_id = _new_id()
    if taken is not None:
        taken = taken.with_submit(execution_id)
    claim = step.task.claim(execution_id, Person(person, frozenset(taken.submits if taken else ())))
    services = step.recorded(claim)
    handed = _HandedIn(step, partial(changes, step, taken) if taken else None, result)
    body = replace(step.body, hand_in=handed, code=execution_id)
    definition = _without_files(step.definition) if taken is None else step.definition
    if (spec := definition.workspace) and taken is not None:
        quiet = spec.model_copy(update={"post": (*spec.post, handed.still)})
        definition = replace(definition, workspace=quiet)
    outcome = transact(claim, replace(definition, body=body), services)
    if not outcome.completed:
        return Submitted(outcome)
    return Submitted(outcome, _report(claim, outcome, services))


def reject(step: HumanStep, person: str, outcome: Outcome) -> bool:
    """Fail the step; tell whether the engine took it."""
    claim = step.task.claim(_new_id(), Person(person))
    return _report(claim, outcome, step.unrecorded())


def _report(claim: Claim, outcome: Outcome, services: AttemptServices) -> bool:
    progress = AttemptProgress(services.journal, services.clock)
    return report(claim.attempt, outcome, services.broker, progress)


def _rehearse(
    step: HumanStep,
    claim: Claim,
    body: Callable[[Path | None], object],
    *,
    guarded: bool,
    any_result: bool = True,
) -> None:
    """Run an attempt that reads only; the reason of a refusal is raised.

    What the body itself refuses is about the person's files, and is said without its phase.
    """
    refused: list[PeragoError] = []

    def hand_in(root: Path | None) -> object:
        try:
            return body(root)
        except PeragoError as error:
            refused.append(error)
            raise

    definition = replace(step.definition, body=replace(step.body, hand_in=hand_in))
    if any_result:
        definition = replace(definition, result=JsonSchema("any object", {"type": "object"}))
    if spec := definition.workspace:
        changed = {"read_only": True} | ({} if guarded else {"post": ()})
        definition = replace(definition, workspace=spec.model_copy(update=changed))
    outcome = transact(claim, definition, step.unrecorded())
    if not outcome.completed:
        if refused:
            raise TaskFailed(refused[0].message, remedy=refused[0].remedy)
        raise TaskFailed(outcome.reason)


class _HandedIn:
    """Brings a person's files and result to an attempt, and sees that they hold still."""

    def __init__(
        self, step: HumanStep, read: Callable[[], PersonsFiles] | None, result: Result
    ) -> None:
        self._step = step
        self._read = read
        self._result = result
        self._files: PersonsFiles | None = None

    def __call__(self, root: Path | None) -> Result:
        if self._read is not None and root is not None:
            files = self._read()
            if files.steps and not self._step.definition.writable:
                raise UsageError(
                    f"step {self._step.task.step!r} only reads: your changes would be lost",
                    remedy="undo them, or hand them in with a step that publishes",
                )
            what = Copies("your files", root, "make room where PERAGO_WORKSPACE_ROOT is")
            files.apply(files.steps.uploads, files.steps.removed, root, what)
            self._files = files
        return self._result

    def still(self, _: Path) -> None:
        """Refuse files that were changed after they were read: half of something may be in them."""
        if self._files is not None:
            self._files.refuse_changed()


def refuse_result(step: HumanStep, result: Result) -> None:
    """Refuse an answer to an approval that is not about the version of the step (Q14)."""
    ref = step.workspace.ref if step.workspace else ""
    if step.body.approval and result.get("ref") != ref:
        raise UsageError(
            f"step {step.task.step!r} is an approval, and is about {ref[:12]}",
            remedy="answer it with: perago human approve",
        )


def _without_files(definition: TaskDefinition) -> TaskDefinition:
    """Bring no file to an attempt that reads only and has no guard: nobody looks at them."""
    spec = definition.workspace
    if spec is None or spec.guards:
        return definition
    return replace(definition, workspace=spec.model_copy(update={"include": (_NOTHING,)}))


def _version_of(taken: TakenDirectory, like: Version) -> Version:
    """Return the version a directory was taken at, as the files of the same task."""
    if taken.workspace is None:
        raise UsageError(f"{taken.path} has no files", remedy="take the step without --edits")
    return replace(like, workspace=taken.workspace)


def _new_id() -> str:
    return uuid.uuid4().hex


def human_body(definition: TaskDefinition) -> HumanBody:
    """Return the body of a task that people do."""
    if not isinstance(definition.body, HumanBody):
        raise RuntimeConfigError(
            f"task {definition.name!r} is not done by a person in {definition.body.source}",
            remedy="name the manifest that declares it with human = true",
        )
    return definition.body
