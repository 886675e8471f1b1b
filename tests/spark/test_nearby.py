"""Which way a table takes to a direct workspace: from this machine, or from executors (X2)."""

from __future__ import annotations

import pytest

from perago.protocol.spark import SparkNeed
from perago.settings import SparkSettings
from perago.spark.direct import MAGIC, NAME, is_nearby

CHOSEN = {NAME: MAGIC}


@pytest.mark.parametrize(
    "master", ["local", "local[*]", "local[2]", "local[4,3]", "local-cluster[2,1,1024]"]
)
def test_a_spark_of_this_machine_writes_here_first(master: str) -> None:
    assert is_nearby(SparkNeed(master), SparkSettings())
    assert is_nearby(SparkNeed(), SparkSettings(master=master))


@pytest.mark.parametrize("master", ["spark://host:7077", "yarn", "k8s://https://host"])
def test_executors_elsewhere_write_to_the_store(master: str) -> None:
    assert not is_nearby(SparkNeed(master), SparkSettings())
    assert not is_nearby(SparkNeed(), SparkSettings(master=master))
    assert is_nearby(SparkNeed("local[*]"), SparkSettings(master=master))


def test_whoever_names_a_committer_gets_it() -> None:
    assert not is_nearby(SparkNeed("local[*]", CHOSEN), SparkSettings())
    assert not is_nearby(SparkNeed("local[*]"), SparkSettings(conf=CHOSEN))
