"""One JVM for all tests here; it ends with the session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from perago.protocol.spark import SparkNeed
from perago.settings import SparkSettings
from perago.spark.jvm import JVM
from perago.spark.session import AttemptSession
from tests.spark import clusters
from tests.spark.tasks import SMALL


@pytest.fixture(scope="session")
def jvm() -> Iterator[None]:
    """Start the JVM outside of any test: on a loaded machine that takes a while."""
    session = new_session("start")
    session.open().range(10).groupBy("id").count().collect()
    session.close()
    yield
    JVM.stop()


@pytest.fixture(scope="session")
def clusters_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("clusters")


@pytest.fixture(scope="session")
def standalone_master(clusters_home: Path) -> Iterator[str]:
    """Give the address of a Spark master with two workers."""
    JVM.stop()  # with its executors: there is only so much memory
    with clusters.standalone(clusters_home / "standalone") as address:
        yield address
        JVM.stop()


@pytest.fixture(scope="session")
def connect_server(clusters_home: Path) -> Iterator[str]:
    """Give the address of a Spark Connect server."""
    with clusters.connect(clusters_home / "connect") as address:
        yield address


@pytest.fixture
def attempt(jvm: None) -> Iterator[AttemptSession]:
    session = new_session("test")
    yield session
    session.close()


def new_session(execution_id: str, need: SparkNeed = SMALL.need) -> AttemptSession:
    return AttemptSession(need, execution_id, SparkSettings())
