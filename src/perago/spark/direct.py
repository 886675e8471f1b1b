"""Spark on a store's S3 gateway: the jars, the committer, and the keys (X2).

Both committers upload each file once, to where it stays, and make all of them visible when the job
ends. On one machine what is pending is kept in files of the attempt; it takes a quarter of the
requests. Executors elsewhere cannot see those: for them it is kept in the store.

The keys go into the Hadoop configuration of the running context, for one bucket. From there they
travel with the jobs; they are neither on a command line nor in Spark's own configuration, which
its UI and its event log show.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from perago.errors import RuntimeConfigError
from perago.ports import Gateway, InPlace
from perago.protocol.spark import SparkNeed, is_local
from perago.settings import SparkSettings
from perago.spark import jars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CLOUD: Final = "org.apache.spark.internal.io.cloud"
# Without both, Spark falls back to renames without a word, and a rename is a copy on S3.
COMMITTER: Final = {
    "spark.sql.sources.commitProtocolClass": f"{_CLOUD}.PathOutputCommitProtocol",
    "spark.sql.parquet.output.committer.class": f"{_CLOUD}.BindingParquetOutputCommitter",
}

NAME: Final = "fs.s3a.committer.name"
ON_THIS_MACHINE, ANYWHERE = "directory", "magic"

# Of all buckets alike: the committer looks for the first of these nowhere else, and writes nothing
# at all, without a word, when it is set for one bucket only.
SHARED: Final = {
    # One list of pending uploads per task, not one object per file.
    "fs.s3a.committer.magic.track.commits.in.memory.enabled": "true",
    # No questions to the store about what a path is before a file is made there.
    "fs.s3a.performance.flags": "create,mkdir",
    "fs.s3a.connection.expect.continue": "false",
    "fs.s3a.fast.upload.buffer": "bytebuffer",
}


def need_of(need: SparkNeed, settings: SparkSettings) -> SparkNeed:
    """Add to a task's need what work in place takes; fetches the jars when they are not there."""
    given = {**settings.conf, **need.conf}
    listed = [given.get("spark.jars", ""), *map(str, jars.provide(settings.jars))]
    conf = {**need.conf, "spark.jars": ",".join(filter(None, listed)), **COMMITTER}
    return SparkNeed(need.master, conf, need.packages, need.direct)


def connect(session: SparkSession, stored: InPlace) -> None:
    """Let the jobs of a session reach one repository."""
    bucket = stored.source.partition("/")[0]
    context = session.sparkContext
    if context._jsc is None:  # noqa: SLF001 - there is no other way to its configuration
        raise RuntimeConfigError("Spark was stopped")  # pragma: no cover
    hadoop = context._jsc.hadoopConfiguration()  # noqa: SLF001 - as above
    for key, value in properties(bucket, stored.gateway).items():
        hadoop.set(key, value)
    chosen = context.getConf().get(f"spark.hadoop.{NAME}")
    for key, value in committer(str(context.master), stored.scratch, chosen).items():
        session.conf.set(key, value)


def committer(master: str, scratch: Path, chosen: str | None = None) -> dict[str, str]:
    """Choose how the files of a job become visible together.

    It is said to one session: what is said of one bucket counts less than Hadoop's own default.
    """
    name = chosen or (ON_THIS_MACHINE if is_local(master) else ANYWHERE)
    if name != ON_THIS_MACHINE:
        return {NAME: name}
    return {
        NAME: name,
        "fs.s3a.buffer.dir": f"{scratch}/buffer",
        "fs.s3a.committer.staging.tmp.path": f"file://{scratch}/pending",
        # What is there already is Spark's matter, which has removed it when that was asked for.
        "fs.s3a.committer.staging.conflict-mode": "append",
        # Spark's names are unique, and the same whichever committer writes them.
        "fs.s3a.committer.staging.unique-filenames": "false",
        # Those of another job of the same attempt are not left over.
        "fs.s3a.committer.abort.pending.uploads": "false",
    }


def properties(bucket: str, gateway: Gateway) -> dict[str, str]:
    """Say to Hadoop how one bucket is reached."""
    own = {
        "endpoint": gateway.endpoint,
        "endpoint.region": "us-east-1",
        "path.style.access": "true",
        "connection.ssl.enabled": str(urlsplit(gateway.endpoint).scheme == "https").lower(),
        "aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
        "access.key": gateway.access_key_id,
        "secret.key": gateway.secret_access_key,
    }
    return {**SHARED, **{f"fs.s3a.bucket.{bucket}.{key}": value for key, value in own.items()}}
