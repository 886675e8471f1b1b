"""The page in homes of growing size: what a request of each page takes, and how large it is."""

from __future__ import annotations

import http.client
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from bench.comparison import Comparison, Curve, Fact, Options, Work

ATTEMPTS: Final = (1_000, 10_000, 100_000)
MOST_SECONDS: Final = 0.2
MOST_KB: Final = 100
EVENTS: Final = 10
"""So many events of each attempt are kept: those that every attempt has."""
_MANY: Final = "with recursive numbers (n) as (select 1 union all select n + 1 from numbers"


@contextmanager
def comparison(_: Options) -> Iterator[Comparison]:
    """Serve a home of each size; its runs are one real run, many times."""
    sizes: dict[str, float] = {}
    slowest: dict[str, float] = {}
    works: dict[str, Work] = {}
    curve: dict[str, tuple[str, float]] = {}
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for attempts in ATTEMPTS:
            home = _home(root / str(attempts), attempts)
            page = stack.enter_context(_served(home))
            for name, path in _pages(home).items():
                at = f"{name}, {attempts:,}"
                curve[at] = (name, attempts)
                works[at] = _asking(page, path, at, sizes, slowest)
        yield Comparison(
            name="ui",
            what="a request of each page, in homes of 1,000 to 100,000 attempts",
            contenders=works,
            ratios=[],
            facts=lambda: [
                *(Fact(f"ui: kB of {name}", size, at_most=MOST_KB) for name, size in sizes.items()),
                *(
                    Fact(f"ui: slowest ms of {name}", 1000 * seconds, at_most=1000 * MOST_SECONDS)
                    for name, seconds in slowest.items()
                ),
            ],
            curve=Curve("attempts in the home", curve),
        )


def _asking(
    page: tuple[str, str],
    path: str,
    name: str,
    sizes: dict[str, float],
    slowest: dict[str, float],
) -> Work:
    host, cookie = page

    def ask() -> float:
        with closing(http.client.HTTPConnection(host)) as connection:
            began = time.perf_counter()
            connection.request("GET", path, headers={"Cookie": cookie})
            answer = connection.getresponse()
            text = answer.read()
            seconds = time.perf_counter() - began
        if answer.status != http.client.OK:
            raise RuntimeError(f"{path}: {answer.status}")
        sizes[name] = len(text) / 1000
        slowest[name] = max(seconds, slowest.get(name, 0.0))
        return seconds

    return ask


def _home(directory: Path, attempts: int) -> Path:
    """Run the example of ``perago init`` once, and multiply what it left in the databases."""
    words = [sys.executable, "-m", "perago"]
    directory.mkdir()
    subprocess.run([*words, "init", "words"], cwd=directory, check=True, capture_output=True)
    project = directory / "words"
    run = [*words, "run", "workflow.json", "tasks", "--from", "data"]
    subprocess.run(run, cwd=project, check=True, capture_output=True)
    home = project / ".perago"
    with closing(sqlite3.connect(home / "runs.sqlite")) as database:
        (of_one,) = database.execute("select count(*) from tasks").fetchone()
        copies = attempts // of_one
        _multiply(database, "runs", copies, {"id": "id || '-' || n"})
        _multiply(
            database, "tasks", copies,
            {"task_id": "task_id || '-' || n", "run_id": "run_id || '-' || n",
             "execution_id": "execution_id || '-' || n"},
        )  # fmt: skip
        database.commit()
    with closing(sqlite3.connect(home / "events.sqlite")) as database:
        database.execute(
            "delete from events where id not in (select id from (select id, row_number() over"
            " (partition by execution_id order by name = 'claimed' desc, name = 'decision' desc,"
            " name = 'outcome' desc, id) as place from events) where place <= ?)",
            (EVENTS,),
        )
        ids = ("execution_id", "workflow_instance_id", "task_id")
        _multiply(
            database, "events", copies, {one: f"{one} || '-' || n" for one in ids}, drop=("id",)
        )
        database.commit()
    return home


def _multiply(
    database: sqlite3.Connection,
    table: str,
    copies: int,
    changed: dict[str, str],
    drop: tuple[str, ...] = (),
) -> None:
    """Copy every row so many times, each an hour older than the one before it."""
    columns = [row[1] for row in database.execute(f"pragma table_info({table})")]
    kept = [one for one in columns if one not in drop]
    times = {"at", "created_at", "clock_from", "ended_at", "started_at", "scheduled_at", "start_at"}
    values = [changed.get(one, f"{one} - 3600 * n" if one in times else one) for one in kept]
    database.execute(
        f"{_MANY} where n < {copies - 1}) insert into {table} ({', '.join(kept)})"  # noqa: S608 - our words
        f" select {', '.join(values)} from {table}, numbers order by n desc"
    )


def _pages(home: Path) -> dict[str, str]:
    with closing(sqlite3.connect(home / "runs.sqlite")) as database:
        run, execution, at = database.execute(
            "select runs.id, execution_id, created_at from runs join tasks on run_id = runs.id"
            " order by created_at limit 1"
        ).fetchone()
    return {
        "runs": "/",
        "runs of one workflow": "/?workflow=words",
        "the oldest runs": f"/?before={at + 3601!r}/z",
        "failed runs": "/?status=FAILED",
        "a run": f"/run/{run}",
        "an attempt": f"/attempt/{execution}",
        "history": "/history/embedded/words?branch=main",
        "report": "/report",
    }


@contextmanager
def _served(home: Path) -> Iterator[tuple[str, str]]:
    words = [sys.executable, "-m", "perago", "ui", "--json", "--home", str(home)]
    environment = {name: text for name, text in os.environ.items() if name != "PERAGO_HOME"}
    with subprocess.Popen(
        words, cwd=home.parent, env=environment, stdout=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None  # noqa: S101 - it is a pipe
            said = b"".join(process.stdout.readline() for _ in range(3))
            address = urlsplit(json.loads(said)["address"])
            with closing(http.client.HTTPConnection(address.netloc)) as connection:
                connection.request("GET", f"/?{address.query}")
                answer = connection.getresponse()
                cookie = str(answer.getheader("set-cookie")).partition(";")[0]
            yield address.netloc, cookie
        finally:
            process.send_signal(signal.SIGINT)
            process.wait()
