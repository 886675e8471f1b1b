"""What the pages show works: modules pass ``perago check``, tests pass, workflows can run."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import pytest

from perago.workflow.parsing import parse_workflow
from perago.workflow.subworkflow import with_children
from perago.workflow.tasks import TaskKind
from tests.docs.conftest import Run
from tests.docs.pages import ROOT, blocks, every_page, modules, text_of, write

BLOCKS = "docs/howto/use-a-notebook.md"
PYTEST = ("pytest", "-q", "-W", "error", "-p", "no:cacheprovider")


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "README.zh-CN.md",
        "docs/index.md",
        "docs/howto/write-a-task.md",
        "docs/howto/guard-a-workspace.md",
        "docs/howto/write-a-workflow.md",
        "docs/howto/choose-a-fence.md",
        "docs/howto/test-a-task.md",
    ],
)
def test_task_modules_pass_the_check(page: str, tmp_path: Path, run: Run) -> None:
    files = _readme(page) if page.startswith("README") else modules(page)
    write(files, tmp_path)
    with_tasks = [name.removesuffix(".py") for name, text in files.items() if "@task(" in text]
    assert with_tasks
    run("perago", "check", *with_tasks)


@pytest.mark.parametrize("page", ["README.md", "README.zh-CN.md", "docs/howto/test-a-task.md"])
def test_tests_of_a_page_pass(page: str, tmp_path: Path, run: Run) -> None:
    files = _readme(page) if page.startswith("README") else modules(page)
    write(files, tmp_path)
    assert re.search(r"^[1-9]\d* passed", run(*PYTEST), re.MULTILINE)


def test_both_readmes_show_the_same_code() -> None:
    english, chinese = blocks("README.md", "python"), blocks("README.zh-CN.md", "python")
    said = re.compile(r'""".*"""|#.*')
    assert [said.sub("", text) for text in english] == [said.sub("", text) for text in chinese]
    assert blocks("README.md", "console") == blocks("README.zh-CN.md", "console")


def test_the_cells_of_the_notebook_page_run(tmp_path: Path, run: Run) -> None:
    run("perago", "init", "--json")
    for number, text in enumerate(blocks(BLOCKS, "python")):
        known = "" if "import perago" in text else blocks(BLOCKS, "python")[0]
        (tmp_path / f"cell{number}.py").write_text(known + text)
        run(f"cell{number}")


def test_a_project_inside_the_clone_has_its_own_pytest_settings(tmp_path: Path, run: Run) -> None:
    (tmp_path / "pyproject.toml").write_text(text_of("pyproject.toml"))
    run("perago", "init", "words")
    run_there = f"import os, runpy; os.chdir({str(tmp_path / 'words')!r})"
    (tmp_path / "inside.py").write_text(
        f"{run_there}; runpy.run_module('pytest', run_name='__main__')\n"
    )
    shown = run("inside")
    assert "2 passed" in shown
    assert "configfile: pytest.ini" in shown


def test_the_tutorial_only_adds_to_the_template() -> None:
    template = (ROOT / "src/perago/template/tasks.py").read_text()
    _, body, _ = blocks("docs/tutorial.md", "python")
    kept = [line for line in body.splitlines() if "longest" not in line]
    assert "\n".join(kept) in template


def test_workflows_can_run() -> None:
    shown = blocks("docs/howto/write-a-workflow.md", "json")
    kinds = set()
    named = {json.loads(text)["name"]: json.loads(text) for text in shown}
    for text in shown:
        definition = json.loads(text)
        filled, problems = with_children(definition, lambda name, _: named.get(name), "the page")
        assert problems == []
        workflow = parse_workflow(filled, {"load", "look", "report", "take_in"})
        kinds.update(re.findall(r'"type": "(\w+)"', text))
        assert workflow.name == definition["name"]
    # Steps of people have a page of their own; what a dynamic fork runs only its input says.
    assert kinds == set(TaskKind) - {TaskKind.HUMAN, TaskKind.FORK_JOIN_DYNAMIC}


def test_the_store_can_be_used_from_python(tmp_path: Path) -> None:
    write(modules("docs/reference/store.md") | modules("docs/howto/look-at-history.md"), tmp_path)
    seed = runpy.run_path(str(tmp_path / "seed.py"))["seed"]
    sizes = runpy.run_path(str(tmp_path / "look.py"))["sizes"]
    ref = seed(tmp_path / "home")
    assert sizes(tmp_path / "home", "orders", ref) == {"orders/raw.csv": 6}


@pytest.mark.parametrize("page", [page for page in every_page() if "/" not in page])
def test_links_of_pages_that_sphinx_does_not_see_resolve(page: str) -> None:
    targets = re.findall(r"\]\((?!\w+://)([^)#]+)", text_of(page))
    assert [target for target in targets if not (ROOT / target).exists()] == []


def _readme(page: str) -> dict[str, str]:
    task, test = blocks(page, "python")
    return {"tasks.py": task, "test_tasks.py": test}
