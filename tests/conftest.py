"""Real servers for the tests that need them, and time for all tests on a machine that is slow."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from perago.dev import ConductorEndpoint, LakeFSEndpoint, start
from tests import patience


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Give every test the time it needs here, unless somebody said how long."""
    if config.getoption("timeout", None) is None and "PYTEST_TIMEOUT" not in os.environ:
        config.option.timeout = patience.scaled(patience.TEST_SECONDS)


def pytest_report_header() -> str:
    return f"limits: {patience.FACTOR:g} times those of a quiet machine ({patience.VARIABLE})"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Scale the limits of those tests that have one of their own."""
    for item in items:
        if marker := item.get_closest_marker("timeout"):
            own = pytest.mark.timeout(patience.scaled(float(marker.args[0])))
            item.add_marker(own, append=False)


@pytest.fixture(scope="session")
def lakefs_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LakeFSEndpoint]:
    """Give a lakeFS server on local blocks."""
    with start("tests", tmp_path_factory.mktemp("lakefs"), ["lakefs"]) as instance:
        yield instance.lakefs


@pytest.fixture(scope="session")
def lakefs_s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LakeFSEndpoint]:
    """Give a lakeFS server that keeps its blocks in an S3 store."""
    home = tmp_path_factory.mktemp("lakefs-s3")
    with start("tests-s3", home, ["lakefs"], blocks="s3") as instance:
        yield instance.lakefs


@pytest.fixture(scope="session")
def conductor_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConductorEndpoint]:
    """Give a Conductor server."""
    with start("tests", tmp_path_factory.mktemp("conductor"), ["conductor"]) as instance:
        yield instance.conductor
