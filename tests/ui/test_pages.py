"""What the page answers to a program that asks it, with and without right."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from perago.ui.access import HEADERS
from tests.environment import clean_environment
from tests.patience import LIMIT, until
from tests.ui.served import Project, Served

PAGES = ("/", "/history", "/workers", "/report")


def links(text: str, start: str) -> list[str]:
    found = re.findall(rf'href="({re.escape(start)}[^"]*)"', text)
    return [one.replace("&amp;", "&") for one in dict.fromkeys(found)]


def every_page(served: Served, cookie: str) -> Iterator[tuple[str, str]]:
    """Walk from the list of runs to everything it leads to."""
    seen, todo = set[str](), [*PAGES]
    while todo:
        path = todo.pop()
        if path in seen or path.startswith("/static"):
            continue
        seen.add(path)
        got = served.ask(path, cookie)
        assert got.status == 200, (path, got.text)
        yield path, got.text
        todo += links(got.text, "/")


def test_z4_without_the_cookie_there_is_nothing(served: Served) -> None:
    for path in (*PAGES, "/live", "/run/x", "/attempt/x", "/nowhere"):
        got = served.ask(path)
        assert got.status == 403, path
        assert "perago ui" in got.text
        assert ".perago" not in got.text
    assert ".perago" not in served.ask("/static/absent").text


def test_z4_the_token_lets_one_browser_in_once(served: Served) -> None:
    cookie = served.let_in()
    token = served.address.removeprefix(served.base)
    assert served.ask("/", cookie).status == 200
    assert served.ask(token).status == 403
    again = served.ask(f"/history{token[1:]}&x=1", cookie)
    assert (again.status, again.headers["location"]) == (303, "/history?x=1")


def test_z4_the_cookie_is_for_this_page_alone(served: Served) -> None:
    got = served.ask(served.address.removeprefix(served.base))
    said = got.headers["set-cookie"].lower()
    assert "httponly" in said
    assert "samesite=strict" in said
    assert got.headers["location"] == "/"


def test_z4_a_redirect_never_leaves_the_page(served: Served) -> None:
    token = served.address.rpartition("=")[2]
    got = served.ask(f"//evil.example/?token={token}")
    assert got.headers.get("location", "/").startswith("/")
    assert not got.headers.get("location", "/").startswith("//")


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", ""])
def test_z4_another_name_is_refused(browsed: tuple[Served, str], host: str) -> None:
    served, cookie = browsed
    assert served.ask("/", cookie, Host=host).status == 421


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_z4_read_only_unless_told(browsed: tuple[Served, str], method: str) -> None:
    served, cookie = browsed
    assert served.ask("/", cookie, method, form={"form_key": "x"}).status in {403, 405}


def test_z4_a_large_form_is_refused(songs: Project) -> None:
    with songs.served() as served:
        got = served.ask("/", served.let_in(), "POST", form={"form_key": "x" * 100_000})
        assert got.status == 413


def test_z4_every_answer_has_our_headers(browsed: tuple[Served, str]) -> None:
    served, cookie = browsed
    for path in (*PAGES, "/static/perago.css", "/static/live.js", "/static/absent", "/nowhere"):
        got = served.ask(path, cookie)
        for name, value in HEADERS.items():
            assert got.headers[name.lower()] == value, path
        assert "server" not in got.headers
    assert served.ask("/", "wrong=1").headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", ["/static/../application.py", "/static/%2e%2e/access.py"])
def test_z4_only_our_files_are_served(browsed: tuple[Served, str], path: str) -> None:
    served, cookie = browsed
    assert served.ask(path, cookie).status == 404


def test_z2_z4_every_page_that_is_linked_is_there_and_no_name_is_markup(
    browsed: tuple[Served, str],
) -> None:
    served, cookie = browsed
    kinds = set()
    for path, text in every_page(served, cookie):
        kinds.add(path.split("/")[1].partition("?")[0])
        assert "<script>alert" not in text, path
        assert "<b>" not in text, path
        assert len(text.encode()) <= 100_000, path
    assert {"", "run", "attempt", "history", "workers", "report"} <= kinds


def test_z2_a_run_says_what_failed_why_and_what_is_visible(browsed: tuple[Served, str]) -> None:
    served, cookie = browsed
    failed = links(served.ask("/?status=FAILED", cookie).text, "/run/")
    assert len(failed) == 3
    shown = [served.ask(path, cookie).text for path in failed]
    assert any("&lt;script&gt;alert(2)&lt;/script&gt; is no song" in text for text in shown)
    assert any("post guardrail" in text for text in shown)
    assert all("no step of this run has published" in text for text in shown)
    (completed,) = links(served.ask("/?status=COMPLETED", cookie).text, "/run/")
    assert "left by <strong>look</strong>" in served.ask(completed, cookie).text


def test_z2_an_attempt_tells_phases_guards_files_and_the_traceback(
    browsed: tuple[Served, str],
) -> None:
    served, cookie = browsed
    texts = [text for path, text in every_page(served, cookie) if path.startswith("/attempt/")]
    assert any("Traceback" in text for text in texts)
    assert any("violated" in text for text in texts)
    assert any("out.txt" in text and "merge" in text for text in texts)


@pytest.mark.parametrize(
    "path",
    [
        "/run/absent",
        "/run/%00",
        "/attempt/absent",
        "/attempt/%f0%9f%8e%b5",
        "/history/embedded/absent",
        "/history/nowhere/songs",
        "/history/lakefs/songs",
        "/history/embedded/songs?branch=absent",
        "/history/embedded/songs?since=absent",
        "/?before=x/y",
        "/?before=nan/y",
        "/?status=%27%20OR%201",
        "/?workflow=absent",
    ],
)
def test_what_is_not_there_is_a_page(browsed: tuple[Served, str], path: str) -> None:
    served, cookie = browsed
    got = served.ask(path, cookie)
    assert got.status in {200, 404}, got.text
    assert "Traceback" not in got.text
    assert "<main" in got.text


def test_an_attempt_that_is_under_way_is_not_said_to_be_dead(tmp_path: Path) -> None:
    project, held = Project.at(tmp_path / "project"), tmp_path / "go on"
    running = project.begin(hold=str(held))
    try:
        until((project.home / "events.sqlite").exists, "a home")
        with project.served() as served:
            cookie = served.let_in()

            def shown() -> str:
                runs = links(served.ask("/", cookie).text, "/run/")
                attempts = links(served.ask(runs[0], cookie).text, "/attempt/") if runs else []
                return served.ask(attempts[0], cookie).text if attempts else ""

            until(lambda: "under way" in shown(), "an attempt in its body")
            text = shown()
            assert ">IN_PROGRESS<" in text
            assert "died" not in text
            held.touch()
            running.communicate(timeout=LIMIT)
            assert ">COMPLETED<" in shown()
    finally:
        held.touch()
        running.communicate(timeout=LIMIT)


def test_a_home_that_is_gone_is_not_made_again(tmp_path: Path) -> None:
    project = Project.at(tmp_path / "project")
    code, said = project.run()
    assert code == 0, said
    with project.served() as served:
        cookie = served.let_in()
        project.home.rename(tmp_path / "elsewhere")
        for path in ("/", "/history", "/report"):
            assert served.ask(path, cookie).status == 404
        assert not project.home.exists()


def test_a_directory_that_is_not_a_home_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir(mode=0o755)
    words = [sys.executable, "-m", "perago", "ui", "--home", str(tmp_path / "empty")]
    done = subprocess.run(
        words, env=clean_environment(), cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "there is no Perago home" in done.stderr
    assert list((tmp_path / "empty").iterdir()) == []
    assert (tmp_path / "empty").stat().st_mode & 0o777 == 0o755
