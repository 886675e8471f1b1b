from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.backend import Backend, EmbeddedBackend
from tests.contract.scene import Scene


@pytest.fixture(params=["embedded"])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Backend:
    """Add a store here and the whole suite runs over it."""
    if request.param == "embedded":
        return EmbeddedBackend(tmp_path / "store")
    raise NotImplementedError(request.param)


@pytest.fixture
def scene(backend: Backend, tmp_path: Path) -> Scene:
    """Give a repository whose ``main`` holds a small workspace at A."""
    return Scene(backend, tmp_path)
