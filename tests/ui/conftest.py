"""Homes with a history, and browsers that were let in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser as Chrome
from playwright.sync_api import sync_playwright

from tests.ui.asking import Browser
from tests.ui.browsers import chromium
from tests.ui.served import Project, Served


@pytest.fixture(scope="package")
def songs(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Give a project with a run of each kind: completed, failed, refused by a guard."""
    project = Project.at(tmp_path_factory.mktemp("songs") / "project")
    for how, ends in (("", 0), ("fail", 1), ("guard", 1), ("bug", 1)):
        code, said = project.run(how=how)
        assert code == ends, said
    return project


@pytest.fixture(scope="package")
def browsed(songs: Project) -> Iterator[tuple[Served, str]]:
    """Give a page, and the cookie of a browser that was let in."""
    with songs.served() as found:
        yield found, found.let_in()


@pytest.fixture
def served(songs: Project) -> Iterator[Served]:
    with songs.served() as found:
        yield found


@pytest.fixture(scope="module")
def chrome() -> Iterator[Chrome]:
    """Give a real browser, for one module only: its driver keeps an event loop in this thread."""
    with sync_playwright() as playwright:
        # In a container there is often no sandbox to be had; what is looked at is ours.
        opened = playwright.chromium.launch(
            executable_path=chromium(), args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield opened
        opened.close()


@pytest.fixture
def browser(tmp_path: Path) -> Browser:
    """Open the page of a home whose repository ``lake`` is empty."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    found = Browser(home)
    found.store.create_repository("lake")
    return found
