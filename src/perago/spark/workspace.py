"""The workspace as Spark sees it: tables by their path, nothing outside, nothing left behind."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Literal, Self
from urllib.parse import unquote

from perago.errors import UnsafePathError, UsageError
from perago.protocol.paths import refuse_path
from perago.protocol.values import ChangeSet
from perago.spark.places import GLOB, SaveMode, TablePlace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.types import StructType

    from perago.spark.session import AttemptSession

Mode = Literal["error", "overwrite", "append", "ignore"]
_MODES = ("error", "overwrite", "append", "ignore")
_FORMATS = ("parquet", "csv", "json", "orc", "text")
_OVERWRITE = "partitionOverwriteMode"


class SparkWorkspace:
    """Reads and writes the tables of one attempt; what it writes is published whole or not at all.

    Paths are relative to the workspace and use ``/``.
    """

    def __init__(
        self, session: AttemptSession, place: TablePlace, changes: Callable[[], ChangeSet]
    ) -> None:
        self._session = session
        self._place = place
        self._changes = changes

    @property
    def spark(self) -> SparkSession:
        """Return the session of this attempt."""
        return self._session.open()

    @property
    def read(self) -> WorkspaceReader:
        """Read as ``spark.read`` does, with paths of the workspace."""
        return WorkspaceReader(self.spark.read, self)

    def write(
        self,
        df: DataFrame,
        path: str,
        *,
        format: str = "parquet",  # noqa: A002 - what Spark calls it
        mode: Mode = "error",
        partition_by: str | Sequence[str] = (),
        options: Mapping[str, Any] | None = None,
    ) -> None:
        """Write a table; ``mode`` says what happens to one that is there already."""
        self._session.check()
        if mode not in _MODES:
            raise UsageError(f"write(mode={mode!r})", remedy=f"use one of {', '.join(_MODES)}")
        if GLOB.search(path):
            raise UsageError(f"write to {path!r}: a pattern is not a place", remedy="name a path")
        columns = [partition_by] if isinstance(partition_by, str) else list(partition_by)
        target = self.path(path)
        writer = df.write.format(format).options(**(options or {}))
        if format == "csv" and "header" not in (options or {}):
            writer = writer.option("header", value=True)
        if columns:
            writer = writer.partitionBy(*columns)
        partitions = mode == "overwrite" and bool(columns) and self._is_dynamic(options or {})
        if mode == "overwrite" and not partitions:
            _refuse_own_source(df, path, target)
        renamed = self._place.save(
            path.removesuffix("/"),
            SaveMode(mode, partitions, format.lower()),
            lambda how, where: writer.mode(how).save(where),
        )
        if renamed:  # A cached table knows the files under their first names.
            self.spark.catalog.refreshByPath(target)

    def table(self, path: str, name: str | None = None, *, format: str | None = None) -> DataFrame:  # noqa: A002 - as above
        """Read a table and make it known to ``spark.sql`` under ``name``, or its last segment."""
        format = format or self._format(path)  # noqa: A001 - as above
        read = self.read if format != "csv" else self.read.option("header", value=True)
        df = read.load(path, format=format)
        df.createOrReplaceTempView(name or re.sub(r"\W", "_", PurePosixPath(path).stem))
        return df

    def path(self, path: str = "") -> str:
        """Name a place of the workspace for Spark; nothing outside of it can be named.

        In a direct workspace it is one to write to, and to read again what was written.
        """
        return self._place.target(_checked(path))

    def exists(self, path: str) -> bool:
        """Return whether there is a file at the path, or below it."""
        return bool(self._place.paths(_checked(path)))

    def places(self, paths: Sequence[str]) -> list[str]:
        """Return where paths are read."""
        return [self._place.source(_checked(path)) for path in paths]

    def diff(self) -> ChangeSet:
        """Compare with the input A: what this attempt has changed so far."""
        return self._changes()

    def _format(self, path: str) -> str:
        """Tell the format of a table by the names of its files."""
        for file in map(PurePosixPath, self._place.paths(_checked(path))):
            for suffix in file.suffixes:
                if suffix.removeprefix(".") in _FORMATS:
                    return suffix.removeprefix(".")
        return "parquet"

    def _is_dynamic(self, options: Mapping[str, Any]) -> bool:
        """Return whether an overwrite is to keep the partitions it does not write."""
        said = {key.lower(): value for key, value in options.items()}.get(_OVERWRITE.lower())
        found = said or self.spark.conf.get(f"spark.sql.sources.{_OVERWRITE}")
        return str(found).lower() == "dynamic"


def _checked(path: str) -> str:
    path = path.removesuffix("/")
    if path and (problem := refuse_path(path)):
        raise UnsafePathError(
            f"the path {path!r} {problem}", remedy="use a '/' path below the workspace"
        )
    return path


def _refuse_own_source(df: DataFrame, path: str, target: str) -> None:
    """Refuse to replace what is being read: Spark would remove it first and then look for it."""
    for file in df.inputFiles():
        if any(name == target or name.startswith(f"{target}/") for name in (file, unquote(file))):
            raise UsageError(
                f"write to {path!r} with mode='overwrite' reads the same files",
                remedy="write to another path, or read it before this attempt changes it",
            )


class WorkspaceReader:
    """A ``DataFrameReader`` that takes paths of the workspace."""

    def __init__(self, reader: DataFrameReader, workspace: SparkWorkspace) -> None:
        self._reader = reader
        self._workspace = workspace

    def option(self, key: str, value: Any) -> Self:
        """Set one option of the format."""
        self._reader = self._reader.option(key, value)
        return self

    def options(self, **options: Any) -> Self:
        """Set several options of the format."""
        self._reader = self._reader.options(**options)
        return self

    def schema(self, schema: StructType | str) -> Self:
        """Read with these columns instead of what the files suggest."""
        self._reader = self._reader.schema(schema)
        return self

    def parquet(self, *paths: str, **options: Any) -> DataFrame:
        """Read Parquet files."""
        return self.load(*paths, format="parquet", **options)

    def csv(self, *paths: str, **options: Any) -> DataFrame:
        """Read CSV files; give ``header=True`` for files with column names."""
        return self.load(*paths, format="csv", **options)

    def json(self, *paths: str, **options: Any) -> DataFrame:
        """Read files with one JSON object a line."""
        return self.load(*paths, format="json", **options)

    def orc(self, *paths: str, **options: Any) -> DataFrame:
        """Read ORC files."""
        return self.load(*paths, format="orc", **options)

    def text(self, *paths: str, **options: Any) -> DataFrame:
        """Read lines of text."""
        return self.load(*paths, format="text", **options)

    def load(self, *paths: str, format: str, **options: Any) -> DataFrame:  # noqa: A002 - as above
        """Read files of any format that Spark knows."""
        places = self._workspace.places(paths)
        return self._reader.load(places, format=format, **options)
