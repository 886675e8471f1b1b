"""Real servers for the tests that need them: started once per test process, never skipped."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from perago.dev import ConductorEndpoint, LakeFSEndpoint, start


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
