"""Tasks in a TOML file: what can be declared, and how a mistake is told (Q1, Q2)."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from perago import RetryPolicy, TaskControls, TaskDefinitionError, WorkspaceSpec
from perago import data as tables
from perago.brokers.conductor.taskdef import taskdef
from perago.errors import UsageError
from perago.tasks.bodies import HumanBody, ProgramBody
from perago.tasks.loading import for_workers, load_tasks
from perago.tasks.manifest import GUARDS
from perago.tasks.manifest_schema import manifest_schema
from perago.tasks.spec import forbid_glob, require_dir, require_file, require_glob

WHOLE = """
[[task]]
name = "transcode"
owner_email = "audio@example.com"
description = "Make FLAC of WAV."
command = ["node", "{here}/dist/transcode.js", "--fast"]
params = "schemas/params.json"
result = { type = "object", properties = { songs = { type = "integer" } } }
env = ["AUDIO_PROFILE"]
serve = true

[task.workspace]
prefix = "/audio"
fence = "hard"
include = ["**/*.wav"]
pre = [{ require_file = "song.wav" }, { require_dir = "raw" }]
post = [
  { require_glob = { pattern = "out/*.flac", min_count = 1 } },
  { forbid_glob = "*.tmp" },
  { require_rows = { table = "stats", min = 1 } },
  { require_unique = ["stats", "song", "day"] },
  { require_not_null = { table = "stats", columns = ["song"], max_share = 0.1 } },
]

[task.controls.retry]
count = 1
delay_seconds = 5

[task.metrics]
attempts = false

[[task]]
name = "sort"
owner_email = "audio@example.com"
command = ["sort"]
"""


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    (tmp_path / "schemas").mkdir()
    schema = {"type": "object", "properties": {"rate": {"type": "number", "default": 1}}}
    (tmp_path / "schemas" / "params.json").write_text(json.dumps(schema))
    file = tmp_path / "tasks.toml"
    file.write_text(WHOLE)
    return file


def test_q1_everything_can_be_declared(manifest: Path) -> None:
    found = load_tasks([str(manifest)])
    assert [*found] == ["transcode", "sort"]
    task = found["transcode"]
    assert isinstance(task.body, ProgramBody)
    here = str(manifest.parent)
    assert task.body.program.command == ("node", f"{here}/dist/transcode.js", "--fast")
    assert (task.body.program.env, task.body.program.serve) == (("AUDIO_PROFILE",), True)
    assert task.workspace == WorkspaceSpec(
        prefix="/audio",
        fence="hard",
        include=["**/*.wav"],
        pre=[require_file("song.wav"), require_dir("raw")],
        post=[
            require_glob("out/*.flac", min_count=1),
            forbid_glob("*.tmp"),
            tables.require_rows("stats", 1),
            tables.require_unique("stats", "song", "day"),
            tables.require_not_null("stats", "song", max_share=0.1),
        ],
    )
    assert task.controls == TaskControls(retry=RetryPolicy(count=1, delay_seconds=5))
    assert task.metrics.attempts is False
    assert task.description == "Make FLAC of WAV."


def test_q1_one_of_its_tasks_can_be_named(manifest: Path) -> None:
    assert [*load_tasks([f"{manifest}:sort"])] == ["sort"]
    with pytest.raises(UsageError, match="choose from sort, transcode"):
        load_tasks([f"{manifest}:srt"])


def test_q1_the_taskdef_is_that_of_any_task(manifest: Path) -> None:
    made = taskdef(load_tasks([str(manifest)])["transcode"])
    assert (made["name"], made["retryCount"], made["inputKeys"]) == (
        "transcode",
        1,
        ["workspace", "params"],
    )
    params = made["inputSchema"]["data"]["properties"]["params"]
    assert params["properties"]["rate"] == {"type": "number", "default": 1}


def test_q1_every_guard_but_the_one_of_spark_can_be_named() -> None:
    assert set(GUARDS) == {
        *("require_file", "require_dir", "require_glob", "forbid_glob"),
        *(name for name in tables.__all__ if name != "expect"),
    }


HEAD = '[[task]]\nname = "a"\nowner_email = "a@b"\ncommand = ["true"]\n'
HUMAN = HEAD.replace('command = ["true"]', "human = true")
MISTAKES = {
    "no TOML": ("name =", 1, "invalid value"),
    "nothing": ("", 1, "declares no task"),
    "another table": ("[job]\n", 1, "job: it is unknown"),
    "an unknown key": (
        HEAD + 'comand = ["x"]\n',
        5,
        "did you mean 'command'?",
    ),
    "no command": ('[[task]]\nname = "a"\nowner_email = "a@b"\n', 1, "command is missing"),
    "no name": ('\n\n[[task]]\nowner_email = "a@b"\ncommand = ["true"]\n', 3, "name is missing"),
    "a bad name": (HEAD.replace('"a"', '"a:b"'), 2, "name: "),
    "no address": (HEAD.replace('"a@b"', '"ab"'), 3, "is not an address"),
    "no description": (HEAD + "description = 5\n", 5, "description: it is not a text"),
    "a name again": (HEAD + HEAD, 6, "a task above is named 'a'"),
    "our own names": (HEAD + 'env = ["HOME"]', 5, "HOME is set for each attempt"),
    "after another line end": (f"# a\u2028b\n{HEAD}x = 1\n", 6, "x: it is unknown"),
    "a text as command": (
        HEAD.replace('["true"]', '"true"'),
        4,
        "it is not a list of texts",
    ),
    "an empty command": (HEAD.replace('["true"]', "[]"), 4, "command: it is empty"),
    "a relative command": (HEAD.replace('"true"', '"./run.sh"'), 4, "write {here}/run.sh"),
    "our own keys": (
        HEAD + 'env = ["CONDUCTOR_AUTH_SECRET"]',
        5,
        "is for the worker",
    ),
    "no variable": (HEAD + 'env = ["a b"]', 5, "not the name of a variable"),
    "serve": (HEAD + 'serve = "yes"', 5, "serve: it is neither true nor false"),
    "a missing file": (HEAD + 'params = "no.json"', 5, "cannot be read"),
    "no schema": (HEAD + 'result = { type = "objekt" }', 5, "result: it is no JSON Schema"),
    "a schema elsewhere": (HEAD + 'result = { "$ref" = "http://x/y.json" }', 5, "leads out of"),
    "a date in a schema": (HEAD + "result = { const = 2020-01-01 }", 5, "result: "),
    "a prefix": (HEAD + "[task.workspace]\n\nprefix = '../x'\n", 7, "workspace.prefix: the prefix"),
    "a fence": (HEAD + "[task.workspace]\nfence = 'soft'\n", 6, "workspace.fence: input should be"),
    "a key of the workspace": (
        HEAD + "[task.workspace]\nfense = 'hard'\n",
        6,
        "did you mean 'fence'?",
    ),
    "no table": (HEAD + "workspace = 1\n", 5, "workspace: it is not a table"),
    "deep inside": (HEAD + "[task.controls.retry]\n\ncount = 99\n", 7, "controls.retry.count: "),
    "a rule of two": (
        HEAD + "[task.controls.limits]\nrate_limit_per_frequency = 1\n",
        5,
        "go together",
    ),
    "no guards": (HEAD + "[task.workspace]\npre = 'x'\n", 6, "workspace.pre: it is not a list"),
    "no guard": (
        HEAD + "[task.workspace]\npre = ['x']\n",
        6,
        "pre.0: a guard is a table",
    ),
    "an unknown guard": (
        HEAD + "[task.workspace]\npre = [\n {require_fil='x'}]\n",
        6,
        "did you mean 'require_file'?",
    ),
    "a guard of Spark": (HEAD + "[task.workspace]\npre=[{expect=['t','a']}]\n", 6, "it is unknown"),
    "a guard's argument": (
        HEAD + "[task.workspace]\npost=[{require_rows={table='t', mn=1}}]\n",
        6,
        "did you mean 'min'?",
    ),
    "too many arguments": (
        HEAD + "[task.workspace]\npost=[{require_rows=['t', 1, 2, 3]}]\n",
        6,
        "too many positional",
    ),
    "a guard's type": (
        HEAD + "[task.workspace]\npost=[{require_rows={table='t', min='x'}}]\n",
        6,
        "use whole numbers",
    ),
    "a guard's path": (HEAD + "[task.workspace]\npost=[{require_file='/x'}]\n", 6, "require_file("),
    "a budget": (
        HEAD
        + "[task.controls.publish_budget]\nobserved_merge_p99_seconds = 1\nsafety_margin_seconds ="
        " 1\nlakefs_merge_timeout_seconds = 9\nconductor_completion_timeout_seconds = 9\n"
        "worker_shutdown_grace_seconds = 9\nheartbeat_interval_seconds = 9\n",
        5,
        "publish_budget needs a workspace",
    ),
    "a person with a command": (HEAD + "human = true\n", 4, "command: a person has none"),
    "a person with metrics": (HUMAN + "[task.metrics]\n", 5, "metrics: a person has none"),
    "human": (HEAD + "human = 1\n", 5, "human: it is neither true nor false"),
    "a timeout of a person": (
        HUMAN + "[task.controls.timeout]\nseconds = 9\n",
        5,
        "no engine ends or limits what a person does",
    ),
    "an approval by a program": (HEAD + "approval = true\n", 5, "only a person approves"),
    "an approval that writes": (
        HUMAN + "approval = true\n[task.workspace]\n",
        5,
        "add read_only = true",
    ),
    "an approval without a version": (HUMAN + "approval = true\n", 5, "it is about a version"),
    "an approval with a result": (
        HUMAN + "approval = true\nresult = {}\n[task.workspace]\nread_only = true\n",
        6,
        "an approval has a result of its own",
    ),
    "the second task": (HEAD + HEAD.replace('"a"', '"b"') + "x = 1\n", 9, "x: it is unknown"),
}


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES.keys())
def test_q1_a_mistake_is_named_with_its_line(tmp_path: Path, mistake: tuple[str, int, str]) -> None:
    text, line, said = mistake
    file = tmp_path / "tasks.toml"
    file.write_text(text)
    with pytest.raises(TaskDefinitionError) as caught:
        load_tasks([str(file)])
    assert f"{file} line {line}: " in str(caught.value)
    assert said in str(caught.value)


def test_q10_what_a_person_does_is_declared_beside_programs(tmp_path: Path) -> None:
    file = tmp_path / "tasks.toml"
    file.write_text(
        HUMAN
        + HUMAN.replace('"a"', '"b"')
        + "approval = true\n[task.workspace]\nread_only = true\n"
        + HEAD.replace('"a"', '"c"')
    )
    tasks = load_tasks([str(file)])
    bodies = [tasks[name].body for name in "abc"]
    assert [isinstance(body, HumanBody) for body in bodies] == [True, True, False]
    assert [getattr(body, "approval", None) for body in bodies] == [False, True, None]
    assert tasks["b"].result.required() == {"approved", "comment", "ref"}
    made = taskdef(tasks["a"])
    assert made["outputKeys"] == ["result", "person"]
    assert "person" in made["outputSchema"]["data"]["properties"]
    assert [*for_workers(tasks)] == ["c"]
    with pytest.raises(UsageError, match="people do all of these tasks"):
        for_workers({"a": tasks["a"]})


def test_two_tasks_of_one_name_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "tasks.toml"
    file.write_text(HEAD + HEAD.replace('"true"', '"false"'))
    with pytest.raises(TaskDefinitionError, match="line 6: name: a task above is named 'a'"):
        load_tasks([str(file)])


@pytest.mark.parametrize("name", ["no.toml", "."])
def test_a_manifest_that_is_not_there(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"does not exist|cannot be read"):
        load_tasks([str(tmp_path / f"{name}.toml")])


def test_q1_the_schema_knows_what_a_manifest_knows(manifest: Path) -> None:
    validator = Draft202012Validator(manifest_schema())
    Draft202012Validator.check_schema(manifest_schema())
    assert [*validator.iter_errors(tomllib.loads(manifest.read_text()))] == []
    for name in ("an unknown key", "no command", "a fence", "an unknown guard", "deep inside"):
        text = MISTAKES[name][0]
        assert [*validator.iter_errors(tomllib.loads(text))], name
