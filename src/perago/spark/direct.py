"""Spark on a store's S3 gateway: the jars, the committer, and the keys (X2).

The magic committer uploads each file once, to where it stays, and makes all of them visible when
the job ends; what is pending is kept in the store, where executors on any machine find it.

The keys go into the Hadoop configuration of the running context, for one bucket. From there they
travel with the jobs; they are neither on a command line nor in Spark's own configuration, which
its UI and its event log show.
"""

from __future__ import annotations

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

NAME: Final = "spark.hadoop.fs.s3a.committer.name"
MAGIC: Final = "magic"

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
    name = given.get(NAME, MAGIC)
    conf = {**need.conf, "spark.jars": ",".join(filter(None, listed)), **COMMITTER, NAME: name}
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


def is_nearby(need: SparkNeed, settings: SparkSettings) -> bool:
    """Return whether a table is written here first and sent by us.

    That takes one request a file, where S3A takes thirteen. Executors elsewhere cannot do it, and
    whoever names a committer wants that one.
    """
    chosen = NAME in settings.conf or NAME in need.conf
    return is_local(need.master or settings.master) and not chosen


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
