"""The package is installed once for a process of tests, and so is a project that uses it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.typescript.project import Package, Project


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Package:
    return Package.at(tmp_path_factory.mktemp("typescript"))


@pytest.fixture(scope="session")
def installed(package: Package, tmp_path_factory: pytest.TempPathFactory) -> Project:
    return package.project(tmp_path_factory.mktemp("project") / "songs")


@pytest.fixture
def project(installed: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Somebody's project, with Node on the path of whoever runs its tasks."""
    monkeypatch.setenv("PATH", installed.node.path)
    return installed


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "data" / "in").mkdir(parents=True)
    (tmp_path / "data" / "in" / "a.txt").write_text("abc")
    return tmp_path / "data"
