"""What can be decided about Spark without starting it (X1 to X4)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

DEFAULT_MASTER = "local[*]"
# Parts of one machine: executors, if there are any, see the same files as the driver.
_LOCAL = re.compile(r"local(?:\[[^\]]*\]|-cluster\[[^\]]*\])?")
_ONE_PROCESS = re.compile(r"local(?:\[[^\]]*\])?")
_CONNECT = "sc://"
_MASTER_PORT = 7077
AUTHENTICATE = "spark.authenticate"
SECRET = "spark.authenticate.secret"  # noqa: S105 - the name of it
_CRYPTO = "spark.network.crypto.enabled"
_SECRET_NAME = re.compile(r"(?i)secret|password|token|access[.]?key")
_SHUFFLE_SERVICE = "spark.shuffle.service.enabled"
# What every session of an attempt begins with, wherever it runs.
SESSION_DEFAULTS: Mapping[str, str] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Without it Spark refuses a Python source that can filter, instead of filtering itself.
    "spark.sql.python.filterPushdown.enabled": "true",
}
# SQL settings that belong to the whole application; every other `spark.sql.` one is a session's.
_STATIC_SQL = (
    "spark.sql.catalog",
    "spark.sql.extensions",
    "spark.sql.warehouse.dir",
    "spark.sql.hive.metastore",
    "spark.sql.cache.serializer",
    "spark.sql.queryExecutionListeners",
    "spark.sql.streaming.streamingQueryListeners",
)
# The exact shapes, each a directory that a committer names: a file that only begins like one of
# them is data.
_LEFTOVER = re.compile(
    r"""(?:^|/)(?:
        _SUCCESS$                                       # says that a job ended
      | \.[^/]+\.crc$                                   # checksums of Hadoop's local file system
      | _temporary/(?:[0-9]+|manifest_[^/]+)(?:/|$)     # outputs of tasks that were not committed
      | \.spark-staging-[0-9A-Za-z-]+/                  # the same, dynamic partition overwrite
      | __magic_job-[0-9A-Za-z_-]+/                     # the same, of the magic committer
    )""",
    re.VERBOSE,
)
_CHECKSUMS = b"crc\0"


@dataclass(frozen=True, slots=True)
class SparkNeed:
    """What a task asks of Spark; without a master, what the worker is configured with."""

    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    packages: tuple[str, ...] = ()
    direct: bool = False
    """Whether the workspace is worked on where it is stored, if the store can (X2)."""

    def over(self, base: SparkNeed) -> SparkNeed:
        """Return this need where it speaks, and ``base`` where it is silent."""
        return SparkNeed(
            self.master or base.master,
            {**base.conf, **self.conf},
            tuple(dict.fromkeys((*base.packages, *self.packages))),
            self.direct,
        )


@dataclass(frozen=True, slots=True)
class Application:
    """What a JVM has to be started for; two tasks with the same can share one."""

    master: str
    conf: tuple[tuple[str, str], ...]
    packages: tuple[str, ...]

    @property
    def local(self) -> bool:
        """Return whether all of it runs on this machine."""
        return is_local(self.master)

    @property
    def connect(self) -> bool:
        """Return whether a Spark Connect server does the work, so that no JVM is ours."""
        return is_connect(self.master)

    @property
    def ships_code(self) -> bool:
        """Return whether Python functions run where the author's modules are not."""
        return _ONE_PROCESS.fullmatch(self.master) is None


def is_local(master: str) -> bool:
    """Return whether a master keeps its work on the machine of the driver."""
    return _LOCAL.fullmatch(master) is not None


def is_connect(master: str) -> bool:
    """Return whether a master is the address of a Spark Connect server."""
    return master.startswith(_CONNECT)


def shown(master: str) -> str:
    """Name a master for people: the address of a Connect server may go on with a token."""
    return master.partition(";")[0].removesuffix("/") if is_connect(master) else master


def split(need: SparkNeed) -> tuple[Application, Mapping[str, str]]:
    """Part what the JVM is started with from what each session can have for itself."""
    session = {key: value for key, value in need.conf.items() if _of_a_session(key)}
    static = {key: value for key, value in need.conf.items() if key not in session}
    master = need.master or static.pop("spark.master", DEFAULT_MASTER)
    return Application(master, tuple(sorted(static.items())), need.packages), session


def _of_a_session(key: str) -> bool:
    return key.startswith("spark.sql.") and not key.startswith(_STATIC_SQL)


def refuse_master(master: str) -> str | None:
    """Return what is wrong with the text of a master, or None."""
    if is_local(master) or master in {"yarn", "local"}:
        return None
    if re.fullmatch(r"(?:spark|k8s|sc)://\S+", master):
        return None
    return "is not a master Spark knows"


def addresses(master: str) -> tuple[tuple[str, int], ...]:
    """List where a standalone master may be reached; other masters are not ours to ask."""
    if not master.startswith("spark://"):
        return ()
    parts = (part.rpartition(":") for part in master.removeprefix("spark://").split(","))
    return tuple(
        (host.strip("[]"), int(port)) if port.isdecimal() and host else (host or port, _MASTER_PORT)
        for host, _, port in parts
    )


def refuse_local_workspace(master: str, *, shared_root: bool) -> str | None:
    """Return why Spark elsewhere cannot use a directory of this machine, or None (X2)."""
    if is_local(master) or shared_root:
        return None
    where = shown(master)
    return f"master {where!r} works on other machines, which do not see the attempt directory"


def protection(master: str, conf: Mapping[str, str]) -> dict[str, str]:
    """Return what keeps strangers out of an application whose parts talk over a network.

    One process has nothing to protect. YARN and Kubernetes give each application a secret of its
    own, and so do we where the cluster is ours. A standalone master has one for all and must
    know it first; a shuffle service of the cluster's must know of it, too: there the operator
    decides, see :func:`open_to_strangers`.
    """
    asked = conf.get(AUTHENTICATE, "").lower()
    if asked == "true":
        return {_CRYPTO: "true"}
    if asked or _ONE_PROCESS.fullmatch(master) or is_connect(master):
        return {}
    if master.startswith("spark://") or conf.get(_SHUFFLE_SERVICE, "").lower() == "true":
        return {}
    return {AUTHENTICATE: "true", _CRYPTO: "true"}


def open_to_strangers(master: str, conf: Mapping[str, str]) -> str | None:
    """Return why anybody who reaches the ports of a cluster can run code there, or None."""
    if _ONE_PROCESS.fullmatch(master) or is_connect(master):
        return None
    known = {**protection(master, conf), **conf}
    if known.get(AUTHENTICATE, "").lower() == "true":
        return None
    return f"master {shown(master)} is used without {AUTHENTICATE}"


def secrets_of(master: str, conf: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values that Spark itself would not show, and the token of a server."""
    found = [text for name, text in conf.items() if _SECRET_NAME.search(name)]
    return *found, *re.findall(r";token=([^;]+)", master)


def needs_secret(master: str, conf: Mapping[str, str]) -> bool:
    """Return whether a secret has to be made: Spark makes one for the clusters of others."""
    return is_local(master) and conf.get(AUTHENTICATE) == "true" and SECRET not in conf


def is_leftover(path: str) -> bool:
    """Return whether a path is what Spark leaves behind beside data; a directory ends in ``/``."""
    return _LEFTOVER.search(path) is not None


def is_left_by_spark(path: str, start: bytes) -> bool:
    """Tell the same of a local file by how it begins, too: it may only be named like one."""
    if path.endswith(".crc"):
        return is_leftover(path) and start.startswith(_CHECKSUMS)
    if path.rpartition("/")[2] == "_SUCCESS":
        return not start
    return is_leftover(path)
