"""Servers that go away or are not what they should be, while a worker is at work (V1 to V9)."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from perago.dev import ConductorEndpoint, Instance, LakeFSEndpoint, start
from perago.dev.record import ServerName
from perago.errors import PeragoError
from perago.protocol.values import Staging
from perago.stores.lakefs.action import KEY, render
from perago.stores.lakefs.client import Ask
from perago.stores.lakefs.errors import Call as Manner
from perago.stores.lakefs.installing import install_fence
from perago.transfer.wire import path_of
from tests import injection
from tests.faults import calls
from tests.faults.acts_of import given
from tests.faults.calls import Call, by_attempt
from tests.faults.conftest import NewRig
from tests.faults.paths import ALL, FENCES, MODES, OnPath, selected
from tests.faults.proxy import Exchange, Proxy, Rule, Seen
from tests.faults.rig import Begun, Rig, kill_at
from tests.patience import LIMIT, scaled
from tests.worker.stage import Worker, eventually

PATIENCE_SECONDS = 2 * LIMIT


# --- lakeFS restarted -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Restarted(OnPath):
    """At which request lakeFS dies, and whether it had done it."""

    number: int
    call: Call
    applied: bool
    path: str
    fence: str

    def __str__(self) -> str:
        how = "after" if self.applied else "before"
        return f"servers/lakeFS restarted {how} {self.call}/kill -9/{self.path}-{self.fence}"

    @property
    def step(self) -> str:
        return f"r{self.number}"


def every_restart() -> list[Restarted]:
    lines = [(call, "merge", fence) for fence in ("head", "hard") for call in STEPS]
    lines += [(calls.MERGE, "merge", "lineage")]
    lines += [(calls.RESET, "replace", fence) for fence in ("head", "hard")]
    lines += [(calls.MERGE, "replace", "hard"), (calls.RESET, "relocate", "hard")]
    both = [(call, done, path, fence) for call, path, fence in lines for done in (False, True)]
    return [Restarted(number, *line) for number, line in enumerate(both)]


STEPS = (calls.CREATE, calls.UPLOAD, calls.COMMIT, calls.GET_BRANCH, calls.MERGE, calls.DROP)
RESTARTS = every_restart()
QUICK = [(calls.MERGE, "merge", "hard"), (calls.RESET, "replace", "hard")]
RESTARTS_CHOSEN = selected(
    RESTARTS, lambda case: case.applied and (case.call, case.path, case.fence) in QUICK
)


@dataclass
class Restart:
    """The server dies with this request, done or not, and comes back."""

    instance: Instance
    server: ServerName
    applied: bool
    over: threading.Event = field(default_factory=threading.Event)

    def meet(self, exchange: Exchange) -> None:
        if self.applied:
            exchange.forward()
        self.instance.kill(self.server)
        exchange.reset()
        self.instance.restart(self.server)
        self.over.set()


@pytest.fixture(scope="module")
def mortal_lakefs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    """Give a lakeFS that nobody else uses."""
    with start("mortal", tmp_path_factory.mktemp("mortal"), ["lakefs"]) as instance:
        yield instance


@pytest.fixture(scope="module")
def mortal(
    tmp_path_factory: pytest.TempPathFactory,
    mortal_lakefs: Instance,
    conductor_server: ConductorEndpoint,
) -> Iterator[tuple[Rig, Proxy]]:
    place = tmp_path_factory.mktemp("rig")
    with Proxy(mortal_lakefs.lakefs.endpoint) as proxy:
        more = {"LAKECTL_SERVER_ENDPOINT_URL": proxy.url}
        rig = Rig(place, conductor_server, mortal_lakefs.lakefs, more=more)
        rig.work(2, kill_at((case.step, 0, "after publish") for case in RESTARTS if case.victim))
        yield rig, proxy
        rig.close()


@pytest.mark.parametrize("case", RESTARTS_CHOSEN, ids=str)
def test_lakefs_restarted(
    mortal: tuple[Rig, Proxy], mortal_lakefs: Instance, case: Restarted
) -> None:
    rig, proxy = mortal
    fault = Restart(mortal_lakefs, "lakefs", case.applied)
    of_victim = by_attempt(case.victim) if case.call is calls.MERGE else None
    rules: list[Rule] = []

    def arrange(workspace: Mapping[str, str]) -> None:
        rule = case.call.rule(fault, workspace["repository"], where=of_victim)
        rules.append(proxy.add(rule))

    mode = MODES.get(case.path, "change")
    begun = rig.begin(case.step, case.fence, arrange, mode=mode)
    rig.completed(begun.workflow_id, PATIENCE_SECONDS)
    assert rules[0].met
    eventually(lambda: _answers(rig, begun), "lakeFS to be back")
    done = rig.perago("gc", "--repo", begun.repository, "--delete")  # V7
    assert done.returncode == 0, done.stdout + done.stderr
    assert rig.findings(begun) == []


def _answers(rig: Rig, begun: Begun) -> bool:
    try:
        rig.head(begun.workspace)
    except PeragoError:
        return False
    return True


# --- a target or a fence that is not what it should be --------------------------------------------


@pytest.fixture(scope="module")
def rig(new_rig: NewRig) -> Rig:
    rig = new_rig(20)
    replaced = [step for (_, path), step in PROTECTED.items() if path == "replace"]
    rig.work(3, kill_at((step, 0, "after publish") for step in replaced))
    return rig


PROTECTED = {(fence, path): f"{fence}{path}" for fence in FENCES for path in ("merge", "replace")}


def ask(rig: Rig, repository: str, method: str, *path: str, **asked: Any) -> Any:
    place = path_of("repositories", repository, *path)
    return rig.store.client.ask(Ask("arrange", method, place, Manner.PUBLISH, **asked))


def nothing(rig: Rig, workspace: Mapping[str, str]) -> None:
    """Do not install the action."""


def dirty(rig: Rig, workspace: Mapping[str, str]) -> None:
    rig.store.put(workspace["repository"], workspace["branch"], "dirt.txt", b"dirt")


def clean(rig: Rig, workspace: Mapping[str, str]) -> None:
    repository, branch = workspace["repository"], workspace["branch"]
    ask(rig, repository, "PUT", "branches", branch, body={"type": "reset"})


def protect(rig: Rig, workspace: Mapping[str, str]) -> None:
    rules = [{"pattern": "line"}]
    ask(rig, workspace["repository"], "PUT", "settings", "branch_protection", body=rules)


def unprotect(rig: Rig, workspace: Mapping[str, str]) -> None:
    ask(rig, workspace["repository"], "PUT", "settings", "branch_protection", body=[])


def delete(rig: Rig, workspace: Mapping[str, str]) -> None:
    rig.store.drop(Staging(workspace["repository"], workspace["branch"]))


def create(rig: Rig, workspace: Mapping[str, str]) -> None:
    place = Staging(workspace["repository"], workspace["branch"])
    rig.store.open_staging(place, workspace["ref"])


def broken(rig: Rig, workspace: Mapping[str, str]) -> None:
    """Have an action in A that is not ours."""
    repository, branch = workspace["repository"], workspace["branch"]
    text = render([branch]).replace("expected ~= found", "false")
    rig.store.put(repository, branch, KEY, text.encode())
    assert isinstance(workspace, dict)
    workspace["ref"] = rig.store.commit_branch(repository, branch, "tampered").id


Deed = Callable[[Rig, Mapping[str, str]], None]


@dataclass(frozen=True)
class Wrong:
    """Something that is wrong before the attempt publishes; ``right`` mends it."""

    what: str
    fence: str
    wrong: Deed
    reason: str
    right: Deed | None = None
    before: bool = False
    """Whether it is wrong from the beginning; otherwise from the middle of the body on."""
    step: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"servers/{self.what}/refused/merge-{self.fence}"


WRONGS = [
    *(Wrong("target dirty", fence, dirty, "uncommitted", clean) for fence in FENCES),
    *(Wrong("target deleted", fence, delete, "line", create) for fence in FENCES),
    Wrong("fence file missing", "hard", nothing, KEY, before=True),
    Wrong("fence file broken", "hard", broken, KEY, before=True),
]
WRONGS_CHOSEN = selected(WRONGS, lambda case: case.fence == "hard")


@pytest.mark.parametrize("case", WRONGS_CHOSEN, ids=str)
def test_refused(rig: Rig, case: Wrong) -> None:
    """V5, V9: it fails closed, says why, writes nothing; once it is right, the retry completes."""
    step = f"w{WRONGS.index(case)}"
    workspace = on_a_line(rig, step, fenced=case.fence == "hard" and not case.before)
    wrong = partial(case.wrong, rig, workspace)
    if case.before:
        injection.inject(case.what, wrong)
    params = {"path": str(rig.directory / step), "wait": not case.before}
    workflow = rig.start_workflow(f"{case.fence}_{rig.tag}", step, workspace, params)
    if not case.before:
        eventually(Path(rig.directory / f"{step}.begun").exists, "the body")
        injection.inject(case.what, wrong)
        Path(rig.directory / f"{step}.go").touch()
    ended = rig.ended(workflow, PATIENCE_SECONDS)
    assert ended["status"] == "FAILED"
    assert all(case.reason in task["reasonForIncompletion"] for task in ended["tasks"])
    assert rig.staging(workspace) == []
    if case.right is None:
        assert rig.head(workspace) == workspace["ref"]
        return
    case.right(rig, workspace)
    assert rig.head(workspace) == workspace["ref"]
    rig.ask("POST", workflow, "retry")
    again = rig.completed(workflow, PATIENCE_SECONDS)
    published = again["tasks"][-1]["outputData"]["workspace"]["ref"]
    assert rig.history(workspace) == [published]


@pytest.mark.parametrize(
    ("fence", "path"),
    [
        pytest.param(fence, path, id=f"servers/target protected/403/{path}-{fence}")
        for fence, path in PROTECTED
        if ALL or path == "replace"
    ],
)
def test_protected(rig: Rig, fence: str, path: str) -> None:
    """P9: lakeFS lets merges into a protected branch pass, and refuses to reset it."""
    step = PROTECTED[fence, path]
    workspace = on_a_line(rig, step, fenced=fence == "hard")
    injection.inject("target protected", lambda: protect(rig, workspace))
    eventually(lambda: _is_protected(rig, workspace), "a protected branch")
    params = {"path": str(rig.directory / step)}
    workflow = rig.start_workflow(f"{fence}_{rig.tag}", step, workspace, params)
    ended = rig.ended(workflow, PATIENCE_SECONDS)
    if path == "replace" and fence != "lineage":
        assert ended["status"] == "FAILED"
        reasons = [task["reasonForIncompletion"] for task in ended["tasks"][1:]]
        assert all("protected" in reason for reason in reasons), reasons
        abandoned = rig.history(workspace)
        assert len(abandoned) == 1
        unprotect(rig, workspace)
        eventually(lambda: not _is_protected(rig, workspace), "no protection")
        rig.ask("POST", workflow, "retry")
        ended = rig.completed(workflow, PATIENCE_SECONDS)
        assert rig.history(workspace) != abandoned
    published = ended["tasks"][-1]["outputData"]["workspace"]["ref"]
    assert rig.history(workspace)[0] == published
    assert len(rig.history(workspace)) == (2 if (fence, path) == ("lineage", "replace") else 1)
    assert rig.staging(workspace) == []


def _is_protected(rig: Rig, workspace: Mapping[str, str]) -> bool:
    repository, branch = workspace["repository"], workspace["branch"]
    try:
        ask(rig, repository, "PUT", "branches", branch, "hard_reset", query={"ref": branch})
    except PeragoError:
        return True
    return False


def on_a_line(rig: Rig, step: str, *, fenced: bool) -> dict[str, str]:
    """Give a workspace on a branch of its own: a default branch cannot be deleted."""
    workspace = rig.workspace(given(step)) | {"branch": "line"}
    create(rig, workspace)
    if fenced:
        workspace["ref"] = install_fence(rig.store, workspace["repository"], "line").head
    return workspace


# --- Conductor ------------------------------------------------------------------------------------


@dataclass
class Away:
    """Conductor is gone with this request for a while."""

    seconds: float
    applied: bool

    def meet(self, exchange: Exchange) -> None:
        if self.applied:
            exchange.forward()
        exchange.proxy.down()
        threading.Timer(self.seconds, exchange.proxy.up).start()


AWAY = [
    pytest.param(how, fence, id=f"servers/Conductor away at report/{how}/merge-{fence}")
    for how in ("not applied", "applied")
    for fence in FENCES
]
AWAY_SECONDS = 4.0
AT_REPORT = ("POST", r"/api/tasks$")


def _completes(seen: Seen) -> bool:
    return b'"COMPLETED"' in seen.body


def assert_reported_once(rig: Rig, begun: Begun, worker: Worker) -> None:
    """One attempt completed, and its worker is done with it."""
    assert rig.statuses(begun) == ["COMPLETED"]
    assert rig.findings(begun) == []
    eventually(lambda: not worker.state["running"], "the end of the attempt")
    assert worker.stop() == 0


@pytest.mark.parametrize(("how", "fence"), AWAY if ALL else AWAY[-1:])
def test_conductor_away_at_report(new_rig: NewRig, conductor: Proxy, how: str, fence: str) -> None:
    """P7, R2: the report waits for the engine as long as the lease lives; nothing is done twice."""
    rig = new_rig(math.ceil(scaled(20)), CONDUCTOR_SERVER_URL=f"{conductor.url}/api")
    worker = rig.work(1)
    away = Away(AWAY_SECONDS, how == "applied")
    rule = Rule(away, *AT_REPORT, where=_completes)
    with conductor.during(rule):
        begun = rig.begin("away", fence)
        rig.completed(begun.workflow_id, PATIENCE_SECONDS)
    assert rule.met == 1
    assert_reported_once(rig, begun, worker)


@pytest.fixture(scope="module")
def mortal_conductor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    """Give a Conductor that nobody else uses."""
    with start("engine", tmp_path_factory.mktemp("engine"), ["conductor"]) as instance:
        yield instance


REBORN = [
    pytest.param(how, fence, id=f"servers/Conductor restarted at report/{how}/merge-{fence}")
    for how in ("not applied", "applied")
    for fence in FENCES
]
REBORN_SECONDS = math.ceil(scaled(120))
"""The lease of these tasks: the server needs a while to come back."""


@pytest.mark.parametrize(("how", "fence"), REBORN if ALL else REBORN[2:3])
def test_conductor_restarted_at_report(
    tmp_path: Path, mortal_conductor: Instance, lakefs_server: LakeFSEndpoint, how: str, fence: str
) -> None:
    """P7, R2: an engine that dies with a report is asked again when it is back."""
    engine = mortal_conductor
    with Proxy(engine.conductor.url.removesuffix("/api")) as proxy:
        more = {
            "CONDUCTOR_SERVER_URL": f"{proxy.url}/api",
            "ACTS_COMPLETION": str(REBORN_SECONDS),
        }
        rig = Rig(
            tmp_path, engine.conductor, lakefs_server, response_seconds=REBORN_SECONDS, more=more
        )
        try:
            worker = rig.work(1)
            restart = Restart(engine, "conductor", how == "applied")
            rule = Rule(restart, *AT_REPORT, where=_completes)
            with proxy.during(rule):
                begun = rig.begin("reborn", fence)
                assert restart.over.wait(PATIENCE_SECONDS)
                rig.completed(begun.workflow_id, PATIENCE_SECONDS)
            assert rule.met == 1
            assert_reported_once(rig, begun, worker)
        finally:
            rig.close()


TERMINATED = "servers/workflow terminated in the body/cancelled/merge"


@pytest.mark.parametrize("fence", FENCES, ids=lambda fence: f"{TERMINATED}-{fence}")
def test_terminated_in_the_body(rig: Rig, fence: str) -> None:
    begun = rig.begin(f"t{fence}", fence, wait=True)
    eventually(Path(rig.directory / f"t{fence}.begun").exists, "the body")
    end = partial(rig.client.terminate, begun.workflow_id, "an operator")
    injection.inject("workflow terminated", end)
    eventually(Path(rig.directory / f"t{fence}.cancelled").exists, "the news", PATIENCE_SECONDS)
    assert rig.statuses(begun) == ["CANCELED"]
    eventually(lambda: rig.findings(begun) == [], "a clean end")
    assert rig.head(begun.workspace) == begun.a
