"""Spark as the engine of an attempt: its session, its workspace, its clean-up (X1 to X3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from perago.errors import RuntimeConfigError
from perago.ports import Site
from perago.protocol.data import Measure, Table
from perago.protocol.spark import SparkNeed, is_connect, is_local, refuse_local_workspace, shown
from perago.protocol.values import ChangeSet
from perago.settings import SparkSettings
from perago.spark import direct
from perago.spark.errors import explained
from perago.spark.places import AppendSalts, DirectPlace, LocalPlace, NearbyPlace, TablePlace
from perago.spark.session import AttemptSession
from perago.spark.sharing import check_shared
from perago.spark.workspace import SparkWorkspace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SparkEngine:
    """Nothing is started before something is asked for."""

    def __init__(self, need: SparkNeed, site: Site, settings: SparkSettings) -> None:
        self._site = site
        self._reading: SparkSession | None = None
        self._session = _session(need, site, settings)
        self._place = _place(site, self._session, nearby=direct.is_nearby(need, settings))
        master = self._session.application.master
        problem = refuse_local_workspace(master, shared_root=settings.shared_root)
        if site.root is not None and problem:
            other = "" if is_connect(master) else "use SparkSpec(workspace='direct') on lakeFS, or "
            raise RuntimeConfigError(
                problem,
                remedy=f"{other}put PERAGO_WORKSPACE_ROOT on storage that all of them mount and "
                "set PERAGO_SPARK_SHARED_ROOT=true",
            )

    def session(self) -> object:
        """Open the attempt's session."""
        return self._session.open()

    def workspace(self) -> object:
        """Make the workspace a body works on."""
        if self._place is None:
            raise RuntimeConfigError("the task has no workspace")  # pragma: no cover
        return SparkWorkspace(self._session, self._place, self._diff)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run a body: its Spark errors are told in a sentence, its leftovers are removed."""
        with explained():
            yield
        self._session.check()
        self._scrub()

    def measure(self, table: str, wanted: Sequence[Measure]) -> Table | None:
        """Measure a table with as few jobs as possible."""
        if self._place is None:
            return None
        from perago.spark import measuring  # noqa: PLC0415 - it imports PySpark

        with explained():
            session = self._session.open()
            if self._reading is None:
                self._reading = measuring.reading_session(session, self._session.beside())
            return measuring.measure(self._reading, self._place, table, wanted)

    def close(self) -> None:
        """Give the session back."""
        self._session.close()

    def _diff(self) -> ChangeSet:
        self._scrub()
        return self._site.changes()

    def _scrub(self) -> None:
        if self._place is not None:
            self._place.scrub()


def _session(need: SparkNeed, site: Site, settings: SparkSettings) -> AttemptSession:
    stored, root = site.in_place, site.root
    master = need.master or settings.master
    if stored is None:
        if root is None or is_local(master):
            return AttemptSession(need, site.execution_id, settings, starting=site.starting)
        return AttemptSession(
            need,
            site.execution_id,
            settings,
            prepare=lambda session: check_shared(session, master, root.parent),
            starting=site.starting,
        )
    if is_connect(master):
        raise RuntimeConfigError(
            f"master {shown(master)!r}: a Connect server cannot be given the keys of a workspace",
            remedy="use local[*] or a spark:// master, or drop workspace='direct'",
        )
    return AttemptSession(
        direct.need_of(need, settings),
        site.execution_id,
        settings,
        prepare=lambda session: direct.connect(session, stored),
        starting=site.starting,
    )


def _place(site: Site, session: AttemptSession, *, nearby: bool) -> TablePlace | None:
    salts = AppendSalts(site.step)
    if site.in_place is not None:
        stored = site.in_place
        return NearbyPlace(stored, session.check, salts) if nearby else DirectPlace(stored)
    if site.root is None:
        return None
    return LocalPlace(site.root, site.before, site.dropped, salts)
