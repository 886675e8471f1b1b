"""Z6: the page in a real browser."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.environment import clean_environment
from tests.patience import LIMIT
from tests.ui.served import Project, Served

LIMIT_MS = LIMIT * 1000


@contextmanager
def opened(
    chrome: Browser, served: Served, width: int = 1000, scheme: str = "light"
) -> Iterator[Page]:
    """Open the page as a person does; whatever the browser complains about fails the test."""
    context = chrome.new_context(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if scheme == "dark" else "light",
    )
    context.set_default_timeout(LIMIT_MS)
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda said: complaints.append(f"{said.type}: {said.text}"))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))
    page.goto(served.address)
    yield page
    context.close()
    assert complaints == []


def goto_each(page: Page, base: str) -> Iterator[str]:
    """Go to a page of each kind; runs and attempts of each state."""
    for path in ("/", "/history", "/workers", "/report"):
        page.goto(base + path)
        yield path
    page.goto(base + "/history")
    page.locator("main a").first.click()
    yield "history of a branch"
    page.goto(base)
    runs = [str(one.get_attribute("href")) for one in page.locator("a[href^='/run/']").all()]
    for run in runs:
        page.goto(base + run)
        yield run
        attempts = page.locator("table a[href^='/attempt/']").all()
        for attempt in [str(one.get_attribute("href")) for one in attempts[:1]]:
            page.goto(base + attempt)
            yield attempt


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1000, 1600])
def test_z6_every_page_has_no_error_and_no_barrier(
    chrome: Browser, served: Served, width: int, scheme: str
) -> None:
    axe = Axe()
    with opened(chrome, served, width, scheme) as page:
        for kind in goto_each(page, served.base):
            found = axe.run(page)
            assert found.violations_count == 0, (kind, found.generate_report())
            over = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert over <= 0, f"{kind} is wider than the window by {over}"


def test_z6_a_run_in_progress_moves_without_a_reload(chrome: Browser, tmp_path: Path) -> None:
    project = Project.at(tmp_path / "project")
    code, said = project.run()
    assert code == 0, said
    held = tmp_path / "go on"
    with project.served() as served, opened(chrome, served) as page:
        page.evaluate("window.stays = true")
        running = project.begin(hold=str(held))
        try:
            expect(page.locator("tbody tr")).to_have_count(2, timeout=LIMIT_MS)
            expect(page.locator(".badge").first).to_have_text("RUNNING", timeout=LIMIT_MS)
            assert page.evaluate("window.stays")
            page.locator("a[href^='/run/']").first.click()
            expect(page.locator("h1 .badge")).to_have_text("RUNNING")
            expect(page.locator("svg .step.live")).to_have_count(1, timeout=LIMIT_MS)
            page.evaluate("window.stays = true")
        finally:
            held.touch()
            running.communicate(timeout=LIMIT)
        expect(page.locator("h1 .badge")).to_have_text("COMPLETED", timeout=LIMIT_MS)
        expect(page.locator("svg .step.good")).to_have_count(2, timeout=LIMIT_MS)
        assert page.evaluate("window.stays")


def test_z6_a_second_tab_is_let_in_and_another_browser_is_not(
    chrome: Browser, served: Served
) -> None:
    with opened(chrome, served) as page:
        assert page.url == f"{served.base}/"
        second = page.context.new_page()
        second.goto(f"{served.base}/report")
        expect(second.locator("h1")).to_have_text("Report")
        other = chrome.new_context()
        refused = other.new_page()
        answer = refused.goto(served.address)
        assert answer is not None
        assert answer.status == 403
        expect(refused.locator(".why")).to_contain_text("used already")
        other.close()


def test_z6_the_keyboard_reaches_everything(chrome: Browser, served: Served) -> None:
    with opened(chrome, served) as page:
        page.keyboard.press("Tab")
        expect(page.locator(".skip")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator("#main")).to_be_focused()
        for _ in range(20):
            page.keyboard.press("Tab")
            href = page.evaluate("document.activeElement.getAttribute('href') || ''")
            if href.startswith("/run/"):
                break
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_contain_text("songs")


def test_z6_the_end_of_the_server_is_said(chrome: Browser, songs: Project) -> None:
    context = chrome.new_context()
    page = context.new_page()
    with songs.served() as served:
        page.goto(served.address)
        expect(page.locator("#news")).to_have_text("")
    expect(page.locator("#news")).to_contain_text("not live any more", timeout=LIMIT_MS)
    context.close()


PICTURES = Path(__file__).parents[2] / "docs/howto/pictures"


def test_the_picture_of_the_guide(chrome: Browser, tmp_path: Path) -> None:
    """Draw what README and the guide show; ``PERAGO_PICTURES=1`` puts it there."""
    directory = tmp_path / "words"
    for words in (
        ["init", "words"],
        ["run", "workflow.json", "tasks", "--from", "data"],
        ["run", "workflow.json", "tasks", "-i", "top=0"],
    ):
        within = directory if directory.exists() else tmp_path
        subprocess.run(
            [sys.executable, "-m", "perago", *words],
            cwd=within,
            env=clean_environment(),
            check=False,
            capture_output=True,
        )
    with Project(directory).served() as served, opened(chrome, served, width=900) as page:
        expect(page.locator("tbody tr")).to_have_count(2)
        page.locator("a[href^='/run/']").first.click()
        expect(page.locator("svg .step.bad")).to_have_count(1)
        shot = page.locator("#main").screenshot()
    assert shot.startswith(b"\x89PNG")
    if os.environ.get("PERAGO_PICTURES"):
        PICTURES.mkdir(exist_ok=True)
        (PICTURES / "run.png").write_bytes(shot)
