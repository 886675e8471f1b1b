"""Z4: files are read by a process bounded in memory, bytes and time; its end is a sentence."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from perago.errors import UsageError
from perago.ui.previewing import Bounds, Found, Previewer, environment_of, judge_answer
from tests.patience import LIMIT
from tests.ui.asking import Browser
from tests.ui.contents import dense, parquet
from tests.ui.test_browse import MAIN, elements, put

REQUEST = {"memory": 1 << 30, "seconds": 60, "answer": 1 << 20}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PAR1",
        b"PAR1" * 100,
        b"PAR1\0\0\0\xffPAR1",
        parquet({"a": [1, 2, 3]})[:-10],
        parquet({"a": [1, 2, 3]})[10:],
        parquet({"a": list(range(1000))}).replace(b"\0", b"\xff"),
        b"text, not a table",
    ],
)
def test_a_broken_parquet_file_is_one_sentence(browser: Browser, content: bytes) -> None:
    put(browser, {"t.parquet": content, "s.parquet": b"another"})
    page = browser.page(MAIN, path="t.parquet", **{"as": "table"})
    assert page.status == 200
    assert "No preview: " in page.text
    assert "perago-preview" not in page.text  # Where it was read is nobody's business.
    elements(page.text)
    assert browser.page(MAIN, path="t.parquet", **{"as": "hex"}).status == 200


@pytest.mark.parametrize("content", [b"a,a\n1,2\n", b"a,b\n1\n", b"\xff\xfe\n1\n", b"\n\n", b'"'])
def test_a_broken_csv_file_is_one_sentence_or_a_table(browser: Browser, content: bytes) -> None:
    put(browser, {"t.csv": content})
    page = browser.page(MAIN, path="t.csv")
    assert page.status == 200
    elements(page.text)


def test_a_small_file_that_needs_much_memory_is_one_sentence(browser: Browser) -> None:
    bounded = Browser(browser.home, Bounds(memory=512 << 20, seconds=60))
    put(browser, {"dense.parquet": dense(200), "small.parquet": parquet({"a": [1]})})
    page = bounded.page(MAIN, path="dense.parquet")
    assert "No preview: " in page.text
    assert "memory" in page.text
    assert "1 row, 1 column" in bounded.page(MAIN, path="small.parquet").text


def test_a_process_that_cannot_even_start_is_one_sentence(browser: Browser) -> None:
    bounded = Browser(browser.home, Bounds(memory=1 << 20, seconds=60))
    put(browser, {"a.csv": b"id\n1\n"})
    assert "No preview: " in bounded.page(MAIN, path="a.csv").text


def test_a_preview_that_takes_too_long_is_one_sentence(browser: Browser) -> None:
    bounded = Browser(browser.home, Bounds(seconds=0))
    put(browser, {"a.txt": b"words"})
    assert "it took more than 0 seconds" in bounded.page(MAIN, path="a.txt").text


def test_a_huge_file_is_looked_at_from_its_beginning(browser: Browser, tmp_path: Path) -> None:
    huge = tmp_path / "huge"
    with huge.open("wb") as file:
        file.write(b"id,name\n1,<b>\n")
        file.truncate(100_000_000)
    browser.store.put("lake", "main", "huge.csv", huge)
    browser.store.commit_branch("lake", "main", "huge")
    text = browser.page(MAIN, path="huge.csv").text
    assert "more than the 64.0 MB that a page reads" in text
    for shape in ("hex", "text"):
        text = browser.page(MAIN, path="huge.csv", **{"as": shape}).text
        assert "100.0 MB" in text
        assert "69 64 2c 6e" in text
        assert "Only the beginning is shown" in text


def test_an_image_that_is_too_large_is_not_served(browser: Browser) -> None:
    put(browser, {"a.png": b"\x89PNG\r\n\x1a\n" + b"\0" * 10_000_000})
    assert "it is not shown" in browser.page(MAIN, path="a.png").text
    assert browser.page("/content/embedded/lake/main", path="a.png").status == 404


@pytest.mark.parametrize(
    ("code", "said", "found"),
    [
        (0, b'{"lines": []}', {"lines": []}),
        (0, b"", {"problem": "reading it gave no answer"}),
        (0, b"[]", {"problem": "reading it gave no answer"}),
        (0, b'{"lines": [', {"problem": "reading it gave no answer"}),
        (0, b"\xff", {"problem": "reading it gave no answer"}),
    ],
)
def test_what_a_process_said_is_read(code: int, said: bytes, found: Found) -> None:
    assert judge_answer(code, said) == found


@pytest.mark.parametrize("code", [1, 120, -6, -9, -11, -24, -25])
def test_how_a_process_ended_is_said(code: int) -> None:
    found = judge_answer(code, b'{"lines": ["half an answer"]}')
    assert list(found) == ["problem"]
    assert str(abs(code)) in found["problem"]


def test_a_process_is_given_no_key() -> None:
    environ = {"PATH": "/bin", "LAKECTL_CREDENTIALS_SECRET_ACCESS_KEY": "k", "PYTHONPATH": "x"}
    found = environment_of(environ)
    assert found["PATH"] == "/bin"
    assert "k" not in found.values()
    assert "PYTHONPATH" not in found


def run(code: str, request: dict[str, object]) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps({**REQUEST, **request}).encode(),
        capture_output=True,
        check=False,
        timeout=LIMIT,
    )


def test_tables_without_pyarrow_say_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"a\n1\n")
    code = "import sys; sys.modules['pyarrow'] = None; from perago.ui.preview import main; main()"
    found = run(code, {"what": "table", "root": str(tmp_path), "table": "t.csv"})
    assert "install 'perago[data]'" in json.loads(found.stdout)["problem"]


@pytest.mark.parametrize(
    "deed",
    [
        "import socket; socket.socket()",
        "import socket; socket.create_connection(('127.0.0.1', 1))",
        "import subprocess; subprocess.run(['true'])",
        "import os; os.system('true')",
        "import os; os.posix_spawn('/bin/true', ['true'], {})",
        "import os; os.fork()",
    ],
)
def test_a_process_that_reads_a_file_can_neither_connect_nor_start_others(deed: str) -> None:
    code = f"from perago.ui.preview import _bound; _bound(1 << 30, 60, 1000)\n{deed}"
    ended = run(code, {})
    assert b"PermissionError: a preview needs no" in ended.stderr


def test_a_process_writes_no_more_than_an_answer(tmp_path: Path) -> None:
    path = tmp_path / "written"
    bound = "from perago.ui.preview import _bound; _bound(1 << 30, 60, 1000)"
    run(f"{bound}\nopen({str(path)!r}, 'wb').write(b'x' * 5000)", {})
    assert path.stat().st_size == 1000


def test_an_unknown_request_is_one_sentence() -> None:
    found = run("from perago.ui.preview import main; main()", {"what": "else"})
    assert "cannot be read" in json.loads(found.stdout)["problem"]


def test_the_same_content_is_read_once(tmp_path: Path) -> None:
    previewer = Previewer(Bounds(seconds=60))
    asked: list[Path] = []

    def prepare(scratch: Path) -> dict[str, object]:
        asked.append(scratch)
        assert scratch.stat().st_mode & 0o077 == 0
        (scratch / "file").write_bytes(b"abc")
        return {"what": "hex", "file": str(scratch / "file")}

    first = previewer.find("name", prepare)
    assert previewer.find("name", prepare) is first
    assert len(asked) == 1
    assert not asked[0].exists()


def test_what_cannot_be_fetched_is_said_and_not_remembered() -> None:
    previewer = Previewer()

    def refuse(scratch: Path) -> dict[str, object]:
        raise UsageError("it is too large", remedy="none")

    def full(scratch: Path) -> dict[str, object]:
        raise OSError(28, "No space left on device")

    assert previewer.find("name", refuse) == {"problem": "it is too large"}
    assert "No space left" in previewer.find("name", full)["problem"]


def test_only_a_few_processes_run_at_once() -> None:
    previewer = Previewer(Bounds(seconds=0, at_once=1))
    entered, leave = threading.Event(), threading.Event()

    def wait(scratch: Path) -> dict[str, object]:
        entered.set()
        leave.wait(LIMIT)
        return {"what": "hex", "file": "/dev/null"}

    first = threading.Thread(target=previewer.find, args=("one", wait))
    first.start()
    try:
        assert entered.wait(LIMIT)
        assert "too many previews" in previewer.find("two", wait)["problem"]
    finally:
        leave.set()
        first.join()
