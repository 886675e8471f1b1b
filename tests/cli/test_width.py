"""At 80 columns nothing that matters is cut; names are folded, ids and times are not."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from perago.cli import screen
from perago.cli.view import RunView
from tests.cli.conftest import Perago, written
from tests.patience import LIMIT, until

LONG = "a_step_whose_name_is_longer_than_a_column_of_a_terminal"


def unfolded(shown: str, column: int, width: int) -> str:
    """Put the pieces of one folded cell together again."""
    return "".join(line[column : column + width].strip() for line in shown.splitlines())


def test_runs_and_log_fit_into_80_columns(
    project: Path, perago: Perago, on_terminal: Perago
) -> None:
    assert perago("init", ".").code == 0
    workflow = json.loads((project / "workflow.json").read_text())
    workflow["name"] = "a-workflow-whose-name-is-longer-than-a-column"
    workflow["tasks"][0]["taskReferenceName"] = LONG
    text = json.dumps(workflow).replace("${count.", f"${{{LONG}.")
    (project / "workflow.json").write_text(text)
    run = ("run", "workflow.json", "tasks", "--from", "data", "--json")
    ran = perago(*run, env={"PERAGO_KILL_AT": f"{LONG}:0:after publish"})
    assert ran.code == 0, ran

    runs = written(on_terminal("runs").out)
    assert max(map(len, runs.splitlines())) <= 80
    assert "…" not in runs
    line = runs.splitlines()[1]
    assert line.startswith(ran.json["run"][:8] + "  ")
    assert re.search(r"  COMPLETED  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d  \d+\.\d s", line)
    assert workflow["name"] in unfolded(runs, 10, line.index("COMPLETED") - 12)

    log = written(on_terminal("log").out)
    assert max(map(len, log.splitlines())) <= 80
    assert "…" not in log
    found = perago("log", "--json").json["publications"]
    for publication in found:
        commit = publication["commit"][:12]
        (line,) = [line for line in log.splitlines() if line.startswith(commit)]
        assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", line)
    newest = next(line for line in log.splitlines() if line.startswith(found[0]["commit"][:12]))
    assert newest.rstrip().endswith("+1")
    assert found[0]["metadata"]["perago.task_id"][:8] in newest
    column = log.splitlines()[1].index("step")
    width = log.splitlines()[1].index("task") - 2 - column
    assert f"{LONG}retry1" in unfolded(log, column, width).replace(" ", "")
    assert re.search(rf"  {found[0]['replaced'][0][:12]}  .* replaced +abandoned", log)


def test_a_pipe_has_one_line_for_each_row(capsys: pytest.CaptureFixture[str]) -> None:
    names = ["x" * 300, "名" * 90, "short"]
    screen.table(["name", "count"], [[screen.plain(name), 1] for name in names])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[1:]] == [[name, "1"] for name in names]


def test_a_narrow_terminal_cuts_nothing(project: Path, perago: Perago, on_terminal: Perago) -> None:
    assert perago("init", ".").code == 0
    assert perago("run", "workflow.json", "tasks", "--from", "data").code == 0
    for columns in (20, 40, 60):
        shown = written(on_terminal("log", columns=columns).out)
        assert "…" not in shown
        for publication in perago("log", "--json").json["publications"]:
            assert publication["commit"][:12] in shown


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_run_without_a_process_is_interrupted(
    project: Path, perago: Perago, number: signal.Signals
) -> None:
    assert perago("init", ".").code == 0
    tasks = project / "tasks.py"
    tasks.write_text(
        tasks.read_text().replace(
            "    texts =", "    import time; print('here'); time.sleep(3600)\n    texts =", 1
        )
    )
    with subprocess.Popen(
        [sys.executable, "-u", "-m", "perago", "run", "workflow.json", "tasks", "--from", "data"],
        cwd=project,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        shown = ""
        while "count | here" not in shown:
            shown += process.stdout.readline()
        assert perago("runs", "--json").json[0]["status"] == "RUNNING"
        # As a terminal does it: every process of the group.
        os.killpg(process.pid, number)
        shown += process.stdout.read()
        process.wait(LIMIT)
    until(lambda: perago("runs", "--json").json[0]["status"] == "INTERRUPTED", "an end")
    assert "INTERRUPTED" in perago("runs").out
    if number == signal.SIGINT:
        assert "■ count  interrupted" in shown
        assert "lost" not in shown
        assert "stopped; resume with: perago run --resume" in shown
        assert process.returncode == 130


def test_the_start_of_spark_does_not_widen_the_column_of_seconds() -> None:
    written_to = io.StringIO()
    console = Console(width=80, force_terminal=True, color_system=None, file=written_to)
    with RunView(console, live=True) as view:
        for step, seconds in (("land", 22.4), ("clean", 0.0)):
            about = {"task_id": step, "reference_task_name": step, "retry_count": 0}
            view({"event": "task_scheduled", **about})
            heard: list[dict[str, object]] = [
                {"event": "decision", "kind": "merge"},
                {"event": "published", "ref": "a" * 64},
            ]
            if seconds:
                heard.append({"event": "spark started", "seconds": seconds})
            for message in heard:
                view({"event": "message", "message": message, **about})
            ended = {"status": "COMPLETED", "reason": "", "seconds": 68.7}
            view({"event": "task_finished", **ended, **about})
    shown = written_to.getvalue()
    assert re.search(r"✓  land   68\.7 s  published a{12} +\(starting Spark: 22\.4 s\)", shown)
    assert re.search(r"✓  clean  68\.7 s  published a{12}", shown)
