"""Asking guards: of names, of the directory as an author sees it, and of tables (T3, X5)."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from perago.attempt.progress import AttemptProgress
from perago.attempt.working_copy import WorkingCopy
from perago.errors import (
    GuardrailViolation,
    PeragoError,
    PostGuardrailViolation,
    PreGuardrailViolation,
    TaskFailed,
)
from perago.ports import Engine
from perago.protocol import data, events
from perago.protocol.data import DataGuard, GuardResult, Measure, Table
from perago.protocol.guard import FileGuard, Tree
from perago.protocol.outcome import describe
from perago.protocol.values import Phase
from perago.tasks.spec import Guard

Tables = dict[str, Table | None]
_LOOK = "look at these rows, then correct the data or the task"
_CORRECT = "correct the data or the task"
_SAMPLE_WIDTH = 60


@dataclass(frozen=True, slots=True)
class GuardRunner:
    """The guards of one attempt; tables are looked at last, each once for all its guards."""

    progress: AttemptProgress
    engine: Engine
    working_copy: WorkingCopy
    verdicts: list[GuardResult] = field(default_factory=list)
    """What the guards of tables said, in order: before the body, then after it."""
    before: Tables = field(default_factory=dict)
    passed: list[GuardResult] = field(default_factory=list)

    def pre(self, guards: Sequence[Guard], later: Sequence[Guard]) -> None:
        """Ask about the input; note of it what later guards will compare with (drift from A)."""
        with self.progress.phase(Phase.PRE):
            self._check(Phase.PRE, guards)
            drifting = [one for one in later if isinstance(one, DataGuard) and one.needs_before]
            self.before.update(self._measure(drifting))

    def post(self, guards: Sequence[Guard]) -> None:
        """Ask about what will be published."""
        with self.progress.phase(Phase.POST):
            self.passed.clear()
            self._check(Phase.POST, guards)

    def _check(self, phase: Phase, guards: Sequence[Guard]) -> None:
        """Ask all guards of a phase; the first violation ends it, tables tell all of theirs."""
        plain = [guard for guard in guards if not isinstance(guard, DataGuard)]
        tree = self.working_copy.tree() if plain else Tree.of(())
        for guard in plain:
            name, problem = ask(guard, tree, self.working_copy.root)
            found = problem.message if problem else None
            self.progress.event(events.GuardAsked(str(phase), name, found))
            if problem is not None:
                raise _violated(phase, f"{name}: {found}", problem.remedy)
        broken: list[GuardResult] = []
        for verdict in self._judge([guard for guard in guards if isinstance(guard, DataGuard)]):
            self.progress.event(_asked(phase, verdict))
            self.verdicts.append(verdict)
            (broken if verdict.violation else self.passed).append(verdict)
        if broken:
            remedy = _LOOK if any(verdict.samples for verdict in broken) else _CORRECT
            raise _violated(phase, "; ".join(map(_told, broken)), remedy)

    def metadata(self) -> dict[str, str]:
        """Say in the commit what its tables were checked for."""
        return {"perago.data_guards": data.summary(self.passed)} if self.passed else {}

    def _judge(self, guards: Sequence[DataGuard]) -> Iterator[GuardResult]:
        tables = self._measure(guards)
        for guard in guards:
            table, before = tables[guard.table], self.before.get(guard.table)
            verdict = guard.verdict(table, before)
            if table is not None and not table.problem and verdict.violation:
                verdict = self._with_samples(verdict, guard.witnesses(table, before))
            yield verdict

    def _with_samples(self, verdict: GuardResult, witnesses: Sequence[Measure]) -> GuardResult:
        """Add some rows to look at, where the guard itself has none to show."""
        table = self.engine.measure(verdict.table, witnesses) if witnesses else None
        if table is None or table.problem or verdict.samples:
            return verdict
        samples = [sample for item in witnesses for sample in table.found[item].samples]
        return replace(verdict, samples=tuple(samples[: data.SAMPLES]))

    def _measure(self, guards: Iterable[DataGuard]) -> Tables:
        """Measure each table once, for all that is asked of it."""
        wanted: dict[str, list[Measure]] = {}
        for guard in guards:
            asked = [*guard.measures(), *guard.measures(written=True)]
            wanted.setdefault(guard.table, []).extend(asked)
        return {table: self.engine.measure(table, asked) for table, asked in wanted.items()}


def ask(
    guard: FileGuard | Callable[..., None], tree: Tree, root: Path | None
) -> tuple[str, GuardrailViolation | None]:
    """Run one guard; anything an author's guard raises but a violation is its bug (T3).

    A bug of the guard says nothing of the input: whatever it raised, a retry is possible.
    """
    if isinstance(guard, FileGuard):
        text = guard.violation(tree)
        return str(guard), GuardrailViolation(text) if text else None
    name = getattr(guard, "__name__", type(guard).__name__)
    with authored(f"guard {name}"):
        try:
            guard(root)
        except GuardrailViolation as violation:
            said = violation.message or "violated"
            return name, GuardrailViolation(said, remedy=violation.remedy)
        except PeragoError as error:
            raise TaskFailed(
                f"guard {name} raised {describe(error)}",
                remedy="correct the guard: it passes, or raises GuardrailViolation",
            ) from error
    return name, None


@contextmanager
def authored(what: str) -> Iterator[None]:
    """Run an author's code: what is no ``Exception`` is a failure too, not the executor's end.

    An exit is one wherever it is met. An interrupt may come from somebody at a terminal, but not in
    an executor process, which ignores the signal.
    """
    try:
        yield
    except (Exception, SystemExit):
        raise
    except BaseException as error:
        interrupt = isinstance(error, KeyboardInterrupt)
        if interrupt and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            raise
        raise TaskFailed(f"{what} raised {describe(error)}", remedy="raise TaskFailed") from error


def _told(verdict: GuardResult) -> str:
    samples = " | ".join(map(_begun, verdict.samples))
    return f"{verdict.guard}: {verdict.violation}" + (f" (for example {samples})" * bool(samples))


def _begun(sample: str) -> str:
    """Leave out the columns that would push the remedy out of the reason; the journal has all."""
    kept, *rest = sample.split(", ")
    while rest and len(kept) + len(rest[0]) < _SAMPLE_WIDTH:
        kept += f", {rest.pop(0)}"
    return f"{kept}, …" if rest else kept


def _asked(phase: Phase, found: GuardResult) -> events.GuardAsked:
    return events.GuardAsked(
        phase=str(phase),
        guard=found.guard,
        violation=found.violation,
        table=found.table,
        rows=found.rows,
        offending=found.offending,
        samples=found.samples,
    )


def _violated(phase: Phase, text: str, remedy: str) -> GuardrailViolation:
    if phase is Phase.PRE:
        return PreGuardrailViolation(text, remedy=remedy or "correct the input")
    return PostGuardrailViolation(text, remedy=remedy or "correct the task")
