"""Real servers for the tests: built once per machine, started by whoever needs them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from perago.dev import Instance, start


@pytest.fixture(scope="session")
def lakefs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    """Give a running lakeFS with its blocks on the local disk."""
    with start("local", tmp_path_factory.mktemp("lakefs"), ["lakefs"]) as instance:
        yield instance


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"
