"""``perago conform`` on real servers: a correct foreign worker passes, broken ones do not (Q17)."""

from __future__ import annotations

import ast
import json
import shlex
import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perago.conform.cases import NAMES
from perago.dev import ConductorEndpoint, LakeFSEndpoint
from perago.protocol.evidence import Invariant
from tests.environment import clean_environment
from tests.patience import LIMIT, scaled

ROOT = Path(__file__).parents[2]
Conform = Callable[..., tuple[int, dict[str, Any]]]
SLOW = {
    *("many-objects", "doubtful-heads", "stale-attempt", "second-fence", "handed-out-again"),
    *("takeover", "long-body", "refused-keys", "kill"),
}
"""Cases that wait; the others take a second or two."""


@pytest.fixture
def environment(
    lakefs_server: LakeFSEndpoint, conductor_server: ConductorEndpoint, tmp_path: Path
) -> dict[str, str]:
    """Name the servers, as for a worker."""
    return {
        **clean_environment(),
        "LAKECTL_SERVER_ENDPOINT_URL": lakefs_server.endpoint,
        "LAKECTL_CREDENTIALS_ACCESS_KEY_ID": lakefs_server.access_key_id,
        "LAKECTL_CREDENTIALS_SECRET_ACCESS_KEY": lakefs_server.secret,
        "CONDUCTOR_SERVER_URL": conductor_server.url,
        "PERAGO_HOME": str(tmp_path / "home"),
        "PYTHONPATH": str(ROOT),
    }


@pytest.fixture
def conform(environment: dict[str, str], tmp_path: Path) -> Conform:
    """Run the command with a worker of its own; return the exit code and the JSON."""
    repository = f"conform-{uuid.uuid4().hex[:8]}"

    def run(task: str, *words: str, command: str | None = None) -> tuple[int, dict[str, Any]]:
        given = ["--repo", repository, "--seconds", str(scaled(30.0)), "--json", *words]
        if command is not None:
            given += ["--command", command]
        done = subprocess.run(
            [sys.executable, "-m", "perago", "conform", "--task", task, *given],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=4 * LIMIT,
        )
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)

    return run


def new_task() -> str:
    return f"conform_{uuid.uuid4().hex[:8]}"


def worker(module: str, *arguments: str) -> str:
    return shlex.join([sys.executable, "-m", f"tests.conform.{module}", *arguments])


def state_of(report: dict[str, Any]) -> dict[str, str]:
    return {one["name"]: one["state"] for one in report["promises"]}


@pytest.mark.timeout(600)
def test_a_worker_of_the_standard_library_keeps_the_protocol_in_all_cases(conform: Conform) -> None:
    task = new_task()
    code, report = conform(task, command=worker("native_worker", task, "conform"))
    assert (code, report["conforms"]) == (0, True), json.dumps(report, indent=2)
    assert state_of(report) == dict.fromkeys(map(str, Invariant), "held")
    assert [case["case"] for case in report["cases"]] == list(NAMES)
    skipped = {case["case"] for case in report["cases"] if case["skipped"]}
    assert skipped - {"kill"} == {"unproven-fence"}, json.dumps(report, indent=2)
    assert report["printed"] is None


def test_a_worker_of_the_standard_library_keeps_the_protocol(conform: Conform) -> None:
    task = new_task()
    words = [word for case in NAMES if case not in SLOW for word in ("--only", case)]
    code, report = conform(task, *words, command=worker("native_worker", task, "conform"))
    assert (code, report["conforms"]) == (0, True), json.dumps(report, indent=2)
    assert state_of(report) == dict.fromkeys(map(str, Invariant), "held")
    skipped = {case["case"] for case in report["cases"] if case["skipped"]}
    assert skipped == {"unproven-fence"}


def test_the_native_worker_knows_nothing_of_perago() -> None:
    tree = ast.parse(Path(__file__).with_name("native_worker.py").read_text())
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
        )
    }
    assert imported <= sys.stdlib_module_names


BROKEN = [
    ("WithoutAttemptFence", "stale-attempt", {"V1 F1"}, "nothing was allowed"),
    ("WithoutAttemptFence", "takeover", {"V1 F1"}, "was published as well"),
    (
        *("Stacking", "replacement"),
        {"V1 P2", "V2 S2", "V3 S5", "V4 P2"},
        "is still in the target's history",
    ),
    ("LeavingAbandoned", "relocation", {"V1 N2", "V2 N4"}, "is still in the target's history"),
    ("WritingOnTarget", "happy-path", {"V3 S5", "V4 S1"}, "was made on the target itself"),
    ("Overwriting", "foreign-head", {"V1 P3", "V2 P3"}, "nothing was allowed"),
    ("Overwriting", "completed-publication", {"V1 P2a", "V2 P2a", "V3 P2a"}, "no longer on"),
    ("NamingStagedCommit", "happy-path", {"V2 P5"}, "and the target's head is"),
    ("Refusing", "replacement", {"V5 P2"}, "no attempt could complete"),
    ("Roaming", "happy-path", {"V6 S2"}, "roaming.txt"),
    ("Littering", "happy-path", {"V7 S4"}, "left behind"),
    ("Talking", "happy-path", {"V8 I7"}, "holds a key"),
    ("Silent", "terminal-error", {"V9 R1", "V9 T4"}, "failed without a reason"),
    ("Anonymous", "happy-path", {"V3 S5"}, "perago.task_id"),
    ("FencingOnce", "second-fence", {"V1 F1"}, "nothing was allowed"),
    ("LookingAtStatusOnly", "handed-out-again", {"V1 F1", "V2 F1", "V9 F1"}, "nothing was allowed"),
    ("ReportingWhatIsLost", "handed-out-again", {"V9 F1"}, "for a task that another one has"),
    ("ResettingOverChanges", "uncommitted-changes", {"V1 P4", "V2 P4"}, "nothing was allowed"),
    ("NotAsking", "doubtful-heads", {"V1 P2a", "V2 P2a"}, "open-task-of-others"),
    ("BlindToHalves", "unfinished-replacement", {"V1 K6", "V2 K6"}, "nothing was allowed"),
    ("LettingTheLeaseEnd", "long-body", {"V5 W4"}, "its lease was not extended"),
    ("TalkingInBase64", "happy-path", {"V8 I7"}, "holds a key"),
    ("TellingWhere", "happy-path", {"V8 I7"}, "holds the address of a server"),
    ("Mislabelling", "happy-path", {"V3 S5"}, "perago.task of C"),
    ("AddingToOutput", "happy-path", {"V2 I3"}, "more than workspace and result"),
    ("MovingTwice", "replacement", {"V1 P2"}, "two visible acts"),
    ("StagingNothing", "no-op", {"V1 N1"}, "nothing is to be written"),
    ("ReadingOnePage", "many-objects", {"V2 S2", "V4 S2"}, "many/0999.txt"),
    ("NamingFreely", "odd-names", {"V3 S5", "V7 S1"}, "not named after the attempt"),
    ("Repeating", "foreign-head", {"V7 S1"}, "it has to be new"),
    ("InPlainSight", "second-fence", {"V7 S1"}, "is not hidden"),
    ("RefusingTraces", "odd-names", {"V5 P1"}, "no attempt could complete"),
    ("TakingAnyInput", "refused-input", {"V1 I2", "V2 I2"}, "i2 both"),
    ("TakingTwins", "refused-keys", {"V1 D2", "V2 D2"}, "case-of-directory"),
    ("Rambling", "terminal-error", {"V9 R1"}, "several lines"),
]
"""Worker, case, all that is broken there, and words that say how."""


@pytest.mark.parametrize(
    ("name", "case", "broken", "text"), BROKEN, ids=[f"{one[0]}-{one[1]}" for one in BROKEN]
)
@pytest.mark.timeout(300)
def test_a_broken_worker_fails_for_the_right_reason(
    conform: Conform,
    lakefs_server: LakeFSEndpoint,
    name: str,
    case: str,
    broken: set[str],
    text: str,
) -> None:
    task = new_task()
    command = worker("broken_workers", name, task, "conform")
    code, report = conform(task, "--only", case, command=command)
    assert (code, report["conforms"]) == (1, False), json.dumps(report, indent=2)
    (found,) = report["cases"]
    told = {f"{one['promise']} {one['rule']}" for one in found["broken"]}
    assert told == broken, json.dumps(report, indent=2)
    assert any(text in one["text"] for one in found["broken"]), json.dumps(report, indent=2)
    states = {one.split()[0] for one in broken}
    assert {one for one, state in state_of(report).items() if state == "broken"} == states
    assert lakefs_server.secret not in json.dumps(report)
    printed = Path(report["printed"])
    assert printed.is_file()
    printed.unlink()


def test_fence_hard_asks_for_more_than_fence_head(conform: Conform) -> None:
    task = new_task()
    words = ("--fence", "hard", "--only", "replacement", "--only", "foreign-head")
    code, report = conform(task, *words, command=worker("native_worker", task, "conform"))
    told = {f"{one['promise']} {one['rule']}" for case in report["cases"] for one in case["broken"]}
    assert code == 1
    assert {"V3 K3", "V1 K3"} <= told, json.dumps(report, indent=2)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("fence", ["head", "lineage", "hard"])
def test_peragos_own_worker_keeps_the_protocol(
    conform: Conform, environment: dict[str, str], tmp_path: Path, fence: str
) -> None:
    task = new_task()
    shutil.copy(Path(__file__).with_name("conform_body.py"), tmp_path)
    (tmp_path / "tasks.toml").write_text(MANIFEST.format(task=task, fence=fence))
    perago = [sys.executable, "-m", "perago"]
    registered = subprocess.run(
        [*perago, "register", "tasks.toml"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
    )
    assert registered.returncode == 0, registered.stderr
    command = shlex.join([*perago, "start", "tasks.toml", "-j", "2"])
    words = [word for case in NAMES if case not in SLOW for word in ("--only", case)]
    code, report = conform(task, "--fence", fence, *words, command=command)
    assert (code, report["conforms"]) == (0, True), json.dumps(report, indent=2)
    assert set(state_of(report).values()) == {"held"}


MANIFEST = """
[[task]]
name = "{task}"
owner_email = "conform@example.com"
command = ["python3", "{{here}}/conform_body.py"]
[task.workspace]
prefix = "/conform"
fence = "{fence}"
"""


def test_a_worker_that_writes_on_the_target_is_caught_in_the_act(conform: Conform) -> None:
    task = new_task()
    command = worker("broken_workers", "WritingOnTarget", task, "conform")
    code, report = conform(task, "--only", "kill", command=command)
    (found,) = report["cases"]
    assert code == 1
    assert any("killed worker left" in one["text"] for one in found["broken"])


def test_what_is_not_started_by_the_command_is_not_killed(conform: Conform) -> None:
    code, report = conform(new_task(), "--only", "kill")
    assert (code, report["conforms"]) == (0, False)
    assert set(state_of(report).values()) == {"not looked at"}
    assert "--command" in report["cases"][0]["skipped"]


def test_people_get_a_line_for_each_case_and_each_promise(
    environment: dict[str, str], tmp_path: Path
) -> None:
    task = new_task()
    given = ["--task", task, "--repo", f"conform-{uuid.uuid4().hex[:8]}", "--only", "happy-path"]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "perago", "conform", *given),
            *("--command", worker("broken_workers", "Talking", task, "conform")),
        ],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 1, done.stderr
    assert lines[0].startswith("✗ happy-path: publish on A")
    assert [line.split()[1] for line in lines if " V" in line] == list(map(str, Invariant))
    assert any(line.endswith("holds a key") for line in lines)
    assert "not looked at by any case:" in lines
    assert lines[-2].startswith(f"{task} breaks 1 of 9")
    printed = Path(lines[-1].removeprefix("what the worker printed is in "))
    assert printed.is_file()
    printed.unlink()


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("--only", "unhappy"), 2, "there is no case 'unhappy'"),
        (("--repo", "NO"), 2, "cannot name a repository; name another one with --repo"),
        (("--command", "'"), 2, "cannot be split into words"),
        (("--command", "no-such-program-here"), 2, "cannot be started"),
        (("--prefix", "a//b"), 2, "has the segment ''"),
        (("--fence", "soft"), 2, "soft"),
        (("--command", "false", "--only", "happy-path"), 3, "ended by itself with exit code 1"),
        (("--seconds", "1", "--only", "happy-path"), 3, "no worker took task"),
    ],
)
def test_mistakes_get_one_sentence(
    environment: dict[str, str], tmp_path: Path, words: tuple[str, ...], code: int, sentence: str
) -> None:
    given = ["--task", new_task(), "--repo", f"conform-{uuid.uuid4().hex[:8]}", *words]
    done = subprocess.run(
        [sys.executable, "-m", "perago", "conform", *given],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
    )
    assert (done.returncode, sentence in done.stderr) == (code, True), done.stderr
