from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.backend import Backend, EmbeddedBackend, LakeFSBackend
from tests.contract.scene import Scene


@pytest.fixture(params=["embedded", "lakefs", "lakefs_s3"])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    """Run the whole suite over each store."""
    if request.param == "embedded":
        yield EmbeddedBackend(tmp_path / "store")
        return
    server = request.getfixturevalue(f"{request.param}_server")
    lakefs = LakeFSBackend(server, tmp_path / "worker")
    yield lakefs
    lakefs.store.close()


@pytest.fixture
def scene(backend: Backend, tmp_path: Path) -> Scene:
    """Give a repository whose ``main`` holds a small workspace at A."""
    return Scene(backend, tmp_path)
