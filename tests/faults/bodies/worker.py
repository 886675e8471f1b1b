"""Cases on a whole worker: supervisor and executors on real Conductor and lakeFS."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests import injection
from tests.faults.bodies.body import BASE, Body
from tests.faults.bodies.checking import (
    Attempt,
    Published,
    did_it,
    outside,
    plant,
    secrets,
    statuses,
)
from tests.faults.bodies.cleaning import free, rooms_of
from tests.faults.bodies.stage import flow, offered
from tests.faults.rig import Rig
from tests.patience import Deadline, scaled
from tests.worker.stage import Worker

PATIENCE_SECONDS = scaled(200)
TIDY_SECONDS = scaled(30)
_APART = ("unshare", "--mount", "--propagation", "private")


class WorkerStage:
    """One worker that meets body after body; one that ends is a finding, and is replaced."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.root = rig.directory / "ground" / "rooms"
        self._cases = 0
        self._worker: Worker | None = None
        self._told: set[str] = set()
        self._renamed: set[str] = set()
        """What bodies have left that cannot be told to be Perago's: no sweep removes it."""

    def play(self, body: Body) -> list[str]:
        """Play one case; nothing found means that all held."""
        self._cases += 1
        scratch = self.rig.directory / f"case-{self._cases}"
        plant(scratch, self.rig.lakefs.secret)
        worker = self._worker = self._worker or self._start()
        began = time.time()
        workspace = self.rig.workspace(BASE)
        definition = flow(body, scratch, self.rig.tag)
        self.rig.client.put_workflows([definition])
        started = self.rig.client.start_workflow(definition["name"], {"workspace": workspace}, 1)
        try:
            execution = self.rig.ended(started, PATIENCE_SECONDS)
        except AssertionError:
            execution = self.rig.workflow(started)
        (scratch / "stop").touch()
        done = did_it(scratch)
        injection.expect(f"body: {body}", lambda: int(done))
        found = [*self._findings(body, scratch, workspace, execution, began)]
        free(self.root, scratch)
        if worker.process.poll() is not None:
            found.append(
                f"V5: the worker ended with {worker.process.poll()}: {worker.text()[-800:]!a}"
            )
            self._worker = None
        return found

    def _findings(
        self,
        body: Body,
        scratch: Path,
        workspace: dict[str, str],
        execution: dict[str, Any],
        began: float,
    ) -> Iterator[str]:
        if execution["status"] != "COMPLETED":
            yield f"V5: the workflow is {execution['status']}"
        hostile, well = (
            [
                Attempt(
                    task["status"],
                    task.get("reasonForIncompletion") or "",
                    task.get("outputData") or {},
                )
                for task in execution["tasks"]
                if task["referenceTaskName"] == name
            ]
            for name in ("hostile", "well")
        )
        yield from statuses(body, hostile, well)
        yield from self._left(body)
        yield from outside(body, scratch)
        places = [self.rig.directory / name for name in ("home", "logs")]
        places += self.rig.directory.glob("worker-*.log")
        yield from secrets(places, self.rig.lakefs.secret, began)
        if self.rig.lakefs.secret in str(execution["tasks"]):
            yield "V8: the key is in Conductor"
        repository, base = workspace["repository"], workspace["ref"]
        published = Published(self.rig.store, repository, base, body)
        yield from published.findings(hostile, well)

    def _left(self, body: Body) -> Iterator[str]:
        """Give the supervisor its time to remove what its executors left (W5, V7)."""
        goes = not (body.stays or body.renames)
        deadline = Deadline(TIDY_SECONDS)
        while (left := {*rooms_of(self.root)} - self._told) and goes and not deadline.over:
            time.sleep(0.1)  # between two looks
        self._told |= left
        if body.renames:
            self._renamed |= left
        if left and goes:
            yield f"V7: attempt directories are left: {sorted(left)}"

    def ended(self) -> list[str]:
        """End the worker as an operator does, and see what the start of the next one sweeps."""
        found = []
        if self._worker is not None and (code := self._worker.stop()) != 0:
            found.append(f"W6: the worker ended with {code}")
        worker = self._start()
        if code := worker.stop():
            found.append(f"W6: an idle worker ended with {code}")
        if left := {*rooms_of(self.root)} - self._renamed:
            found.append(f"V7: the sweep of a new worker leaves {sorted(left)}")
        return found

    def _start(self) -> Worker:
        """Start a worker whose mounts, and those of its bodies, are seen by itself only."""
        rig, wrapper = self.rig, _APART if "mounts" in offered() else ()
        log = rig.directory / f"worker-{len(rig.workers)}.log"
        settings = {"PERAGO_WORKSPACE_ROOT": str(self.root), "PERAGO_STUCK_AFTER": "20s"}
        with log.open("w") as stream:
            process = subprocess.Popen(
                [*wrapper, sys.executable, "-m", "perago", "start", rig.module, "-j", "1"],
                cwd=rig.directory,
                env=rig.environment(**settings),
                stdout=stream,
                stderr=subprocess.STDOUT,
            )
        worker = Worker(process, self.root, log)
        rig.workers.append(worker)
        rig.until_ready(worker)
        return worker
