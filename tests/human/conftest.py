"""A project for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from perago.dev import ConductorEndpoint, LakeFSEndpoint
from tests.human.project import Project
from tests.human.served import ServedProject


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Give a project on the embedded store."""
    return Project(tmp_path / "project")


@pytest.fixture
def served(
    tmp_path: Path, conductor_server: ConductorEndpoint, lakefs_server: LakeFSEndpoint
) -> Iterator[ServedProject]:
    """Give a project on real servers."""
    made = ServedProject(tmp_path, conductor_server, lakefs_server)
    yield made
    made.close()
