"""How the pages are played: where, after what, and what their prose tells the reader to do."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.docs.consoles import Typed, commands
from tests.docs.pages import ROOT, fenced
from tests.docs.shell import Shell

Edit = Callable[[Path], None]
SLEEP = '    import time; print("asleep"); time.sleep(30)\n'
PROJECT = ("perago init words", "cd words")
_REGISTERED = ("taskdefs/count_words", "taskdefs/top_words", "workflow/words/1")
ONE_RUN = (*PROJECT, "perago run workflow.json tasks --from data")


def _replaced(file: Path, pattern: str, text: str) -> None:
    edited, count = re.subn(pattern, lambda _: text, file.read_text(), count=1, flags=re.DOTALL)
    assert count, f"{file.name} has no {pattern}"
    file.write_text(edited)


def _sleeping(project: Path) -> None:
    """Do as the tutorial says: the second task takes half a minute."""
    _replaced(project / "tasks.py", r'(?<=publishes nothing\."""\n)', SLEEP)


def _awake(project: Path) -> None:
    tasks = project / "tasks.py"
    tasks.write_text(tasks.read_text().replace(SLEEP, ""))


@dataclass(frozen=True)
class Play:
    """How a page is played: where, after what, and what its prose tells the reader to do."""

    before: tuple[str, ...] = ()
    project: str = "."
    edits: Mapping[str, Edit] = field(default_factory=dict)
    """By the command before which they are made."""
    in_a_clone: frozenset[str] = frozenset()
    """Commands that need a clone of their own: ``make newcomer`` types them."""
    servers: tuple[str, ...] = ()
    """Servers that the reader has: those of the tests are in the environment."""
    programs: tuple[str, ...] = ()
    """What the page needs and a machine may lack."""
    follows: str = ""
    """The page before it, in the same shell."""
    after: tuple[str, ...] = ()
    """Typed at the end, also after a failure."""


INTERRUPTED = (
    f"sed -i.kept '/publishes nothing/a\\{SLEEP[:-1]}' tasks.py",
    "perago run workflow.json tasks --from data > begun &",
    "while kill -0 $! && ! grep -q asleep begun; do sleep 0.1; done; grep asleep begun",
    "kill -9 $!",
    "mv tasks.py.kept tasks.py",
)
"""A run that is killed while its second task sleeps."""


def _damaged(project: Path) -> None:
    """Damage the store: one content is gone, another one is something else."""
    for name, text in (("harbour.txt", None), ("mountain.txt", "no")):
        content = hashlib.sha256((project / "data" / name).read_bytes()).hexdigest()
        (stored,) = (project / ".perago" / "store").rglob(content)
        stored.chmod(0o600)
        if text is None:
            stored.unlink()
        else:
            stored.write_text(text)


def _without_breakpoint(project: Path) -> None:
    _replaced(project / "tasks.py", r"    breakpoint\(\)\n", "")


def _misspelt(project: Path) -> None:
    _replaced(project / "shop.json", r"load\.output\.workspace", "laod.output.workspace")


def _two_writers(project: Path) -> None:
    _replaced(project / "shop.json", r"laod", "load")
    parallel = json.loads((project / "shop_in_parallel.json").read_text()) | {"name": "shop"}
    parallel["tasks"][1]["forkTasks"][0][0] |= {"name": "load", "taskReferenceName": "reload"}
    parallel["tasks"][2]["joinOn"] = ["reload", "report"]
    (project / "two-writers.json").write_text(json.dumps(parallel))


def _same_input(project: Path) -> None:
    shop = json.loads((project / "shop.json").read_text())
    shop["tasks"][1]["inputParameters"]["workspace"] = "${workflow.input.workspace}"
    (project / "same-input.json").write_text(json.dumps(shop))


def _call(project: Path) -> None:
    shop = json.loads((project / "shop.json").read_text())
    call = {"name": "call", "taskReferenceName": "call", "type": "HTTP"}
    (project / "call.json").write_text(json.dumps(shop | {"tasks": [shop["tasks"][0], call]}))


_IN_A_CLONE = frozenset({"make run", "source .venv/bin/activate"})
RUN_ON_LAKEFS = "docs/howto/run-on-lakefs.md"
PLAYS = {
    "README.md": Play(in_a_clone=_IN_A_CLONE, project="words"),
    "docs/tutorial.md": Play(
        project="words",
        edits={
            "perago run workflow.json tasks --from data &": _sleeping,
            "perago runs -n 1": _awake,
        },
        in_a_clone=_IN_A_CLONE,
    ),
    "docs/howto/write-a-task.md": Play(),
    "docs/howto/run-a-program.md": Play(),
    "docs/howto/do-a-step-by-hand.md": Play(),
    "docs/howto/write-a-typescript-task.md": Play(project="texts", servers=("typescript",)),
    "docs/howto/write-a-workflow.md": Play(
        edits={
            "perago run shop.json tasks": _misspelt,
            "perago run two-writers.json tasks": _two_writers,
            "perago run same-input.json tasks": _same_input,
            "perago run call.json tasks": _call,
        }
    ),
    "docs/howto/guard-a-workspace.md": Play(),
    "docs/howto/guard-a-table.md": Play(),
    "docs/howto/debug.md": Play(
        before=PROJECT,
        project="words",
        edits={'echo "The lamps go out at dawn." >> data/harbour.txt': _without_breakpoint},
    ),
    "docs/howto/look-at-history.md": Play(
        before=(
            *ONE_RUN,
            'echo "The lamps go out at dawn." >> data/harbour.txt',
            'PERAGO_KILL_AT="count:0:after publish" perago run workflow.json tasks --from data',
        ),
        project="words",
    ),
    "docs/howto/resume-a-run.md": Play(before=(*ONE_RUN, *INTERRUPTED)),
    "docs/howto/use-a-ledger.md": Play(
        before=(*PROJECT, "export PERAGO_LEDGER=sqlite://$PWD/../ledger.sqlite")
    ),
    "docs/howto/use-spark.md": Play(),
    "docs/howto/use-a-spark-cluster.md": Play(follows="docs/howto/use-spark.md"),
    "docs/howto/verify-data.md": Play(
        before=(*ONE_RUN, "perago repo init words"),
        project="words",
        edits={'perago verify words main; echo "exit code $?"': _damaged},
        servers=("lakefs",),
    ),
    RUN_ON_LAKEFS: Play(before=PROJECT, after=("perago dev down --purge",)),
    "docs/howto/choose-a-fence.md": Play(follows=RUN_ON_LAKEFS),
    "docs/howto/run-the-example-on-servers.md": Play(
        before=(f"ln -s {ROOT / 'examples'} examples",), after=("perago dev down --purge",)
    ),
    "docs/howto/develop-with-real-servers.md": Play(
        follows="docs/howto/run-the-example-on-servers.md"
    ),
    "docs/howto/register.md": Play(
        before=(
            *PROJECT,
            *(f'curl -s -X DELETE "$CONDUCTOR_SERVER_URL/metadata/{each}"' for each in _REGISTERED),
        ),
        servers=("lakefs", "conductor"),
        programs=("curl",),
    ),
    "docs/howto/run-workers.md": Play(
        follows="docs/howto/register.md",
        before=(
            "export PERAGO_WORKSPACE_ROOT=$PWD/../work PERAGO_LOG_ROOT=$PWD/../logs",
            "perago repo init words",
            "perago run tasks:top_words --store lakefs --repo words --from data || true",
        ),
    ),
    "docs/howto/clean-up.md": Play(follows="docs/howto/run-workers.md", before=INTERRUPTED),
    "docs/howto/watch-a-worker.md": Play(follows="docs/howto/clean-up.md", programs=("curl", "jq")),
}
"""In the order in which they are played."""


def chains() -> list[tuple[str, ...]]:
    """List the pages that are played in one shell, one after the other."""
    found: dict[str, list[str]] = {}
    for page, how in PLAYS.items():
        first = next((first for first, pages in found.items() if how.follows in pages), None)
        found.setdefault(first or page, []).append(page)
    return [tuple(pages) for pages in found.values()]


def play(
    pages: Sequence[str], shell: Shell, directory: Path, also: frozenset[str] = frozenset()
) -> None:
    """Type all consoles of pages; of what is only typed in a clone, what ``also`` names."""
    try:
        for page in pages:
            _play(page, shell, directory, also)
    finally:
        with suppress(AssertionError, OSError):  # the shell may be what has failed
            for command in (command for page in pages for command in PLAYS[page].after):
                shell.run(command)


def _play(page: str, shell: Shell, directory: Path, also: frozenset[str]) -> None:
    how = PLAYS[page]
    for command in how.before:
        assert shell.run(command) == 0, command
    for step in steps(page):
        if isinstance(step, str):
            edited(step, directory / how.project)
        elif step.command in also or step.command not in how.in_a_clone:
            if edit := how.edits.get(step.command):
                edit(directory / how.project)
            shell.play(step)


def steps(page: str) -> list[str | Typed]:
    """List the code that a page shows and the commands that are typed, in order."""
    found: list[str | Typed] = []
    consoles: list[str] = []
    for block in fenced(page):
        if block.language == "console" and not block.reason:
            consoles.append(block.text)
        elif block.language in {"python", "json", "toml", "bash", "ts"}:
            found += commands(*consoles)
            consoles = []
            found.append(block.text)
    return [*found, *commands(*consoles)]


def edited(text: str, project: Path) -> None:
    """Do what a page shows.

    That is a whole file, a workflow, or another declaration or function of ``tasks.py``.
    """
    tasks = project / "tasks.py"
    if named := re.match(r"(?:#!.*\n)?(?:#|//) ([\w.]+\.(?:py|toml|sh|ts))\n", text):
        (project / named[1]).write_text(text)
    elif declared := re.match(r'@task\(\n    name="(\w+)"', text):
        _replaced(tasks, rf'@task\(\n    name="{declared[1]}".*?\n\)\n', text)
    elif defined := re.match(r"def (\w+)", text):
        _replaced(tasks, rf"def {defined[1]}\(.*?\n(?=\n\n|\Z)", text)
    elif text.startswith("{"):
        (project / f"{json.loads(text)['name']}.json").write_text(text)
    elif text.startswith(("from ", "import ")):
        tasks.write_text(text)
