"""The workspace as Spark sees it: tables by their path, nothing outside, nothing left behind."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from perago.errors import UnsafePathError, UsageError
from perago.protocol.paths import refuse_path
from perago.protocol.values import ChangeSet

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.types import StructType

    from perago.spark.session import AttemptSession

Mode = Literal["error", "overwrite", "append", "ignore"]
_MODES = ("error", "overwrite", "append", "ignore")
_FORMATS = ("parquet", "csv", "json", "orc", "text")
_GLOB = re.compile(r"[*?\[\]{}]")


class SparkWorkspace:
    """Reads and writes the tables of one attempt; what it writes is published whole or not at all.

    Paths are relative to the workspace and use ``/``.
    """

    def __init__(
        self, session: AttemptSession, root: Path, changes: Callable[[], ChangeSet]
    ) -> None:
        self._session = session
        self._root = root
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
        if _GLOB.search(path):
            raise UsageError(f"write to {path!r}: a pattern is not a place", remedy="name a path")
        columns = [partition_by] if isinstance(partition_by, str) else list(partition_by)
        writer = df.write.format(format).mode(mode).options(**(options or {}))
        if format == "csv" and "header" not in (options or {}):
            writer = writer.option("header", value=True)
        if columns:
            writer = writer.partitionBy(*columns)
        writer.save(self.path(path))

    def table(self, path: str, name: str | None = None, *, format: str | None = None) -> DataFrame:  # noqa: A002 - as above
        """Read a table and make it known to ``spark.sql`` under ``name``, or its last segment."""
        format = format or self._format(path)  # noqa: A001 - as above
        read = self.read if format != "csv" else self.read.option("header", value=True)
        df = read.load(path, format=format)
        df.createOrReplaceTempView(name or re.sub(r"\W", "_", Path(path).stem))
        return df

    def path(self, path: str = "") -> str:
        """Name a place of the workspace for Spark; nothing outside of it can be named."""
        path = path.removesuffix("/")
        if path and (problem := refuse_path(path)):
            raise UnsafePathError(
                f"the path {path!r} {problem}", remedy="use a '/' path below the workspace"
            )
        # Not as_uri(): Hadoop's paths are not percent-encoded.
        return f"file://{self._root.absolute()}/{path}".removesuffix("/")

    def exists(self, path: str) -> bool:
        """Tell whether there is a file at the path, or below it."""
        local = Path(self.path(path).removeprefix("file://"))
        return local.is_file() or any(found.is_file() for found in local.rglob("*"))

    def diff(self) -> ChangeSet:
        """Compare with the input A: what this attempt has changed so far."""
        return self._changes()

    def _format(self, path: str) -> str:
        """Tell the format of a table by the names of its files."""
        local = Path(self.path(path).removeprefix("file://"))
        files = [local] if local.is_file() else sorted(local.rglob("*"))
        for file in files:
            for suffix in file.suffixes:
                if suffix.removeprefix(".") in _FORMATS and file.is_file():
                    return suffix.removeprefix(".")
        return "parquet"


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
        places = [self._workspace.path(path) for path in paths]
        return self._reader.load(places, format=format, **options)
