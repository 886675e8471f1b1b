"""Tasks in TypeScript under Perago: attempts, what they leave, and patterns that mean the same."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from perago.protocol.globs import matches, refuse_pattern
from perago.protocol.values import Status
from perago.tasks.cancellation import CancellationToken, holding
from perago.testing import Lab
from perago.testing.lab import Run
from tests.patience import until
from tests.typescript.project import Package, Project

FILES = {"in/a.txt": "abc"}
HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def manifest(installed: Project) -> str:
    return f"{installed.declare(HERE / 'tasks.ts', 'acts')}:act"


@pytest.fixture
def lab(tmp_path: Path, project: Project) -> Iterator[Lab]:
    made = Lab(tmp_path)
    made.commit(FILES)
    yield made
    made.close()


def run(lab: Lab, manifest: str, do: str) -> Run:
    return lab.run(manifest, {"do": do})


def test_one_program_serves_one_attempt_after_the_other(lab: Lab, manifest: str) -> None:
    first, second = (run(lab, manifest, "change") for _ in range(2))
    assert second.completed, second.reason
    assert second.files["in/a.txt"] == b"abc!!"
    assert second.result["pid"] == first.result["pid"]
    assert second.result["served"] == 2


def test_what_it_prints_and_tells_is_passed_on(
    lab: Lab, manifest: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(lab, manifest, "print").completed
    printed = capfd.readouterr()
    assert printed.out == "printed\n"
    assert "told\n" in printed.err
    assert "warning: logged" in printed.err + printed.out


def test_it_is_told_the_attempt_and_sees_only_declared_variables(
    lab: Lab, manifest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROFILE", "loud")
    monkeypatch.setenv("LAKECTL_CREDENTIALS_SECRET_ACCESS_KEY", "secret")
    found = run(lab, manifest, "look").result
    assert found["tmp"] is True
    assert found["attempt"]["task"] == "act"
    assert "PROFILE" in found["environment"]
    assert not [name for name in found["environment"] if "LAKE" in name or "CONDUCTOR" in name]


@pytest.mark.parametrize("left", ["timer", "detach"])
def test_what_an_attempt_leaves_running_ends_the_program(
    lab: Lab, manifest: str, left: str
) -> None:
    first, second = run(lab, manifest, left), run(lab, manifest, "change")
    assert first.completed, first.reason
    assert second.completed, second.reason
    assert second.result["served"] == 1


@pytest.mark.parametrize("forgotten", ["forget", "stream", "spawn"])
def test_a_forgotten_await_publishes_nothing(lab: Lab, manifest: str, forgotten: str) -> None:
    first, second = run(lab, manifest, forgotten), run(lab, manifest, "change")
    assert first.status == Status.FAILED
    assert first.reason.endswith("; await it")
    assert second.result["served"] == 1
    assert second.files.keys() == {"in/a.txt"}


@pytest.mark.parametrize(
    ("do", "reason"),
    [
        ("reject", "nothing caught this: Error: lost"),
        ("throw", "a text"),
        ("circle", "the result.self.self contains itself, which JSON cannot say"),
        ("exit", "the task ended the process; return a result or throw an error instead"),
    ],
)
def test_whatever_is_thrown_is_a_reason(lab: Lab, manifest: str, do: str, reason: str) -> None:
    failed = run(lab, manifest, do)
    assert failed.status == Status.FAILED
    assert failed.reason.endswith(reason)
    assert run(lab, manifest, "change").completed


def test_a_number_that_would_be_another_one_is_refused(lab: Lab, manifest: str) -> None:
    refused = lab.run(manifest, {"do": "change", "id": 12345678901234567})
    assert refused.status == Status.FAILED_WITH_TERMINAL_ERROR
    assert "which JavaScript cannot hold exactly" in refused.reason


def test_a_timer_of_the_module_is_no_attempts(lab: Lab, project: Project) -> None:
    source = """
    import { task } from "perago";
    setInterval(() => {}, 1000);
    export const x = task({ name: "x", ownerEmail: "a@example.com" }, () => ({ pid: process.pid }));
    """
    manifest = f"{project.declare(source, 'interval')}:x"
    assert lab.run(manifest).result == lab.run(manifest).result


def test_a_module_that_waits_for_ever_says_so(lab: Lab, project: Project) -> None:
    project.declare('import { task } from "perago"; ' + TASK, "waits")
    (project.directory / "waits.ts").write_text("await new Promise(() => undefined);")
    failed = lab.run(f"{project.directory / 'waits.toml'}:x")
    assert failed.reason.endswith("waits.ts waits for something that never comes")


TASK = 'export const x = task({ name: "x", ownerEmail: "a@example.com" }, () => ({}));'


def test_a_lost_attempt_aborts_the_signal(lab: Lab, manifest: str, tmp_path: Path) -> None:
    begun, token = tmp_path / "begun", CancellationToken()

    def cancel() -> None:
        until(begun.exists, "the task has begun")
        token.cancel()

    watcher = threading.Thread(target=cancel, daemon=True)
    watcher.start()
    with holding(token, whole_process=False):
        lost = lab.run(manifest, {"do": "wait", "path": str(begun)})
    watcher.join()
    assert "nobody wants this any more" in lost.reason
    # The program itself was not ended: the signal was enough.
    assert run(lab, manifest, "change").result["served"] > 1


PATTERNS = ["a", "*", "**", "a*", "?", "[ab]", "[!ab]", "[a-c]", "**/a", "a/**", "a/**/b", "**/*.x"]
PATTERNS += [
    "[",
    "[]",
    "[]]",
    "[!]]",
    "[a-]",
    "a.x",
    "*.x",
    "a/*",
    "*/a",
    "(a|b)",
    "a+",
    "^a$",
    "{a}",
]
PATHS = ["a", "b", "c", "-", "]", "[", "!", "a.x", "axx", "a/b", "a/b/c", "b/a", "a/c/b", "x/y/z.x"]
PATHS += ["(a|b)", "aa", "a+", "^a$", "{a}", "ä", "𝔞", "a\nb"]
ASK = """
import {{ matches }} from "./dist/paths.js";
console.log(JSON.stringify({pairs}.map(([pattern, path]) => matches(pattern, path))));
"""


def test_patterns_mean_the_same_in_both_languages(package: Package) -> None:
    pairs = [*product(filter(lambda each: not refuse_pattern(each), PATTERNS), PATHS)]
    words = ("node", "--input-type=module", "--eval", ASK.format(pairs=json.dumps(pairs)))
    found = json.loads(package.node.run(*words, cwd=package.directory).stdout)
    assert len(pairs) > 500
    wrong = [
        (pattern, path)
        for (pattern, path), fits in zip(pairs, found, strict=True)
        if fits != matches(pattern, path)
    ]
    assert wrong == []
