from __future__ import annotations

from pathlib import Path

import pytest

from perago.stores.embedded import EmbeddedStore
from tests.embedded.clock import Clock


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(root: Path, clock: Clock) -> EmbeddedStore:
    """Give a store with one repository, ``demo``, whose ``main`` holds two files."""
    made = EmbeddedStore(root, now=clock)
    made.create_repository("demo")
    made.put("demo", "main", "a", b"a0")
    made.put("demo", "main", "b", b"b0")
    made.commit_branch("demo", "main", "seed")
    return made
