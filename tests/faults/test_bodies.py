"""What an author's code can do to us by accident (V1 to V9): the family ``bodies``.

Each case is a whole run with a real executor in namespaces of its own. Where the machine cannot do
what a body wants (mounts, attributes, devices), the case is skipped, which the report counts as
not survived.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from perago.dev import LakeFSEndpoint
from tests.faults.bodies.all_of_them import BODIES
from tests.faults.bodies.body import Body
from tests.faults.bodies.stage import Stage, offered
from tests.faults.bodies.worker import WorkerStage
from tests.faults.conftest import NewRig
from tests.faults.paths import ALL, selected
from tests.filesystems import KINDS, CannotMount, mounted

pytestmark = pytest.mark.timeout(700)


@dataclass(frozen=True)
class Case:
    body: Body
    store: str
    filesystem: str = "here"

    def __str__(self) -> str:
        return f"bodies/{self.body}/{self.filesystem}/{self.store}"


EMBEDDED = selected([Case(body, "embedded") for body in BODIES.values()], lambda c: c.body.quick)
ELSEWHERE = [
    Case(body, "embedded", kind)
    for kind in (KINDS if ALL else ())
    for body in BODIES.values()
    if body.everywhere
]
ON_A_WORKER = [Case(b, "conductor and lakefs") for b in BODIES.values() if ALL and b.worker]
LAKEFS = [Case(body, "lakefs") for body in BODIES.values()] if ALL else []


def play(stage: Stage, case: Case) -> None:
    if missing := case.body.needs - offered():
        pytest.skip(f"not run: this machine does not offer {', '.join(sorted(missing))}")
    findings = stage.play(case.body)
    assert not findings, "\n".join(findings)


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with closing(Stage(tmp_path_factory.mktemp("bodies"))) as stage:
        yield stage


@pytest.mark.parametrize("case", EMBEDDED, ids=str)
def test_on_the_embedded_store(embedded: Stage, case: Case) -> None:
    play(embedded, case)


@pytest.fixture(scope="module")
def on_lakefs(
    tmp_path_factory: pytest.TempPathFactory, lakefs_server: LakeFSEndpoint
) -> Iterator[Stage]:
    with closing(Stage(tmp_path_factory.mktemp("bodies"), lakefs_server)) as stage:
        yield stage


@pytest.mark.parametrize("case", LAKEFS, ids=str)
def test_on_lakefs(on_lakefs: Stage, case: Case) -> None:
    play(on_lakefs, case)


@pytest.fixture(scope="module")
def mounts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mounts]:
    """Mount a file system when the first case wants it, and unmount all with the module."""
    with ExitStack() as opened:
        yield Mounts(tmp_path_factory.mktemp("mounts"), opened)


class Mounts:
    def __init__(self, directory: Path, opened: ExitStack) -> None:
        self._directory = directory
        self._opened = opened
        self._stages: dict[str, Stage | str] = {}

    def stage(self, kind: str) -> Stage:
        if kind not in self._stages:
            try:
                root = self._opened.enter_context(mounted(kind, self._directory / kind))
            except CannotMount as error:
                self._stages[kind] = str(error)
            else:
                self._stages[kind] = self._opened.enter_context(closing(Stage(root)))
        found = self._stages[kind]
        if isinstance(found, str):
            pytest.skip(f"not run: no {kind} here: {found}")
        return found


@pytest.mark.parametrize("case", ELSEWHERE, ids=str)
def test_on_every_file_system(mounts: Mounts, case: Case) -> None:
    play(mounts.stage(case.filesystem), case)


@pytest.fixture(scope="module")
def worker(new_rig: NewRig) -> Iterator[WorkerStage]:
    stage = WorkerStage(new_rig(module="tests.faults.bodies.tasks"))
    yield stage
    assert stage.ended() == []


@pytest.mark.parametrize("case", ON_A_WORKER, ids=str)
def test_on_a_worker(worker: WorkerStage, case: Case) -> None:
    """Nothing an author does may end the worker: the same one meets body after body."""
    if missing := case.body.needs - offered():
        pytest.skip(f"not run: this machine does not offer {', '.join(sorted(missing))}")
    findings = worker.play(case.body)
    assert not findings, "\n".join(findings)
