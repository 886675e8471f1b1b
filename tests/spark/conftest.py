"""One JVM for all tests here; it ends with the session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from perago.protocol.spark import SparkNeed
from perago.settings import SparkSettings
from perago.spark.jvm import JVM
from perago.spark.session import AttemptSession
from tests.spark.tasks import SMALL


@pytest.fixture(scope="session")
def jvm() -> Iterator[None]:
    """Start the JVM outside of any test: on a loaded machine that takes a while."""
    session = new_session("start")
    session.open().range(10).groupBy("id").count().collect()
    session.close()
    yield
    JVM.stop()


@pytest.fixture
def attempt(jvm: None) -> Iterator[AttemptSession]:
    session = new_session("test")
    yield session
    session.close()


def new_session(execution_id: str, need: SparkNeed = SMALL.need) -> AttemptSession:
    return AttemptSession(need, execution_id, SparkSettings())
