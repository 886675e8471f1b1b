"""A Spark write straight to lakeFS: against local disk, and against the committer that renames."""

from __future__ import annotations

import itertools
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel
from pyspark.sql import DataFrame, SparkSession

from bench.comparison import Comparison, Fact, Options, Ratio
from bench.lakefs import BRANCH, Server, serving
from perago import WorkspaceSpec, task
from perago.attempt.working_copy import BranchCopy
from perago.protocol.paths import Selection
from perago.protocol.values import ChangeSet, Staging
from perago.settings import SparkSettings
from perago.spark import SparkSpec, SparkWorkspace, direct
from perago.spark.jvm import JVM
from perago.spark.places import NearbyPlace
from perago.spark.session import AttemptSession

FILES = 80
ROWS = 800_000
WARM = 5
LOCAL, DIRECT, RENAMES = "local disk", "direct", "default committer"
MAGIC = "direct, as on a cluster"
READ_LOCAL, READ_DIRECT = "read: local disk", "read: direct"
TABLE = "table"
SPEC = SparkSpec(workspace="direct")
_began: list[float] = []


class Nothing(BaseModel):
    """Neither parameters nor a result."""


@task(name="begin", owner_email="bench@example.com", workspace=WorkspaceSpec(), spark=SPEC)
def begin(spark: SparkSession, workspace: SparkWorkspace, params: Nothing) -> Nothing:  # noqa: ARG001 - asked for, so that there is one
    """Note when the body has its session and begins."""
    _began.append(time.perf_counter())
    return Nothing()


@contextmanager
def comparison(_: Options) -> Iterator[Comparison]:
    """Write the same rows in every way, each time to a new path."""
    with serving() as server:
        stored = _in_place(server)
        session = AttemptSession(
            direct.need_of(SPEC.need, SparkSettings()),
            "bench",
            SparkSettings(),
            prepare=lambda opened: direct.connect(opened, stored),
        )
        own = session.open()
        plain = own.newSession()
        for key in direct.COMMITTER:
            plain.conf.unset(key)
        workspace = SparkWorkspace(session, NearbyPlace(stored, session.check), ChangeSet)
        number = itertools.count()
        disk, table = server.root / "disk", server.root / "input" / "lake" / TABLE

        def rows(spark: SparkSession) -> DataFrame:
            return spark.range(0, ROWS, 1, FILES).selectExpr("id", "id % 97 AS k", "rand(7) AS x")

        def add(found: DataFrame) -> None:
            found.selectExpr("sum(x)", "max(k)").collect()

        def write(spark: SparkSession, place: str) -> None:
            rows(spark).write.parquet(f"{place}/t{next(number)}")

        try:
            yield Comparison(
                name="spark",
                what=f"{FILES} parquet files, {ROWS:,} rows, written or read",
                contenders={
                    LOCAL: lambda: write(plain, f"file://{disk}"),
                    DIRECT: lambda: workspace.write(rows(own), f"own/t{next(number)}"),
                    MAGIC: lambda: write(own, f"s3a://{stored.target}magic"),
                    RENAMES: lambda: write(plain, f"s3a://{stored.target}renames"),
                    READ_LOCAL: lambda: add(plain.read.parquet(f"file://{table}")),
                    READ_DIRECT: lambda: add(workspace.read.parquet(TABLE)),
                },
                ratios=[
                    Ratio("direct / local disk", DIRECT, LOCAL, at_most=2.0),
                    Ratio("default committer / direct", RENAMES, DIRECT, at_least=1.8),
                    Ratio("direct, as on a cluster / local disk", MAGIC, LOCAL),
                    Ratio("read: direct / local disk", READ_DIRECT, READ_LOCAL),
                ],
                reset=lambda: shutil.rmtree(disk, ignore_errors=True),
                facts=lambda: [_warm_start(server)],
            )
        finally:
            session.close()
            JVM.stop()


def _in_place(server: Server) -> BranchCopy:
    """Open a staging branch, as an attempt has one; its input is a table, which is here as well."""
    repository = server.repository()
    _write_table(server.root / "input" / "lake" / TABLE)
    server.send(repository, server.root / "input")
    base = server.store.head(repository, BRANCH).id
    staging = Staging(repository, "perago-staging-bench")
    server.store.open_staging(staging, base)
    where = server.store, server.store.direct, repository, staging
    return BranchCopy("bench", base, Selection("lake"), *where, server.root / "scratch")


def _write_table(directory: Path) -> None:
    """Write what the other contenders write, without a session."""
    directory.mkdir(parents=True)
    chance = Random(7)
    for number in range(FILES):
        ids = range(number * ROWS // FILES, (number + 1) * ROWS // FILES)
        columns = {"id": ids, "k": [i % 97 for i in ids], "x": [chance.random() for _ in ids]}
        pq.write_table(pa.table(columns), directory / f"part-{number:05}.parquet")


def _warm_start(server: Server) -> Fact:
    """Time an attempt on a warm executor until its body has a session: the slowest of a few."""
    repository = server.repository()
    base = server.store.head(repository, BRANCH).id
    host = server.host()
    waits = []
    for _ in range(WARM):
        asked = time.perf_counter()
        host.attempt(begin, repository, base, {})
        waits.append(_began[-1] - asked)
    host.close()
    return Fact("seconds until a warm body begins", max(waits), at_most=1.0)
