"""What an attempt needs runs out: space, file handles, memory, its own directory (V1 to V9).

A user namespace gives a worker a root, a cache or a home that is as small as the case wants.
"""

from __future__ import annotations

import errno
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests import injection
from tests.faults.conftest import NewRig
from tests.faults.paths import selected
from tests.faults.rig import Rig
from tests.patience import LIMIT
from tests.worker.stage import Worker, eventually

PATIENCE_SECONDS = 2 * LIMIT
SMALL = "16m"
FULL = "64k"
PAGE = 4096


def mounting(variable: str, size: str) -> list[str]:
    """Say how to give one directory of a worker so much space, seen by that worker only."""
    options = f"size={size},mode=700"
    mount = f'mkdir -p "${variable}" && mount -t tmpfs -o {options} tmpfs "${variable}"'
    return ["unshare", "-Urm", "sh", "-c", f'{mount} && exec "$@"', "sh"]


def limited(what: str) -> list[str]:
    return ["sh", "-c", f'ulimit {what}; exec "$@"', "sh"]


@dataclass(frozen=True)
class Case:
    """An attempt that runs out of something and fails with the reason; its retry completes."""

    what: str
    place: str
    do: str
    reason: str
    wrapper: tuple[str, ...] = ()
    fence: str = "head"
    settings: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        return f"resources/{self.place}/{self.what}/merge-{self.fence}"

    @property
    def expected(self) -> list[str]:
        return ["FAILED", "COMPLETED"] if self.reason else ["COMPLETED"]


ROOT = tuple(mounting("PERAGO_WORKSPACE_ROOT", SMALL))
CASES = [
    case
    for fence in ("head", "hard")
    for case in (
        Case("ENOSPC", "body", "fill", "body: OSError: [Errno 28]", ROOT, fence),
        Case("ENOSPC", "cache", "", "", tuple(mounting("PERAGO_CACHE_ROOT", FULL)), fence),
        Case("ENOSPC", "logs", "", "", tuple(mounting("PERAGO_LOG_ROOT", FULL)), fence),
        Case("EFBIG", "body", "fill", "[Errno 27]", tuple(limited("-f 16384")), fence),
        Case("EMFILE", "body", "handles", "[Errno 24]", tuple(limited("-n 128")), fence),
        Case("directory removed", "body", "vanish", "post guardrail", (), fence),
        Case(
            "OOM",
            "body",
            "memory",
            "executor killed: it took",
            (),
            fence,
            {"PERAGO_EXECUTOR_MAX_MEMORY": "300MB"},
        ),
    )
]
CHOSEN = selected(CASES, lambda case: case.fence == "hard" and case.what in {"ENOSPC", "EMFILE"})


@pytest.mark.parametrize("case", CHOSEN, ids=str)
def test_resources(new_rig: NewRig, case: Case) -> None:
    rig = new_rig()
    worker = rig.work_under(() if injection.OFF else case.wrapper, 1, **case.settings)
    if not case.do:
        injection.inject(str(case), lambda: fill(worker, rig.directory / case.place))
    begun = rig.begin("s", case.fence, do=case.do)
    ended = rig.completed(begun.workflow_id, PATIENCE_SECONDS)
    assert rig.statuses(begun) == case.expected
    if case.reason:
        assert case.reason in ended["tasks"][0]["reasonForIncompletion"]
    assert rig.findings(begun) == []
    # The worker is as good as new.
    another = rig.begin("t", case.fence)
    rig.completed(another.workflow_id, PATIENCE_SECONDS)
    assert rig.findings(another) == []
    assert worker.stop() == 0


def fill(worker: Worker, place: Path) -> None:
    """Leave no space in a directory as a worker sees it: what it writes itself may be little."""
    filler = Path(f"/proc/{worker.process.pid}/root{place}/filler")
    try:
        with filler.open("wb", buffering=0) as file:
            while file.write(bytes(PAGE)):
                pass
    except OSError as error:
        assert error.errno == errno.ENOSPC  # noqa: PT017 - it ends in no other way


def inside(worker: Worker, *words: str, place: Path | None = None) -> None:
    """Do something in the namespace of a worker; the last word is a place, or else its root."""
    root = str(worker.root).removeprefix(f"/proc/{worker.process.pid}/root")
    enter = ["nsenter", "--preserve-credentials", "-U", "-m", "-t", str(worker.process.pid)]
    subprocess.run([*enter, *words, str(place or root)], check=True, timeout=LIMIT)


@pytest.fixture(scope="module")
def small(new_rig: NewRig) -> Rig:
    rig = new_rig()
    rig.work_under(ROOT, 1)
    return rig


@pytest.mark.parametrize(
    "name", [pytest.param("download", id="resources/download/ENOSPC/merge-head")]
)
def test_no_space_for_the_input(small: Rig, name: str) -> None:
    """V5: it fails closed and leaves nothing; with space the retry of the workflow completes."""

    def big(workspace: Mapping[str, str]) -> None:
        repository = workspace["repository"]
        small.store.put(repository, "main", "data/big.bin", bytes(40 << 20))
        assert isinstance(workspace, dict)
        workspace["ref"] = small.store.commit_branch(repository, "main", "big").id

    def too_big(workspace: Mapping[str, str]) -> None:
        injection.inject("an input that is larger than the root", lambda: big(workspace))

    begun = small.begin(name, "head", too_big)
    ended = small.ended(begun.workflow_id, PATIENCE_SECONDS)
    assert ended["status"] == "FAILED"
    assert all("download:" in task["reasonForIncompletion"] for task in ended["tasks"])
    assert small.head(begun.workspace) == begun.workspace["ref"]
    assert list(small.left(begun, ended)) == []
    inside(small.workers[0], "mount", "-o", "remount,size=128m")
    small.ask("POST", begun.workflow_id, "retry")
    again = small.completed(begun.workflow_id, PATIENCE_SECONDS)
    assert small.history(begun.workspace) == [again["tasks"][-1]["outputData"]["workspace"]["ref"]]


@pytest.mark.parametrize(
    "fence", ["head", "hard"], ids="resources/event log/ENOSPC/merge-{}".format
)
def test_no_space_for_the_event_log(new_rig: NewRig, fence: str) -> None:
    """V5: what cannot be written down is not done; with space the retry completes."""
    rig = new_rig()
    worker = rig.work_under(mounting("PERAGO_HOME", FULL), 1)
    begun = rig.begin("e", fence)
    ended = rig.ended(begun.workflow_id, PATIENCE_SECONDS)
    full = sum("full" in task["reasonForIncompletion"] for task in ended["tasks"])
    injection.expect("no space for the event log", lambda: full)
    assert ended["status"] == "FAILED"
    for task in ended["tasks"]:
        assert "event log" in task["reasonForIncompletion"]
        assert "full" in task["reasonForIncompletion"]
    assert rig.head(begun.workspace) == begun.a
    assert list(rig.left(begun, ended)) == []
    inside(worker, "mount", "-o", "remount,size=64m", place=rig.directory / "home")
    rig.ask("POST", begun.workflow_id, "retry")
    again = rig.completed(begun.workflow_id, PATIENCE_SECONDS)
    assert rig.history(begun.workspace) == [again["tasks"][-1]["outputData"]["workspace"]["ref"]]
    assert worker.stop() == 0


@pytest.mark.parametrize(
    "name", [pytest.param("ro", id="resources/attempt directory/EROFS/merge-head")]
)
def test_a_root_that_became_read_only(small: Rig, name: str) -> None:
    worker = small.workers[0]
    injection.inject(
        "a root that cannot be written",
        lambda: inside(worker, "mount", "-t", "tmpfs", "-o", "ro", "tmpfs"),
    )
    try:
        begun = small.begin(name, "head")
        ended = small.ended(begun.workflow_id, PATIENCE_SECONDS)
    finally:
        inside(worker, "umount")
    assert ended["status"] == "FAILED"
    assert all("attempt directory:" in task["reasonForIncompletion"] for task in ended["tasks"])
    assert small.head(begun.workspace) == begun.a
    small.ask("POST", begun.workflow_id, "retry")
    small.completed(begun.workflow_id, PATIENCE_SECONDS)
    assert small.findings(begun) == []


@pytest.mark.parametrize(
    "fence", ["head", "hard"], ids="resources/body/directory removed by another/merge-{}".format
)
def test_a_directory_that_somebody_removed(new_rig: NewRig, fence: str) -> None:
    rig = new_rig()
    worker = rig.work(1)
    begun = rig.begin("v", fence, wait=True)
    eventually(Path(rig.directory / "v.begun").exists, "the body")
    (attempt_dir,) = rig.attempt_dirs()
    injection.inject("directory removed", lambda: shutil.rmtree(worker.root / attempt_dir))
    Path(rig.directory / "v.go").touch()
    rig.completed(begun.workflow_id, PATIENCE_SECONDS)
    assert rig.statuses(begun) == ["FAILED", "COMPLETED"]
    assert rig.findings(begun) == []
    assert worker.stop() == 0
