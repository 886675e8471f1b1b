"""Spark as the engine of an attempt: its session, its workspace, its clean-up (X1 to X3)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from perago.errors import RuntimeConfigError
from perago.ports import Site
from perago.protocol.data import Measure, Table
from perago.protocol.spark import SparkNeed, is_leftover, refuse_local_workspace
from perago.protocol.values import ChangeSet
from perago.settings import SparkSettings
from perago.spark.errors import explained
from perago.spark.session import AttemptSession
from perago.spark.workspace import SparkWorkspace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SparkEngine:
    """Nothing is started before something is asked for."""

    def __init__(self, need: SparkNeed, site: Site, settings: SparkSettings) -> None:
        self._site = site
        self._reading: SparkSession | None = None
        self._session = AttemptSession(need, site.execution_id, settings)
        master = self._session.application.master
        if master.startswith("sc://"):
            raise RuntimeConfigError(
                f"master {master!r}: Spark Connect is not offered yet",
                remedy="use local[*] or a spark:// master",
            )
        problem = refuse_local_workspace(master, shared_root=settings.shared_root)
        if site.root is not None and problem:
            raise RuntimeConfigError(
                problem,
                remedy="use master local[*], or put PERAGO_WORKSPACE_ROOT on storage that all of "
                "them mount and set PERAGO_SPARK_SHARED_ROOT=true",
            )

    def session(self) -> object:
        """Open the attempt's session."""
        return self._session.open()

    def workspace(self) -> object:
        """Make the workspace a body works on."""
        if self._site.root is None:
            raise RuntimeConfigError("the task has no workspace")  # pragma: no cover
        return SparkWorkspace(self._session, self._site.root, self._diff)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run a body: its Spark errors are told in a sentence, its leftovers are removed."""
        with explained():
            yield
        self._session.check()
        self._scrub()

    def measure(self, table: str, wanted: Sequence[Measure]) -> Table | None:
        """Measure a table with as few jobs as possible."""
        root = self._site.root
        if root is None:
            return None
        from perago.spark import measuring  # noqa: PLC0415 - it imports PySpark

        with explained():
            session = self._session.open()
            if self._reading is None:
                self._reading = measuring.reading_session(session)
            return measuring.measure(self._reading, root, table, wanted)

    def close(self) -> None:
        """Give the session back."""
        self._session.close()

    def _diff(self) -> ChangeSet:
        self._scrub()
        return self._site.changes()

    def _scrub(self) -> None:
        """Remove what Spark left beside data, unless the input had it (then it is content)."""
        root = self._site.root
        if root is None:
            return
        known = self._site.before
        for directory, folders, files in os.walk(root):
            relative = Path(directory).relative_to(root).as_posix()
            base = "" if relative == "." else f"{relative}/"
            for name in [*folders]:
                if is_leftover(f"{base}{name}/") and not _holds(known, f"{base}{name}/"):
                    shutil.rmtree(Path(directory, name), ignore_errors=True)
                    folders.remove(name)
            for name in files:
                if is_leftover(base + name) and base + name not in known:
                    Path(directory, name).unlink(missing_ok=True)


def _holds(known: Mapping[str, object], folder: str) -> bool:
    return any(path.startswith(folder) for path in known)
