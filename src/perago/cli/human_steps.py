"""What the commands of ``perago human`` do, and what they say of it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from perago.app.human import LOCAL, Human, human_at
from perago.cli.human_refusals import UNTOUCHED, gone, lost, published_by, published_for, refusal_of
from perago.cli.screen import emit, fields, note, plain, say, short
from perago.cli.seed import read_pairs
from perago.errors import UsageError
from perago.human.attempts import HumanStep, Place, refuse_result, reject, submit, take
from perago.human.directory import TakenDirectory, find_taken
from perago.protocol.outcome import Outcome
from perago.protocol.values import Status
from perago.settings import keys_withheld

if TYPE_CHECKING:
    from perago.workflow.human import HumanTask


@contextmanager
def opened(*, quiet: bool, project: Path | None = None) -> Iterator[Human]:
    """Open what people need, as seen from a directory; a bar shows how far a transfer is."""
    from perago.cli.progress import share_bar

    with share_bar("bytes") as bar:

        def watch(message: dict[str, object]) -> None:
            done, total = message.get("done"), message.get("total")
            if not quiet and isinstance(done, int) and isinstance(total, int) and total:
                bar(done, total)

        with human_at(project or Path.cwd(), watch) as human, keys_withheld(os.environ):
            yield human


def found_step(human: Human, given: str, modules: Sequence[str] | None) -> HumanStep:
    """Find a step that waits, with its declaration."""
    engine, task = human.find(given)
    return human.step(engine, task, modules or ())


@contextmanager
def opened_taken(
    directory: Path, *, quiet: bool
) -> Iterator[tuple[Human, HumanStep, TakenDirectory]]:
    """Open a directory that was taken, from where it was taken; refuse one whose attempt is over.

    The working directory becomes that of the project: its modules are found from there.
    """
    taken = find_taken(directory)
    try:
        os.chdir(taken.project)
    except OSError as error:
        raise UsageError(
            f"the project {taken.project} cannot be entered: {error.strerror}",
            remedy=f"put it back; {UNTOUCHED}",
        ) from None
    with opened(quiet=quiet, project=taken.project) as human:
        engine = human.engine(taken.where)
        task = engine.tasks.task(taken.attempt.task_id)
        if task is None or not task.open or task.attempt != taken.attempt:
            raise lost(human, taken, task)
        yield human, human.step(engine, task, taken.modules), taken


def take_step(
    human: Human, step: HumanStep, directory: Path | None, edits: Path | None, *, anyway: bool
) -> TakenDirectory:
    """Make the directory, then write down who has it."""
    person, task = human.person, step.task
    others = [name for name in task.claimed_by if name != person]
    if others and not anyway:
        raise UsageError(
            f"step {task.step!r} is taken by {', '.join(others)}",
            remedy="agree with them, or take it --anyway: who submits first completes it",
        )
    place = Place(task.where, human.project, (step.definition.body.source,))
    to = directory or Path(f"{_word(task.step)}-{task.attempt.task_id[:8]}")
    if to.resolve().is_relative_to(human.home.path.resolve()):
        raise UsageError(f"{to} lies in the home of Perago", remedy="name a place elsewhere")
    taken = take(step, to, person, place, find_taken(edits) if edits else None)
    human.engine(task.where).tasks.note_claims(task.taken_by(person))
    return taken


def given_result(pairs: Sequence[str]) -> dict[str, Any]:
    """Read ``--result``."""
    return read_pairs(list(pairs), "--result")


def submit_step(
    human: Human,
    step: HumanStep,
    taken: TakenDirectory | None,
    pairs: Sequence[str],
    *,
    as_json: bool,
) -> None:
    """Submit, say what came of it, and go on with the run."""
    result = given_result(pairs)
    refuse_result(step, result)
    if not as_json:
        result = _asked_for(step, result)
    _submitted(human, step, taken, result, as_json=as_json)


def approve_step(
    human: Human, step: HumanStep, comment: str, *, approved: bool, sure: bool, as_json: bool
) -> None:
    """Answer an approval, after a look at what it is about."""
    if not step.body.approval or step.workspace is None:
        raise UsageError(
            f"step {step.task.step!r} is not an approval",
            remedy="do it with: perago human take, perago human submit",
        )
    ref = step.workspace.ref
    if not sure:
        if as_json or not sys.stdin.isatty():
            raise UsageError(
                "there is no terminal to ask on",
                remedy="look at it with 'perago human show', then answer with --yes",
            )
        describe(step, as_json=False)
        question = f"approve {ref[:12]}" if approved else f"say no to {ref[:12]}"
        if not typer.confirm(question):
            raise typer.Exit(1)
    result = {"approved": approved, "comment": comment, "ref": ref}
    _submitted(human, step, None, result, as_json=as_json)


def reject_step(
    human: Human, step: HumanStep, reason: str, *, terminal: bool, as_json: bool
) -> None:
    """Fail a step, and go on with the run."""
    if not reason.strip():
        raise UsageError("--reason is empty", remedy="say why it cannot be done")
    status = Status.FAILED_WITH_TERMINAL_ERROR if terminal else Status.FAILED
    person = human.person
    said = f"rejected by {person}: {reason}"
    published = published_for(step)
    if not reject(step, person, Outcome(status, reason=said)):
        raise gone(step.task)
    if not as_json:
        say(f"[yellow]rejected[/yellow]  {plain(step.task.step)}")
        if published is not None:
            who = plain(published.metadata.get("perago.person", "a person"))
            say(f"  what {who} published for it, {short(published.id)}, counts as abandoned now")
    _go_on(human, step.task, {"status": str(status), "reason": said}, as_json=as_json)


def describe(step: HumanStep, *, as_json: bool) -> None:
    """Show what a step asks for."""
    from perago.cli.human_version import difference_of

    task, definition = step.task, step.definition
    params = task.input.get("params")
    spec = definition.workspace
    guards = {
        "pre": [str(guard) for guard in spec.pre] if spec else [],
        "post": [str(guard) for guard in spec.post] if spec else [],
    }
    shown = {
        **task.as_json(),
        "description": definition.description,
        "params": params,
        "workspace": step.workspace.as_json() if step.workspace else None,
        **guards,
        "result": definition.result.document("validation"),
    }
    found = difference_of(step) if step.body.approval else None
    if as_json:
        emit(shown | ({"difference": found.as_json()} if found else {}))
        return
    say(f"[bold]{plain(task.step)}[/bold]  {plain(definition.description or '')}".rstrip())
    workspace = step.workspace
    fields(
        {
            "task": plain(task.attempt.task_id),
            "workflow": plain(f"{task.workflow} {task.attempt.workflow_instance_id}"),
            "taken by": plain(", ".join(task.claimed_by)) or "-",
            "params": plain(params),
            **(
                {"version": f"{plain(workspace.repository)} {short(workspace.ref)}"}
                if workspace
                else {}
            ),
            **{f"{when} guard": plain(g) for when, each in guards.items() for g in each},
            "result": plain(", ".join(_properties(step)) or "-"),
        }
    )
    if found is not None:
        found.say()
        say(f"[dim]answer:[/dim] perago human approve {plain(task.attempt.task_id[:8])}")
    elif definition.workspace is not None and definition.writable:
        say(f"[dim]do it:[/dim] perago human take {plain(task.attempt.task_id[:8])}")


# --- what came of it ------------------------------------------------------------------------------


def _submitted(
    human: Human,
    step: HumanStep,
    taken: TakenDirectory | None,
    result: Mapping[str, Any],
    *,
    as_json: bool,
) -> None:
    try:
        done = submit(step, human.person, taken, result)
    except KeyboardInterrupt:
        note(f"interrupted before it was reported; submit again; {UNTOUCHED}")
        raise
    if not done.outcome.completed or not done.accepted:
        raise refusal_of(human, step, taken, done.outcome)
    if not as_json:
        _tell(step, done.outcome)
    _go_on(human, step.task, done.outcome.output, as_json=as_json)


def _tell(step: HumanStep, outcome: Outcome) -> None:
    if ref := published_by(step, outcome):
        done = f"published {short(ref)}"
    else:
        done = f"completed, at {short(step.workspace.ref)}" if step.workspace else "completed"
    say(f"[green]✓[/green] {plain(step.task.step)}  {done}")


def _go_on(human: Human, task: HumanTask, output: Mapping[str, object], *, as_json: bool) -> None:
    """Go on with a local run; one on Conductor goes on by itself."""
    from perago.app.local import home_of
    from perago.cli.ending import conclude, exit_code_of
    from perago.cli.seed import chosen_store
    from perago.cli.session import Session

    told = {"task_id": task.attempt.task_id, "where": task.where, "output": dict(output)}
    run_id = task.attempt.workflow_instance_id
    if elsewhere := _goes_on_elsewhere(human, task):
        if as_json:
            emit(told)
        else:
            say(elsewhere)
        return
    home, settings, kind = home_of(human.settings), human.settings, chosen_store(task.store)
    session = Session(home, settings, 2, settings.execution_mode, kind, as_json)
    ended = session.resume(run_id)
    if not as_json:
        again = "perago restart " + ended.id
        conclude(ended, home_of(settings), again, [], as_json=False)
        return
    emit({**told, "run": {"id": ended.id, "status": ended.status, "output": ended.output}})
    if code := exit_code_of(ended, home_of(settings)):
        raise typer.Exit(code)


def _goes_on_elsewhere(human: Human, task: HumanTask) -> str:
    """Say who takes the run further, where that is not this command."""
    from perago.process.lock import held, run_lock

    run_id = task.attempt.workflow_instance_id
    if task.where != LOCAL:
        return f"[dim]follow it:[/dim] perago watch {plain(run_id)}"
    state = human.home.state
    waited_for = held(run_lock(human.home.locks, state.root(state.run(run_id)).id))
    return "[dim]the run goes on where it is waited for[/dim]" if waited_for else ""


# --- the result -----------------------------------------------------------------------------------


def _properties(step: HumanStep) -> Mapping[str, Any]:
    found = step.definition.result.document("validation").get("properties", {})
    return found if isinstance(found, Mapping) else {}


def _asked_for(step: HumanStep, given: dict[str, Any]) -> dict[str, Any]:
    """Ask for the fields of the result that were not given, where somebody is there."""
    if not sys.stdin.isatty() or not sys.stdout.isatty():
        return given
    needed = step.definition.result.required()
    for name, about in _properties(step).items():
        if name in given:
            continue
        hint = about.get("description") or about.get("type") or "JSON"
        text = typer.prompt(f"{name} ({hint})", default="", show_default=False)
        if text or name in needed:
            given |= _read_as(about, name, text)
    return given


def _read_as(about: Mapping[str, Any], name: str, text: str) -> dict[str, Any]:
    """Read an answer: a text as it is, anything else as JSON."""
    if about.get("type") == "string":
        return {name: text}
    if about.get("type") == "boolean" and text.lower() in {"y", "yes", "n", "no"}:
        return {name: text.lower().startswith("y")}
    return read_pairs([f"{name}={text}"], name)


def _word(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "step"
