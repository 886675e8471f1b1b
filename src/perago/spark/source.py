"""``spark.read.format("perago")``: history and objects as tables.

It is planned and read in Python workers: what travels is a :class:`Origin` and what was asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    InputPartition,
    LessThan,
    LessThanOrEqual,
    StringStartsWith,
)

from perago.errors import NotFoundError, UsageError
from perago.history.event_log import CONDITIONS
from perago.history.rows import (
    AttemptRow,
    PublicationRow,
    attempt_row,
    publication_row,
    unlogged,
)
from perago.protocol.key_ranges import EVERYTHING, KeyRange
from perago.spark.batches import batch, ddl
from perago.spark.origin import Origin
from perago.stores.key_ranges import Listed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PUSHDOWN: Final = "spark.sql.python.filterPushdown.enabled"
_WHAT: Final = ("publications", "attempts", "objects")
_OPTIONS: Final = frozenset(
    {"what", "home", "directory", "store", "repository", "branch", "ref", "prefix", "partitions"}
)
KINDS: Final = frozenset({"embedded", "lakefs"})
_PARTITIONS: Final = 16
_BATCH: Final = 10_000
_LEAST_EVENTS: Final = 20_000
_OBJECT: Final = {"key": "STRING", "size": "LONG", "checksum": "STRING"}
_SCHEMAS: Final[Mapping[str, str]] = {
    "objects": ddl(_OBJECT),
    "attempts": (
        "execution_id STRING, workflow_id STRING, attempt_id STRING, step STRING, task STRING, "
        "retry INT, store STRING, repository STRING, branch STRING, input_ref STRING, "
        "started_at TIMESTAMP, seconds DOUBLE, status STRING, failed_in STRING, reason STRING, "
        "refused BOOLEAN, "
        "kind STRING, head STRING, ref STRING, fence STRING, decided_at TIMESTAMP, "
        "publish_seconds DOUBLE, after_body_seconds DOUBLE, files_read LONG, bytes_read LONG, "
        "files_written LONG, bytes_written LONG, added LONG, changed LONG, removed LONG, "
        "phases MAP<STRING, DOUBLE>"
    ),
    "publications": (
        "store STRING, repository STRING, branch STRING, ref STRING, parent STRING, kind STRING, "
        "replaced STRING, fence STRING, task STRING, step STRING, workflow_id STRING, "
        "attempt_id STRING, execution_id STRING, retry INT, published_at TIMESTAMP, "
        "publish_seconds DOUBLE, visible BOOLEAN"
    ),
}
# Columns of the tables -> columns of the event log, for filters that it can answer itself.
_CLAIM: Final[Mapping[str, str]] = {
    "execution_id": "execution_id",
    "workflow_id": "workflow_instance_id",
    "attempt_id": "task_id",
    "retry": "retry_count",
    "step": "reference_task_name",
    "task": "task_def_name",
    "started_at": "at",
}
_SIGNS: Final[Mapping[type[Filter], str]] = {
    EqualTo: "=",
    LessThan: "<",
    LessThanOrEqual: "<=",
    GreaterThan: ">",
    GreaterThanOrEqual: ">=",
}
_ROUNDED: Final = 1e-5
_TIMES: Final = frozenset({"started_at", "decided_at", "published_at"})


def register(spark: SparkSession) -> None:
    """Let a session read the format ``perago``."""
    if (java := getattr(spark, "_jsparkSession", None)) is not None:
        # Spark looks in the active session, and not in the given one, whether the name is taken.
        spark._jvm.SparkSession.setActiveSession(java)  # type: ignore[union-attr]  # noqa: SLF001 - there is no public way
    spark.dataSource.register(PeragoSource)
    spark.conf.set(_PUSHDOWN, "true")


class PeragoSource(DataSource):
    """The tables ``publications``, ``attempts`` and ``objects``, by the option ``what``."""

    @classmethod
    def name(cls) -> str:
        return "perago"

    def schema(self) -> str:
        return _SCHEMAS[self._what()]

    def reader(self, schema: object) -> DataSourceReader:  # noqa: ARG002 - it is always ours
        unknown = sorted(set(self.options) - _OPTIONS)
        if unknown:
            raise UsageError(
                f"format perago has no option {', '.join(map(repr, unknown))}",
                remedy=f"use {', '.join(sorted(_OPTIONS))}; keys are read from the environment",
            )
        what, origin = self._what(), Origin.of(self.options)
        partitions = int(self.options.get("partitions", _PARTITIONS))
        if what == "objects":
            return ObjectsReader(origin, self._branch(), partitions)
        if what == "publications" and self.options.get("repository"):
            return BranchReader(origin, self._branch())
        return EventsReader(origin, what, partitions, self.options.get("store"))

    def _what(self) -> str:
        what = self.options.get("what") or self.options.get("path") or "publications"
        if what not in _WHAT:
            raise UsageError(
                f"format perago has no table {what!r}", remedy=f"use one of {', '.join(_WHAT)}"
            )
        return str(what)

    def _branch(self) -> SourceBranch:
        repository = self.options.get("repository")
        if not repository:
            raise UsageError("objects of which repository?", remedy="give the option 'repository'")
        name = self.options.get("branch", "main")
        return SourceBranch(
            repository, name, self.options.get("ref", name), self.options.get("prefix", "")
        )


@dataclass(frozen=True, slots=True)
class SourceBranch:
    """What of a repository is read."""

    repository: str
    name: str
    ref: str
    prefix: str

    @property
    def root(self) -> str:
        """Return what its keys begin with."""
        stripped = self.prefix.strip("/")
        return f"{stripped}/" if stripped else ""


class SourcePartition(InputPartition):
    """One part of a table."""

    def __init__(self, commit: str, span: KeyRange) -> None:
        super().__init__((commit, span))
        self.commit = commit
        self.span = span


class Rows(InputPartition):
    """The executions that were claimed in some rows of the event log."""

    def __init__(self, after: int, until: int) -> None:
        super().__init__((after, until))
        self.after = after
        self.until = until


class ObjectsReader(DataSourceReader):
    """Lists a commit in parts; a condition on the key lists less."""

    def __init__(self, origin: Origin, branch: SourceBranch, partitions: int) -> None:
        self._origin = origin
        self._branch = branch
        self._count = partitions
        self._root: str | None = branch.root
        self._span: KeyRange | None = EVERYTHING

    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:  # noqa: N802 - Spark's name
        for each in filters:
            if getattr(each, "attribute", None) == ("key",):
                self._narrow(each)
            yield each  # What is listed less is still looked at: bounds are not always exact.

    def partitions(self) -> Sequence[InputPartition]:
        with self._origin.open() as store:
            # A branch may move between two pages; a commit does not.
            commit = store.commit(self._branch.repository, self._branch.ref).id
            if self._root is None or self._span is None:
                return []
            listed = Listed(store, self._branch.repository, commit, self._root)
            return [SourcePartition(commit, span) for span in listed.split(self._count, self._span)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        if not isinstance(partition, SourcePartition):
            return
        with self._origin.open() as store:
            root = self._root or ""
            listed = Listed(store, self._branch.repository, partition.commit, root)
            rows = (
                {"key": info.key, "size": info.size, "checksum": info.checksum}
                for info in listed.walk(partition.span)
                if info.kind == "object"
            )
            while gathered := list(islice(rows, _BATCH)):
                yield batch(gathered, _OBJECT)

    def _narrow(self, each: Filter) -> None:
        value = getattr(each, "value", None)
        if not isinstance(value, str) or self._root is None or self._span is None:
            return
        if isinstance(each, EqualTo | StringStartsWith):
            if value.startswith(self._root):
                self._root = value
            elif not self._root.startswith(value) or isinstance(each, EqualTo):
                self._root = None
        elif isinstance(each, GreaterThan):
            self._span = self._span.narrowed(KeyRange(value))
        elif isinstance(each, LessThan | LessThanOrEqual):
            self._span = self._span.narrowed(KeyRange("", value)) if value else None


class EventsReader(DataSourceReader):
    """Reads the event log in parts; conditions on the claim are asked of it."""

    def __init__(
        self, origin: Origin, what: str, partitions: int, store: str | None = None
    ) -> None:
        self._origin = origin
        self._what = what
        self._store = store
        self._count = partitions
        self._wanted: dict[str, str | int | float] = {}

    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:  # noqa: N802 - Spark's name
        for each in filters:
            condition = self._condition(each)
            if condition is not None:
                self._wanted.update([condition])
            if condition is None or condition[0].startswith("at "):
                yield each  # A time is rounded in the table: the log answers a little too much.

    def partitions(self) -> Sequence[InputPartition]:
        with self._origin.events() as events:
            last = events.last()
        step = max(_LEAST_EVENTS, -(-last // self._count))
        return [Rows(after, after + step) for after in range(0, last, step)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        if not isinstance(partition, Rows):
            return
        columns = _columns(self._what)
        with self._origin.events() as events:
            for found in events.by_execution(partition.after, partition.until, self._wanted):
                told = attempt_row(found)
                if self._store in KINDS and told.store not in {self._store, None}:
                    continue
                row = publication_row(told) if self._what == "publications" else told
                if row is not None:
                    yield columns(row)

    def _condition(self, each: Filter) -> tuple[str, str | int | float] | None:
        attribute: tuple[str, ...] = getattr(each, "attribute", ())
        value = getattr(each, "value", None)
        column = _CLAIM.get(".".join(attribute))
        condition = f"{column} {_SIGNS.get(type(each))} ?"
        if isinstance(value, datetime):
            value = value.timestamp() + (_ROUNDED if "<" in condition else -_ROUNDED)
        known = condition in CONDITIONS and condition not in self._wanted
        return (condition, value) if known and isinstance(value, str | int | float) else None


class BranchReader(DataSourceReader):
    """The publications of one branch, with those that only their commits tell of."""

    def __init__(self, origin: Origin, branch: SourceBranch) -> None:
        self._origin = origin
        self._branch = branch

    def read(self, partition: InputPartition) -> Iterator[Any]:  # noqa: ARG002 - there is one
        columns = _columns("publications")
        name, branch = self._branch.repository, self._branch.name
        with self._origin.open() as store, self._origin.events() as events:
            history = list(store.history(name, self._branch.ref))
            visible = frozenset(commit.id for commit in history)
            told = set()
            for found in events.by_execution(0, events.last()):
                row = publication_row(attempt_row(found), visible)
                if row is None or (row.repository, row.branch) != (name, branch):
                    continue
                if self._is_here(row, store):
                    told.add(row.execution_id)
                    yield columns(row)
            kind = self._origin.store if self._origin.store in KINDS else None
            for row in unlogged(history, frozenset(told), name, branch, kind):
                yield columns(row)

    def _is_here(self, row: PublicationRow, store: Any) -> bool:
        """Return whether a publication is of this store: another may have a repository so named.

        Older logs do not say it; then the store that knows the commit is the one.
        """
        if row.store is not None and self._origin.store in KINDS:
            return row.store == self._origin.store
        try:
            store.commit(row.repository, row.ref)
        except NotFoundError:
            return False
        return True


def _columns(what: str) -> Callable[[object], tuple[Any, ...]]:
    """Return what makes a tuple of a row; the fields of rows are the columns of tables."""
    kind = AttemptRow if what == "attempts" else PublicationRow
    names = [each.name for each in fields(kind)]

    def columns(row: object) -> tuple[Any, ...]:
        values = ((name, getattr(row, name)) for name in names)
        return tuple(_time(value) if name in _TIMES else value for name, value in values)

    return columns


def _time(at: float | None) -> datetime | None:
    return None if at is None else datetime.fromtimestamp(at, UTC)
