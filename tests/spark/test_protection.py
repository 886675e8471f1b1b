"""Applications on a cluster let nobody in who does not know their secret."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from perago.protocol.spark import SparkNeed
from perago.redaction import hide
from perago.settings import SparkSettings
from perago.spark.jvm import JVM
from perago.spark.session import AttemptSession
from tests.spark import clusters
from tests.spark.tasks import STATIC

pytestmark = pytest.mark.timeout(300)
SECRET = "5ecret-of-the-cluster"  # noqa: S105 - of a cluster that lives for a minute
CONF = {
    "spark.pyspark.python": sys.executable,
    "spark.driver.host": "127.0.0.1",
    "spark.executor.memory": "600m",
    "spark.executor.extraJavaOptions": STATIC["spark.driver.extraJavaOptions"],
}


@pytest.fixture(scope="module")
def guarded_master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home = tmp_path_factory.mktemp("guarded") / "cluster"
    with clusters.standalone(home, [clusters.HOST], SECRET) as address:
        yield address


@pytest.fixture(autouse=True)
def ended() -> Iterator[None]:
    yield
    JVM.stop()


def count(settings: SparkSettings) -> int:
    session = AttemptSession(SparkNeed(), "protected", settings)
    try:
        return session.open().range(1000).repartition(2).count()
    finally:
        session.close()


def command_lines() -> str:
    return subprocess.run(["ps", "-eo", "args"], text=True, capture_output=True, check=True).stdout


def test_a_cluster_of_our_own_has_a_secret_that_nobody_sees() -> None:
    settings = SparkSettings(master="local-cluster[1,1,600]", conf=CONF)
    session = AttemptSession(SparkNeed(), "own", settings)
    try:
        spark = session.open()
        assert spark.range(1000).repartition(2).count() == 1000
        conf = dict(spark.sparkContext.getConf().getAll())
        assert conf["spark.authenticate"] == conf["spark.network.crypto.enabled"] == "true"
        secret = conf["spark.authenticate.secret"]
        assert hide(secret) == "[hidden]"
        assert secret not in command_lines()
    finally:
        session.close()


def test_a_standalone_master_with_a_secret_is_used_with_it(guarded_master: str) -> None:
    keys = {"spark.authenticate": "true", "spark.authenticate.secret": SECRET}
    settings = SparkSettings(master=guarded_master, conf={**CONF, **keys})
    session = AttemptSession(SparkNeed(), "guarded", settings)
    try:
        spark = session.open()
        assert spark.range(1000).repartition(2).count() == 1000
        assert spark.sparkContext.getConf().get("spark.network.crypto.enabled") == "true"
        assert SECRET not in command_lines()
    finally:
        session.close()
