"""Every mistake a user can make gets one sentence with a remedy, and no traceback."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Perago

HEAD = """
from pathlib import Path
from pydantic import BaseModel
from perago import *

class P(BaseModel):
    n: int = 1

class R(BaseModel):
    n: int = 1
"""
GOOD = """
@task(name="t", owner_email="a@example.com", workspace=WorkspaceSpec())
def t(workspace: Path, params: P) -> R:
    return R()
"""
DECORATED = '@task(name="t", owner_email="a@example.com")\n'
ON_WORKSPACE = '@task(name="t", owner_email="a@example.com", workspace=WorkspaceSpec())\n'


@dataclass(frozen=True)
class Mistake:
    """What a user wrote, the command, and words the one sentence must have."""

    name: str
    command: tuple[str, ...]
    words: tuple[str, ...]
    code: int = 2
    files: dict[str, str] = field(default_factory=dict)


def module(name: str, text: str, *words: str) -> Mistake:
    return Mistake(name, ("check", "tasks"), words, files={"tasks.py": HEAD + text})


def workflow(name: str, change: dict[str, Any] | str, *words: str) -> Mistake:
    task = {
        "name": "t",
        "taskReferenceName": "one",
        "type": "SIMPLE",
        "inputParameters": {"workspace": "${workflow.input.workspace}", "params": {}},
    }
    definition: dict[str, Any] = {"name": "flow", "version": 1, "tasks": [task]}
    text = change if isinstance(change, str) else json.dumps(definition | change)
    files = {"tasks.py": HEAD + GOOD, "flow.json": text}
    return Mistake(name, ("run", "flow.json", "tasks"), words, files=files)


def a_task(**change: object) -> dict[str, object]:
    return {
        "name": "t",
        "taskReferenceName": "one",
        "type": "SIMPLE",
        "inputParameters": {"workspace": "${workflow.input.workspace}", "params": {}},
    } | change


MODULES = [
    module("no task", "x = 1", "'tasks' declares no task", "@task"),
    module("syntax", "def broken(:\n", "tasks.py line", "SyntaxError"),
    module("import of a missing package", "import no_such_thing\n", "no_such_thing"),
    module("exception at import", "1 / 0\n", "tasks.py line", "ZeroDivisionError"),
    module("exit at import", "raise SystemExit(3)\n", "SystemExit"),
    module(
        "no name", '@task(owner_email="a@b.c")\ndef f(params: P) -> R: ...\n', "name", "TypeError"
    ),
    module(
        "bare",
        "@task\ndef f(params: P) -> R: ...\n",
        "@task above 'f' has no arguments",
        '@task(name="...", owner_email="you@example.com")',
    ),
    module("a name alone", "@task('f')\ndef f(params: P) -> R: ...\n", "@task(name='f', "),
    module(
        "blank name", '@task(name=" ", owner_email="a@b.c")\ndef f(params: P) -> R: ...\n', "name="
    ),
    module(
        "no address",
        '@task(name="t", owner_email="me")\ndef f(params: P) -> R: ...\n',
        "owner_email",
    ),
    module("async", DECORATED + "async def f(params: P) -> R: ...\n", "async", "plain def"),
    module("variadic", DECORATED + "def f(params: P, *more: int) -> R: ...\n", "'more'"),
    module("default", DECORATED + "def f(params: P = P()) -> R: ...\n", "'params' has a default"),
    module("no params", DECORATED + "def f() -> R: ...\n", "no params", "add 'params: P'"),
    module("no annotation", DECORATED + "def f(params) -> R: ...\n", "'params'", "missing"),
    module("strange parameter", DECORATED + "def f(params: P, n: int) -> R: ...\n", "'n'", "int"),
    module("no result", DECORATED + "def f(params: P): ...\n", "return annotation"),
    module("unknown type", DECORATED + "def f(params: 'Nope') -> R: ...\n", "Nope"),
    module(
        "workspace not declared",
        DECORATED + "def f(workspace: Path, params: P) -> R: ...\n",
        "does not declare it",
    ),
    module(
        "workspace not taken", ON_WORKSPACE + "def f(params: P) -> R: ...\n", "does not take it"
    ),
    module("a class", DECORATED + "class C: ...\n", "decorates a function"),
    module("bad prefix", "WorkspaceSpec(prefix='a/../b')\n", "prefix", "'..'"),
    module("actions prefix", "WorkspaceSpec(prefix='_lakefs_actions')\n", "belongs to the server"),
    module("unknown option", "WorkspaceSpec(prefixx='a')\n", "'prefixx'", "prefix"),
    module("positional", "WorkspaceSpec('a')\n", "keyword arguments only"),
    module("bad guard path", "require_file('/etc/passwd')\n", "absolute"),
    module("bad glob", "require_glob('a**b')\n", "'**' must stand alone"),
    module("bad counts", "require_glob('*', min_count=3, max_count=1)\n", "min_count"),
    module("no guard", "WorkspaceSpec(pre=['a'])\n", "is not a guard"),
    module("too many retries", "RetryPolicy(count=11)\n", "count", "10"),
    module("lonely rate", "ExecutionLimits(rate_limit_per_frequency=1)\n", "go together"),
    module(
        "small budget",
        "PublishBudget(observed_merge_p99_seconds=9, safety_margin_seconds=9,"
        " lakefs_merge_timeout_seconds=1, conductor_completion_timeout_seconds=1,"
        " worker_shutdown_grace_seconds=1, heartbeat_interval_seconds=1)\n",
        "lakefs_merge_timeout_seconds",
    ),
    module("one name twice", GOOD + GOOD.replace("def t", "def u"), "'t'", "tasks:u"),
    Mistake("no such module", ("check", "nope"), ("'nope' was not found",)),
    Mistake("no such file", ("check", "nope.py"), ("'nope.py' does not exist",)),
    Mistake("no module name", ("check", "a-b"), ("not a module name",)),
    Mistake(
        "no such task", ("check", "tasks:u"), ("no task 'u'", "t"), files={"tasks.py": HEAD + GOOD}
    ),
]

WORKFLOWS = [
    workflow("no JSON", "{", "flow.json line 1"),
    workflow("a list", "[]", "not a workflow"),
    workflow("no tasks", {"tasks": []}, "tasks"),
    workflow("no name", {"name": ""}, "name"),
    workflow("unknown task", {"tasks": [a_task(name="nope")]}, "'nope'"),
    workflow("unknown kind", {"tasks": [a_task(type="HTTP")]}, "HTTP"),
    workflow(
        "sub workflow",
        {"tasks": [a_task(type="SUB_WORKFLOW", subWorkflowParam={"name": "gone"})]},
        "calls workflow 'gone', which is not here",
    ),
    workflow("twins", {"tasks": [a_task(), a_task()]}, "(one)", "its own"),
    workflow(
        "unknown reference",
        {"tasks": [a_task(inputParameters={"params": "${nope.output.x}"})]},
        "nope",
    ),
    workflow(
        "strange expression",
        {"tasks": [a_task(inputParameters={"params": "${workflow.input.a[*]}"})]},
        "workflow.input.a[*]",
    ),
    workflow("failure workflow", {"failureWorkflow": "other"}, "failureWorkflow"),
    workflow(
        "fork without join",
        {
            "tasks": [
                {
                    "name": "fork",
                    "taskReferenceName": "fork",
                    "type": "FORK_JOIN",
                    "forkTasks": [[a_task()], [a_task(taskReferenceName="two")]],
                }
            ]
        },
        "JOIN",
    ),
    workflow(
        "W9 parallel writers",
        {
            "tasks": [
                {
                    "name": "fork",
                    "taskReferenceName": "fork",
                    "type": "FORK_JOIN",
                    "forkTasks": [[a_task()], [a_task(taskReferenceName="two")]],
                },
                {
                    "name": "join",
                    "taskReferenceName": "join",
                    "type": "JOIN",
                    "joinOn": ["one", "two"],
                },
            ]
        },
        "'one' and 'two'",
        "'main'",
    ),
]

GIVEN = {"tasks.py": HEAD + GOOD}
COMMANDS = [
    Mistake("nothing to run", ("run",), ("nothing to run",)),
    Mistake("no such workflow", ("run", "x.json", "tasks"), ("x.json does not exist",)),
    Mistake(
        "workflow without module", ("run", "flow.json"), ("MODULE",), files={"flow.json": "{}"}
    ),
    Mistake("no pair", ("run", "tasks", "-i", "x"), ("key=value",), files=GIVEN),
    Mistake("params no JSON", ("run", "tasks", "--params", "{"), ("--params",), files=GIVEN),
    Mistake("params a list", ("run", "tasks", "--params", "[]"), ("JSON object",), files=GIVEN),
    Mistake("input file", ("run", "tasks", "--input-file", "no"), ("no cannot be",), files=GIVEN),
    Mistake("from nowhere", ("run", "tasks", "--from", "no"), ("not a directory",), files=GIVEN),
    Mistake("mode", ("run", "tasks", "--execution-mode", "x"), ("process or thread",), files=GIVEN),
    Mistake("bad repository", ("run", "tasks", "--repo", "A!"), ("A!",), files=GIVEN),
    Mistake("resume nothing", ("run", "--resume", "x"), ("no Perago home",)),
    Mistake("log without home", ("log",), ("no Perago home",)),
    Mistake("empty home", ("log",), ("is empty", "'perago run'"), files={".perago/locks/x": ""}),
    Mistake("no home", ("log",), ("did not make", "set PERAGO_HOME"), 3, {".perago/x": ""}),
    Mistake("home is a file", ("runs",), ("no Perago home",), files={".perago": ""}),
    Mistake("bad duration", ("gc", "--older-than", "soon"), ("30s",), files={".perago/x": ""}),
    Mistake("init over files", ("init", "."), ("is not empty",), files={"x": ""}),
    Mistake("checkout over files", ("checkout", "."), ("is not empty",), files={"x": ""}),
    Mistake("diff prefix", ("diff", "a", "b", "--prefix", "../x"), ("'..'",)),
    Mistake("extract to nowhere", ("extract", "tasks", "-o", "no/x"), ("no/x",), files=GIVEN),
]

SETTINGS = [
    ("PERAGO_LOG_FILE_MAX_SIZE", "big", "100MB"),
    ("PERAGO_WORKSPACE_GC_TTL", "1 week", "30s"),
    ("PERAGO_EXECUTION_MODE", "fiber", "process or thread"),
    ("PERAGO_FAILURE_REASON_MAX_LENGTH", "0", "whole number"),
    ("LAKECTL_SERVER_ENDPOINT_URL", "http://localhost:8000", "LAKECTL_CREDENTIALS_ACCESS_KEY_ID"),
    ("CONDUCTOR_AUTH_KEY", "k", "CONDUCTOR_AUTH_SECRET"),
]


@pytest.mark.parametrize("mistake", MODULES + WORKFLOWS + COMMANDS, ids=lambda case: case.name)
def test_one_sentence_and_no_traceback(inside: Perago, project: Path, mistake: Mistake) -> None:
    for name, text in mistake.files.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    answer = inside(*mistake.command)
    assert answer.code == mistake.code, answer
    assert answer.out == ""
    assert answer.err.startswith("error: ")
    assert answer.err.count("\n") == 1, answer.err
    assert "Traceback" not in answer.err
    for word in mistake.words:
        assert word in answer.err


@pytest.mark.parametrize(("name", "value", "word"), SETTINGS)
def test_a_wrong_setting_is_named(
    inside: Perago, project: Path, name: str, value: str, word: str
) -> None:
    (project / "tasks.py").write_text(HEAD + GOOD)
    given = {name: value}
    if name == "CONDUCTOR_AUTH_KEY":
        given["CONDUCTOR_SERVER_URL"] = "http://localhost:8080/api"
    answer = inside("check", "tasks", env=given)
    assert answer.code == 3
    assert answer.err.startswith("error: ")
    assert answer.err.count("\n") == 1
    assert word in answer.err


def test_there_are_enough_of_them() -> None:
    assert len(MODULES + WORKFLOWS + COMMANDS) + len(SETTINGS) >= 30


def test_with_json_the_sentence_is_json_too(inside: Perago) -> None:
    answer = inside("log", "--json")
    assert json.loads(answer.err)["error"] == "UsageError"


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("run", "--nope"), "--nope"),
        (("inspect",), "ID"),
        (("log", "-n", "x"), "--limit"),
        (("nope",), "nope"),
        (("repo", "nope"), "nope"),
    ],
)
def test_with_json_a_mistake_in_the_arguments_is_json_too(
    inside: Perago, words: tuple[str, ...], named: str
) -> None:
    answer = inside(*words, "--json")
    assert answer.code == 2
    assert answer.out == ""
    said = json.loads(answer.err)
    assert said["error"] == "UsageError"
    assert named in said["message"]
    assert said["remedy"]
