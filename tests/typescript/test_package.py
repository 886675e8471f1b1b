"""The package: its own tests and types, what is packed, and what its command says."""

from __future__ import annotations

import json
import shutil
import tarfile

import pytest

from perago.tasks.manifest_schema import manifest_schema
from tests.typescript.project import Package, Project

TASK = """
import {{ task }} from "perago";
export const upper = task({{ name: "{name}", ownerEmail: "text@example.com" }}, () => ({{}}));
"""


def test_types_are_strict_and_right(package: Package) -> None:
    package.node.run("npx", "tsc", "--noEmit", cwd=package.directory)


def test_its_own_tests_pass(package: Package) -> None:
    done = package.node.run("npm", "test", cwd=package.directory)
    assert "fail 0" in done.stdout, done.stdout


def test_only_what_runs_is_packed(package: Package) -> None:
    with tarfile.open(package.packed()) as packed:
        names = {name.removeprefix("package/") for name in packed.getnames()}
    assert {name.split("/")[0] for name in names} == {"package.json", "README.md", "dist"}
    assert {name for name in names if name.startswith("dist/")} >= {
        *("dist/index.js", "dist/index.d.ts", "dist/testing.js", "dist/cli.js"),
    }


def test_it_needs_nothing_but_zod_to_run(package: Package) -> None:
    words = json.loads((package.directory / "package.json").read_text())
    assert "dependencies" not in words
    assert words["peerDependencies"].keys() == {"zod"}


def test_the_lock_names_no_place(package: Package) -> None:
    lock = json.loads((package.directory / "package-lock.json").read_text())
    pins = [pin for name, pin in lock["packages"].items() if name]
    assert pins
    assert all("resolved" not in pin and pin["integrity"] for pin in pins)


def test_a_module_is_declared_in_a_manifest_and_again_when_it_changed(project: Project) -> None:
    words = ("npx", "perago", "manifest", "again.ts")
    project.declare(TASK.format(name="one"), "again")
    assert project.node.run(*words, "--check", cwd=project.directory).stdout == ""
    (project.directory / "again.ts").write_text(TASK.format(name="two"))
    stale = project.node.run(*words, "--check", cwd=project.directory, check=False)
    assert stale.returncode == 1
    assert stale.stderr == ("error: again.toml is not up to date; make it anew, without --check\n")
    assert project.node.run(*words, cwd=project.directory).stdout == "again.toml: two\n"


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("export const x = 1;\n", "exports no task; write export const"),
        (TASK.format(name="a:b"), "task 'a:b': name: use a printable name"),
        ("export enum Kind { A }", "syntax that Node does not strip, such as enum; compile it"),
        (
            TASK.format(name="a") + TASK.format(name="a").splitlines()[2].replace("upper", "b"),
            "two",
        ),
    ],
)
def test_a_mistake_is_one_sentence(project: Project, source: str, said: str) -> None:
    (project.directory / "wrong.ts").write_text(source)
    words = ("npx", "perago", "manifest", "wrong.ts")
    done = project.node.run(*words, cwd=project.directory, check=False)
    assert done.returncode == 1
    assert said in done.stderr
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert not (project.directory / "wrong.toml").exists()


def test_a_manifest_of_somebody_else_is_not_overwritten(project: Project) -> None:
    (project.directory / "own.ts").write_text(TASK.format(name="own"))
    (project.directory / "own.toml").write_text("[[task]]\n")
    words = ("npx", "perago", "manifest", "own.ts")
    done = project.node.run(*words, cwd=project.directory, check=False)
    assert (done.returncode, "--out" in done.stderr) == (1, True)
    assert (project.directory / "own.toml").read_text() == "[[task]]\n"


def test_a_module_that_leaves_something_open_keeps_nobody_waiting(project: Project) -> None:
    project.declare(TASK.format(name="open") + "setInterval(() => {}, 1000);", "open")


def test_a_directory_that_is_not_there_is_named(project: Project) -> None:
    words = ("npx", "perago", "manifest", "open.ts", "--out", "no/where.toml")
    (project.directory / "open.ts").write_text(TASK.format(name="open"))
    done = project.node.run(*words, cwd=project.directory, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error: there is no directory ")


def test_two_copies_of_the_package_know_each_other(project: Project) -> None:
    copy = project.directory / "shared" / "node_modules" / "perago"
    shutil.copytree(project.directory / "node_modules" / "perago", copy)
    shared = "import { requireFile, task } from 'perago'; export const guard = requireFile('a');"
    (project.directory / "shared" / "index.ts").write_text(
        shared + TASK.format(name="x").split(";")[1]
    )
    source = """
    import { task } from "perago";
    import { guard } from "./shared/index.ts";
    export { upper } from "./shared/index.ts";
    const workspace = { pre: [guard] };
    export const own = task({ name: "own", ownerEmail: "a@example.com", workspace }, () => ({}));
    """
    text = project.declare(source, "copies").read_text()
    assert 'name = "x"' in text
    assert "require_file" in text


def test_the_command_teaches(project: Project) -> None:
    shown = project.node.run("npx", "perago", "--help", cwd=project.directory).stdout
    assert "npx perago manifest src/tasks.ts" in shown
    wrong = project.node.run("npx", "perago", "manifst", "x", cwd=project.directory, check=False)
    assert wrong.stderr == "error: cannot do 'manifst x'; see npx perago --help\n"


SHAPES = """
import * as z from "zod";
import { Controls, Metrics, Workspace } from "./dist/declaration.js";
const keys = (schema) => {
  const inner = schema instanceof z.ZodOptional ? schema.unwrap() : schema;
  return inner instanceof z.ZodObject
    ? Object.fromEntries(Object.entries(inner.shape).map(([key, each]) => [key, keys(each)]))
    : null;
};
console.log(JSON.stringify([Workspace, Controls, Metrics].map(keys)));
"""


def test_all_that_a_manifest_knows_can_be_declared(package: Package) -> None:
    words = ("node", "--input-type=module", "--eval", SHAPES)
    found = json.loads(package.node.run(*words, cwd=package.directory).stdout)
    schema = manifest_schema()["$defs"]
    retry, timeout, limits, budget = (
        schema[name]["properties"]
        for name in ("RetryPolicy", "TimeoutPolicy", "ExecutionLimits", "PublishBudget")
    )
    workspace, controls, metrics = found
    assert _snake(workspace) == schema["workspace"]["properties"].keys()
    assert _snake(metrics) == schema["metrics"]["properties"].keys()
    assert _snake(controls) == schema["controls"]["properties"].keys()
    assert _snake(controls["retry"]) == retry.keys()
    assert _snake(controls["timeout"]) == timeout.keys()
    assert _snake(controls["limits"]) == limits.keys()
    assert _snake(controls["publishBudget"]) == budget.keys()


def _snake(names: dict[str, object]) -> set[str]:
    return {"".join(f"_{c.lower()}" if c.isupper() else c for c in name) for name in names}
