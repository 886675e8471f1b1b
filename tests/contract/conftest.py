from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.backend import (
    Backend,
    EmbeddedBackend,
    HardLakeFSBackend,
    LakeFSBackend,
)
from tests.contract.scene import Scene

STORES = ("embedded", "lakefs", "lakefs_s3")
WRITING = {"tests.contract.test_publishing", "tests.contract.test_staging"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run every test over each store; where something is written, under the hard fence too."""
    if "backend" in metafunc.fixturenames:
        hard = ("lakefs_hard",) if metafunc.module.__name__ in WRITING else ()
        metafunc.parametrize("backend", [*STORES, *hard], indirect=True)


@pytest.fixture
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    """Give a store of its own."""
    if request.param == "embedded":
        yield EmbeddedBackend(tmp_path / "store")
        return
    hard = request.param == "lakefs_hard"
    server = request.getfixturevalue("lakefs_server" if hard else f"{request.param}_server")
    lakefs = (HardLakeFSBackend if hard else LakeFSBackend)(server, tmp_path / "worker")
    yield lakefs
    lakefs.store.close()


@pytest.fixture
def scene(backend: Backend, tmp_path: Path) -> Scene:
    """Give a repository whose ``main`` holds a small workspace at A."""
    return Scene(backend, tmp_path)
