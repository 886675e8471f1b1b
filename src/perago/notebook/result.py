"""What became of a run: its steps, the files it published, tables and history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, cast

from perago.app.local import Home, StoreKind, home_of, open_store
from perago.errors import RuntimeConfigError, UsageError
from perago.notebook import shown
from perago.notebook.files import PublishedFiles, RepositoryVersion
from perago.notebook.history import Log, log_of
from perago.ports import Store
from perago.settings import Settings
from perago.workflow.family import Family

if TYPE_CHECKING:
    from perago.stores.lakefs.store import LakeFSStore
    from perago.workflow.records import TaskRecord


@dataclass(frozen=True, slots=True)
class StepResult:
    """One attempt of one step."""

    name: str
    task: str
    retry: int
    status: str
    seconds: float
    published: str
    """The commit it published; empty when it published nothing."""
    reason: str


@dataclass(frozen=True)
class RunResult:
    """A run that ended. ``files``, ``table`` and ``log`` look at what it published last."""

    id: str
    workflow: str
    status: str
    reason: str
    output: Mapping[str, Any]
    steps: tuple[StepResult, ...]
    _place: RepositoryVersion | None = field(repr=False)
    _settings: Settings = field(repr=False)
    _store: StoreKind = field(repr=False)

    @property
    def completed(self) -> bool:
        """Return whether every step did its work."""
        return self.status == "COMPLETED"

    @cached_property
    def files(self) -> PublishedFiles:
        """Return the files of the version that the run ended with; contents are read when asked."""
        if self._place is None:
            raise UsageError(
                f"no task of workflow {self.workflow!r} works on files",
                remedy="look at .output instead",
            )
        return PublishedFiles(self._place, self._opened)

    def table(self, path: str) -> Any:
        """Read a table, one file or a directory of them, as a pyarrow Table."""
        try:
            from perago.data import reading  # noqa: PLC0415 - pyarrow is an optional package
        except ModuleNotFoundError as error:
            raise RuntimeConfigError(
                f"table() needs the package {error.name!r}", remedy="install 'perago[data]'"
            ) from None
        with TemporaryDirectory(prefix="perago-table-") as directory:
            self.files.copy(path, Path(directory))
            return reading.read(Path(directory), path.strip("/"))

    @property
    def log(self) -> Log:
        """Return the publications of the branch up to this run's, newest first."""
        place = self.files.place
        with self._opened() as (home, store):
            return log_of(home, store, place)

    @contextmanager
    def _opened(self) -> Iterator[tuple[Home, Store]]:
        home = home_of(self._settings)
        store = open_store(home, self._settings, self._store)
        try:
            yield home, store
        finally:
            home.close()
            if self._store == "lakefs":  # That of a home is closed with it.
                cast("LakeFSStore", store).close()

    def __repr__(self) -> str:
        return shown.as_text(self)

    def _repr_html_(self) -> str:
        return shown.as_html(self)


def result_of(run_id: str, settings: Settings, store: StoreKind) -> RunResult:
    """Read an ended run back."""
    home = home_of(settings)
    try:
        runs = home.state.family(run_id)
        family = Family(runs, {run.id: home.state.tasks(run.id) for run in runs})
    finally:
        home.close()
    run, paths = runs[0], {each.id: family.path(each) for each in runs}
    found = (task for task in family.every_task() if task.kind == "SIMPLE")
    # In the order in which they began, those of sub workflows among the others.
    simple = sorted(found, key=lambda task: task.scheduled_at)
    return RunResult(
        id=run.id,
        workflow=str(run.workflow.get("name")),
        status=str(run.status),
        reason=run.reason,
        output=run.output,
        steps=tuple(_step(task, paths[task.run_id]) for task in simple),
        _place=_last_place(run.input, simple),
        _settings=settings,
        _store=store,
    )


def _step(task: TaskRecord, within: str) -> StepResult:
    before, after = _workspace(task.input), _workspace(task.output)
    begun = task.started_at or task.scheduled_at
    return StepResult(
        name=f"{within}/{task.reference_name}" if within else task.reference_name,
        task=task.task_def_name,
        retry=task.retry_count,
        status=str(task.status),
        seconds=max(0.0, (task.ended_at or begun) - begun),
        published=after.ref if after and (not before or before.ref != after.ref) else "",
        reason=task.reason,
    )


def _last_place(given: Mapping[str, object], tasks: list[TaskRecord]) -> RepositoryVersion | None:
    """Find the newest version that the run knows of: what its last completed step handed on."""
    for task in reversed(tasks):
        if (found := _workspace(task.output)) is not None:
            return found
    return _workspace(given)


def _workspace(values: Mapping[str, object]) -> RepositoryVersion | None:
    found = values.get("workspace")
    if not isinstance(found, Mapping) or not {"repository", "branch", "ref"} <= {*found}:
        return None
    return RepositoryVersion(str(found["repository"]), str(found["branch"]), str(found["ref"]))
