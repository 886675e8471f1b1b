"""Cases that every kind of node passes, with the same statuses, reasons, files and metrics."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from perago.dev.cache import Cache
from perago.dev.progress import NoProgress
from perago.dev.tools import Tools
from perago.protocol.values import Status
from perago.testing import Lab
from tests.nodes.function import golden
from tests.typescript.project import Package

HERE = Path(__file__).parent
MANIFEST = """
[[task]]
name = "golden"
owner_email = "tests@example.com"
command = ["{{here}}/{program}"]
serve = {serve}

[task.params]
type = "object"
properties = {{ do = {{ type = "string" }}, text = {{ type = "string" }} }}
required = ["do"]

[task.result]
type = "object"
properties = {{ size = {{ type = "integer" }} }}

[task.workspace]
prefix = "/in"
pre = [{{ require_file = "in.txt" }}]
post = [{{ forbid_glob = "*.tmp" }}]
"""
GIVEN = {"in/in.txt": "in", "other.txt": "other"}


@dataclass(frozen=True)
class Case:
    """What is asked of a node, and what comes of it; the files are those of the prefix."""

    params: dict[str, str]
    status: Status = Status.COMPLETED
    reason: str | tuple[str, ...] = ""
    files: dict[str, bytes] = field(default_factory=lambda: {"in.txt": b"in"})
    size: int = 0
    metrics: int = 0


WRONG_RESULT = ("result model: ResultError: ", "body: TaskFailed: the result does not fit: size")
"""A node may find it by itself, which tells more than the schema can."""
FAILED, TERMINAL = Status.FAILED, Status.FAILED_WITH_TERMINAL_ERROR
CASES = {
    "writes": Case(
        {"do": "write", "text": "abc"}, files={"in.txt": b"in", "out.txt": b"abc"}, size=3
    ),
    "removes": Case({"do": "remove"}, files={}),
    "does nothing": Case({"do": "nothing"}),
    "measures": Case({"do": "measure"}, metrics=1),
    "fails": Case({"do": "fail"}, FAILED, "body: TaskFailed: "),
    "can never succeed": Case({"do": "never"}, TERMINAL, "body: TaskTerminalError: "),
    "gives a wrong result": Case({"do": "lie"}, FAILED, WRONG_RESULT),
    "breaks a guard": Case({"do": "temporary"}, FAILED, "post guardrail: "),
    "is given wrong params": Case({}, TERMINAL, "input: TaskParamsError: "),
}
Node = Callable[..., object] | str


def shell(directory: Path) -> Node:
    shutil.copy(HERE / "golden.sh", directory)
    return declared(directory, "golden.sh", serve=False)


def go(directory: Path) -> Node:
    compiler = Tools(Cache.of(os.environ), NoProgress(), os.environ).go()
    home = {"GOCACHE": str(directory / "cache"), "GOPATH": str(directory / "path"), "GOFLAGS": ""}
    words = [str(compiler), "build", "-o", str(directory / "golden"), "."]
    subprocess.run(words, cwd=HERE / "go", env=os.environ | home, check=True)
    return declared(directory, "golden", serve=True)


def declared(directory: Path, program: str, *, serve: bool) -> str:
    manifest = directory / "tasks.toml"
    manifest.write_text(MANIFEST.format(program=program, serve="true" if serve else "false"))
    return f"{manifest}:golden"


def typescript(directory: Path) -> Node:
    project = Package.at(directory / "package").project(directory / "project")
    return f"{project.declare_with_node(HERE / 'golden.ts', 'golden')}:golden"


KINDS: dict[str, Callable[[Path], Node]] = {
    "Python": lambda _: golden,
    "shell": shell,
    "Go, serving": go,
    "TypeScript": typescript,
}


@pytest.fixture(scope="module", params=[*KINDS.values()], ids=[*KINDS])
def node(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Node:
    made: Node = request.param(tmp_path_factory.mktemp("node"))
    return made


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    made = Lab(tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_every_kind_of_node_passes(lab: Lab, node: Node, case: Case) -> None:
    run = lab.run(node, case.params, files=GIVEN)
    assert run.status == case.status, run.reason
    assert run.reason.startswith(case.reason)
    if case.params.get("do") in {"fail", "never"}:
        assert "no song" in run.reason
    found = {key.removeprefix("in/"): text for key, text in run.files.items() if key[:3] == "in/"}
    assert found == case.files
    assert run.files["other.txt"] == b"other"
    if run.completed:
        assert run.result == {"size": case.size}
    assert run.events.count("metric") == case.metrics
    assert len(run.history) == 1 + (run.completed and case.files != {"in.txt": b"in"})


def test_the_next_attempt_of_each_is_whole(lab: Lab, node: Node) -> None:
    first = lab.run(node, {"do": "fail"}, files=GIVEN)
    assert first.status == FAILED
    second = lab.run(node, {"do": "write", "text": "x"})
    assert second.completed, second.reason
    assert second.files["in/out.txt"] == b"x"
