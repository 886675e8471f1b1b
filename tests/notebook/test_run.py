"""``perago.run``: a workflow from Python, its result, and mistakes in one sentence."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from pydantic import BaseModel

import perago
from perago import (
    PeragoError,
    RetryPolicy,
    TaskControls,
    TaskDefinitionError,
    WorkspaceSpec,
    task,
)
from perago.errors import UsageError
from perago.notebook import RunResult
from tests.patience import LIMIT

ROOT = Path(__file__).parents[2]
TEMPLATE = ROOT / "src" / "perago" / "template"


class Note(BaseModel):
    """What to write."""

    text: str = "hello"


@task(
    name="[red]write",
    owner_email="a@example.com",
    workspace=WorkspaceSpec(),
    controls=TaskControls(retry=RetryPolicy(count=0)),
)
def write(workspace: Path, params: Note) -> Note:
    """Write one file; a text of another kind is a mistake."""
    if params.text == "oops":
        raise ValueError("oops <b>")
    (workspace / "note.txt").write_text(params.text)
    return params


def session_only() -> object:
    """Make the task one that no module has, as in a cell of a notebook."""

    @task(name="cell", owner_email="a@example.com", workspace=WorkspaceSpec())
    def cell(workspace: Path, params: Note) -> Note:
        (workspace / "cell.txt").write_text(params.text)
        return params

    return cell


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a directory with the project that ``perago init`` writes."""
    for name in ("tasks.py", "workflow.json"):
        (tmp_path / name).write_text((TEMPLATE / name).read_text())
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.txt").write_text("rain rain thunder")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "tasks", raising=False)
    return tmp_path


def words(**given: object) -> RunResult:
    return perago.run("workflow.json", "tasks", files="data", show=False, **given)  # type: ignore[arg-type]


def test_a_workflow_file_runs_and_its_result_can_be_looked_at() -> None:
    result = words(top=1)
    assert result.completed, result.reason
    assert result.output["words"] == ["rain"]
    assert list(result.files) == ["a.txt", "counts.csv"]
    assert result.files["counts.csv"] == b"word,count\r\nrain,2\r\nthunder,1\r\n"
    assert result.files.sizes["a.txt"] == 17
    assert result.table("counts.csv").to_pylist()[0] == {"word": "rain", "count": 2}
    assert [each.step or each.message for each in result.log] == [
        "count",
        "files from data",
        "Repository created",
    ]
    assert result.log[0].added == ("counts.csv",)
    count, top = result.steps
    assert (count.name, count.task, count.status) == ("count", "count_words", "COMPLETED")
    assert count.published == result.log[0].commit
    assert top.published == ""


def test_it_runs_inside_a_running_event_loop() -> None:
    async def cell() -> RunResult:
        return words()

    assert asyncio.run(cell()).completed


def test_the_log_ends_with_what_this_run_published() -> None:
    first = words()
    Path("data/b.txt").write_text("hail")
    assert words().completed
    assert first.log[0].step == "count"
    assert len(first.log) == 3
    assert list(first.files) == ["a.txt", "counts.csv"]


def test_a_function_of_a_module_runs_in_an_executor_process() -> None:
    import tasks  # type: ignore[import-not-found]  # noqa: PLC0415 - written by the fixture

    assert words().completed
    result = perago.run(tasks.top_words, top=1, show=False)
    assert result.output["result"] == {"words": ["rain"]}
    assert perago.run("workflow.json", tasks, show=False).completed
    both = [tasks.count_words, tasks.top_words]
    assert perago.run(json.loads(Path("workflow.json").read_text()), both, show=False).completed


def test_a_task_of_this_session_runs_in_this_process(capsys: pytest.CaptureFixture[str]) -> None:
    result = perago.run(session_only(), text="mine", repo="own")
    assert result.completed, result.reason
    assert result.files["cell.txt"] == b"mine"
    said = capsys.readouterr()
    assert "'cell': defined in this session" in said.err
    assert "✓ cell  published" in said.out


def test_a_failed_run_is_a_result() -> None:
    failed = perago.run(write, text="oops", repo="own", show=False)
    assert not failed.completed
    assert "ValueError: oops <b>" in failed.reason
    assert dict(failed.files) == {}
    assert "FAILED" in repr(failed)


def test_nothing_that_was_named_acts_as_markup() -> None:
    html = perago.run(write, text="oops", repo="own", show=False)._repr_html_()
    assert "oops &lt;b&gt;" in html
    good = perago.run(write, text="<script>\n", repo="own", show=False)
    assert "<script>" not in good._repr_html_()
    assert "[red]write" in repr(good)
    assert good.steps[0].name == "red_write"
    assert repr(good.files).splitlines()[0].split() == ["file", "bytes"]
    assert "<td>note.txt</td>" in good.files._repr_html_()
    assert good.log._repr_html_().startswith("<table>")


def test_mistakes_are_one_sentence() -> None:
    module = ModuleType("made_here")
    calls: tuple[tuple[Callable[[], object], str], ...] = (
        (lambda: perago.run("none.json", "tasks"), "none.json does not exist"),
        (lambda: perago.run("workflow.json"), "no tasks were given"),
        (lambda: perago.run({"name": "w", "tasks": []}, "tasks"), "tasks"),
        (lambda: perago.run({"name": "w"}), "no tasks were given"),
        (lambda: perago.run(7, "tasks"), "not a workflow"),
        (lambda: perago.run("workflow.json", 7), "int 7 is not a task"),  # type: ignore[arg-type]
        (lambda: perago.run("workflow.json", [print]), "is not a task"),
        (lambda: perago.run("workflow.json", module), "no tasks were given"),
        (lambda: perago.run("workflow.json", "tasks", top={1}), "input 'top' holds a set"),
        (lambda: perago.run("workflow.json", "tasks", input=[1]), "input is of type list"),  # type: ignore[arg-type]
        (lambda: perago.run("workflow.json", "tasks", store="s3"), "use embedded or lakefs"),
        (lambda: perago.run("workflow.json", "tasks", files="nowhere"), "nowhere"),
    )
    for call, said in calls:
        with pytest.raises(PeragoError) as caught:
            call()
        assert said in str(caught.value)
        assert "\n" not in str(caught.value)


def test_two_tasks_of_one_name_are_refused() -> None:
    @task(name="top_words", owner_email="a@example.com", workspace=WorkspaceSpec())
    def top_words(workspace: Path, params: Note) -> Note:
        return params

    with pytest.raises(TaskDefinitionError, match="one of this session and one of 'tasks'"):
        perago.run("workflow.json", ["tasks", top_words])


def test_a_table_that_is_not_there_is_told_with_one_that_is() -> None:
    result = words()
    with pytest.raises(UsageError, match=r"did you mean 'counts.csv'\?"):
        result.table("count.csv")
    with pytest.raises(UsageError, match="is not a table"):
        result.table("a.txt")
    with pytest.raises(KeyError):
        result.files["count.csv"]


def test_a_script_needs_no_guard_around_its_call(project: Path) -> None:
    (project / "script.py").write_text(
        "import perago\n"
        "result = perago.run('workflow.json', 'tasks', files='data', show=False)\n"
        "print('ran', result.completed, __file__.endswith('script.py'))\n"
    )
    done = subprocess.run(
        [sys.executable, "script.py"],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.stdout.splitlines() == ["ran True True"], done.stderr


def test_partitioned_tables_are_read_with_their_partitions(tmp_path: Path) -> None:
    from perago.data.reading import read  # noqa: PLC0415 - needs pyarrow

    for day in (1, 2):
        (tmp_path / "t" / f"day={day}").mkdir(parents=True)
        (tmp_path / "t" / f"day={day}" / "part.csv").write_text(f"a\n{day * 10}\n")
    (tmp_path / "t" / "_SUCCESS").write_text("")
    (tmp_path / "j.json").write_text('{"a": 1}\n{"a": 2}\n')
    rows = read(tmp_path, "t").to_pylist()
    assert rows == [{"a": 10, "day": 1}, {"a": 20, "day": 2}]
    assert read(tmp_path, "j.json").num_rows == 2
    (tmp_path / "bad.parquet").write_text("no")
    with pytest.raises(UsageError, match="cannot be read"):
        read(tmp_path, "bad.parquet")
