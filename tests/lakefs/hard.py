"""Tasks and moves for the tests of the hard fence on lakeFS."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from perago import WorkspaceSpec, task
from perago.protocol.values import Commit
from perago.stores.lakefs.action import KEY
from perago.stores.lakefs.client import Ask
from perago.stores.lakefs.errors import Call
from perago.stores.lakefs.installing import install_fence
from perago.testing import Run
from perago.transfer.wire import path_of
from tests.lakefs.bench import BRANCH, Bench
from tests.lakefs.tasks import CONTROLS, GIVEN, OWNER, Done, Text, after

FENCED = WorkspaceSpec(prefix="ws", fence="hard")
MOODS = {"idle": False}


@task(name="hard_step", owner_email=OWNER, workspace=FENCED, controls=CONTROLS)
def step(workspace: Path, params: Text) -> Done:
    """Add a file, remove one, leave one; or leave all, when in an idle mood."""
    if not MOODS["idle"]:
        (workspace / "out.txt").write_text(params.text)
        (workspace / "old.txt").unlink(missing_ok=True)
    return Done(files=2)


def fenced(bench: Bench) -> str:
    """Give a repository whose branch is fenced; returns A."""
    bench.given(GIVEN)
    return install_fence(bench.truth, bench.repository, BRANCH).head


def files(bench: Bench, ref: str = BRANCH) -> dict[str, bytes]:
    """Read a tree, without the action."""
    found = bench.files(ref)
    found.pop(KEY)
    return found


def assert_published(bench: Bench, a: str, run: Run, text: str = "new") -> None:
    """V1, V2, V4, V7: one commit on A, it is the output, its tree is the attempt's."""
    assert run.completed, run.reason
    assert run.outcome
    assert run.outcome.fence == "hard"
    (published,) = bench.history(a)
    assert published.id == run.ref
    assert published.parents == (a,)
    assert files(bench) == after(text)
    assert_tidy(bench)


def assert_tidy(bench: Bench) -> None:
    """V7: no staging or scratch branch and no directory is left."""
    names = [branch.name for branch in bench.truth.branches(bench.repository, hidden=True)]
    assert [name for name in names if name.startswith("perago-")] == []
    assert bench.attempt_dirs() == []


def ask(bench: Bench, method: str, *path: str, **asked: Any) -> Any:
    """Do something to the repository as somebody else would."""
    place = path_of("repositories", bench.repository, *path)
    return bench.truth.client.ask(Ask("arrange", method, place, Call.PUBLISH, **asked))


def intend(bench: Bench, head: str, source: str) -> Commit:
    """Leave the first half of a replacement, as somebody who died has."""
    said = {"perago.intent": "replace", "perago.expected_head": head}
    body = {"message": "died", "metadata": said, "strategy": "source-wins", "allow_empty": True}
    ask(bench, "POST", "refs", source, "merge", BRANCH, body=body)
    return bench.head
