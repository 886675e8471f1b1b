"""Which engine an attempt computes with: Spark for a Spark task, plain files otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from perago.errors import RuntimeConfigError
from perago.ports import Engine, Site
from perago.protocol.data import Measure, Table
from perago.protocol.spark import SparkNeed
from perago.settings import SparkSettings


@dataclass(frozen=True, slots=True)
class EngineFactory:
    """Opens engines; neither PySpark nor pyarrow is imported before it is used."""

    spark: SparkSettings = field(default_factory=SparkSettings)

    def open(self, need: SparkNeed | None, site: Site) -> Engine:
        """Choose by the need."""
        if need is None:
            return PlainEngine(site)
        from perago.spark.engine import SparkEngine  # noqa: PLC0415 - only for Spark tasks

        return SparkEngine(need, site, self.spark)


class PlainEngine:
    """The engine of a task that works on files itself; pyarrow reads tables for its guards."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def session(self) -> object:
        """Give none."""
        return None

    def workspace(self) -> object:
        """Give none."""
        return None

    def running(self) -> AbstractContextManager[None]:
        """Add nothing to a body."""
        return nullcontext()

    def measure(self, table: str, wanted: Sequence[Measure]) -> Table | None:
        """Measure a table with pyarrow."""
        try:
            from perago.data import arrow  # noqa: PLC0415 - an optional extra
        except ModuleNotFoundError as error:
            raise RuntimeConfigError(
                f"data guardrails need the package {error.name!r}", remedy="install 'perago[data]'"
            ) from None
        return arrow.measure(self._site.root, table, wanted) if self._site.root else None

    def close(self) -> None:
        """Hold nothing."""
