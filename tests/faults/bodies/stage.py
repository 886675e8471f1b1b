"""Cases on a stage: runs with real executors, and what a checker finds after each.

A workflow of two steps runs in one executor: the hostile one, whose retry behaves, and a
well-behaved one. Everything that is found is a sentence that begins with the invariant.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perago.brokers.local import RunStatus, State
from perago.dev import LakeFSEndpoint
from perago.stores.embedded import EmbeddedStore
from tests import injection
from tests.environment import clean_environment
from tests.faults.bodies.body import BASE, Body
from tests.faults.bodies.checking import (
    BRANCH,
    AnyStore,
    Attempt,
    Published,
    did_it,
    outside,
    plant,
    secrets,
    statuses,
)
from tests.faults.bodies.cleaning import remove
from tests.lakefs_lab import ArrangedLakeFS, new_name
from tests.patience import LIMIT, Deadline, scaled

ROOT = Path(__file__).parents[3]
MODULE = "tests.faults.bodies.tasks"
CASE_SECONDS = scaled(300)
MEMORY_KB = 6 << 20
UNSHARE = ("unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child")


@functools.cache
def offered() -> frozenset[str]:
    """Find what this machine can do: namespaces, mounts, attributes, devices."""
    if os.geteuid() != 0:
        return frozenset()
    found = {"root"}
    probe = 'd=$(mktemp -d) && mount -t tmpfs tmpfs "$d" && umount "$d" && rmdir "$d"'
    if _works([*UNSHARE, "sh", "-c", probe]):
        found |= {"namespaces", "mounts"}
    if _works(["sh", "-c", 'd=$(mktemp -d) && mknod "$d/n" c 1 5; c=$?; rm -r "$d"; exit $c']):
        found.add("devices")
    attribute = 'f=$(mktemp) && chattr +i "$f" && chattr -i "$f"; c=$?; rm -f "$f"; exit $c'
    if _works(["sh", "-c", attribute]):
        found.add("attributes")
    return frozenset(found)


def _works(words: list[str]) -> bool:
    try:
        done = subprocess.run(words, check=False, capture_output=True, timeout=LIMIT)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


@dataclass
class Stage:
    """A directory, a home and a host that plays cases; a spoiled one is left and made anew."""

    directory: Path
    lakefs: LakeFSEndpoint | None = None
    _number: int = 0
    _cases: int = 0
    _host: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def place(self) -> Path:
        """Where the cases of this host are; the root of the attempts is below ``ground``."""
        return self.directory / f"stage-{self._number}"

    @property
    def home(self) -> Path:
        return self.place / "home"

    @property
    def secret(self) -> str:
        """A key of this worker, within reach of every body (V8)."""
        return self.lakefs.secret if self.lakefs else "canary-key-4f1d9b0c7e2a86d3"

    def play(self, body: Body) -> list[str]:
        """Play one case; nothing found means that all held."""
        self._cases += 1
        if body.interrupts:
            self._leave()  # A home of its own: the run is found by being the only one.
        case = Case(self, body, self.place / f"case-{self._cases}")
        case.arrange()
        self._perform(case)
        done = did_it(case.scratch)
        injection.expect(f"body: {body}", lambda: int(done))
        findings = list(case.findings())
        if any(found.startswith(("V5", "V7", "V8")) for found in findings):
            self._leave()  # The next case shall not suffer from this one.
        elif not findings:
            remove(case.scratch)
        return findings

    def close(self) -> None:
        self._leave()

    def _perform(self, case: Case) -> None:
        if case.body.interrupts:
            self._run_command(case)
            return
        if self._host is None:
            self._host = self._start()
        host = self._host
        assert host.stdin is not None
        try:
            host.stdin.write(json.dumps(case.spec()).encode() + b"\n")
            host.stdin.flush()
        except OSError:
            return
        deadline = Deadline(CASE_SECONDS)
        while not case.answered and host.poll() is None and not deadline.over:
            time.sleep(0.02)  # between two looks

    def _start(self) -> subprocess.Popen[bytes]:
        self.place.mkdir(parents=True, exist_ok=True)
        with (self.place / "host.log").open("ab") as log:
            return subprocess.Popen(
                _apart([sys.executable, "-m", "tests.faults.bodies.host", str(self.place)]),
                cwd=ROOT,
                env=self.environment(),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
            )

    def _run_command(self, case: Case) -> None:
        """Let ``perago run`` do it, which may be ended."""
        spec = case.scratch / "spec.json"
        words = ["flow.json", MODULE, "--input-file", "input.json", "-j", "1", "--json"]
        words += ["--store", "lakefs"] if self.lakefs else []
        (case.scratch / "flow.json").write_text(json.dumps(case.spec()["flow"]))
        (case.scratch / "input.json").write_text(json.dumps({"workspace": case.workspace}))
        root = str(self.place / "ground" / "rooms")
        given = {"scratch": str(case.scratch), "home": str(self.home), "root": root, "words": words}
        spec.write_text(json.dumps(given))
        with (self.place / "host.log").open("ab") as log:
            subprocess.run(
                _apart([sys.executable, "-m", "tests.faults.bodies.driver", str(spec)]),
                check=False,
                cwd=ROOT,
                env=self.environment(),
                stdout=log,
                stderr=log,
                timeout=CASE_SECONDS * 2,
            )

    def environment(self) -> dict[str, str]:
        lakefs = self.lakefs
        return {
            **clean_environment("COV_", "ACTS"),
            "PYTHONPATH": os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", ""))),
            "PERAGO_HOME": str(self.home),
            "PERAGO_WORKSPACE_ROOT": str(self.place / "ground" / "rooms"),
            "PERAGO_LOG_ROOT": str(self.place / "logs"),
            "PERAGO_CACHE_ROOT": str(self.place / "cache"),
            "LAKECTL_SERVER_ENDPOINT_URL": lakefs.endpoint if lakefs else "http://127.0.0.1:9",
            "LAKECTL_CREDENTIALS_ACCESS_KEY_ID": lakefs.access_key_id if lakefs else "canary",
            "LAKECTL_CREDENTIALS_SECRET_ACCESS_KEY": self.secret,
        }

    def store(self) -> AnyStore:
        if self.lakefs is not None:
            return ArrangedLakeFS(self.lakefs, self.directory / "lab")
        return EmbeddedStore(self.home / "store")

    def _leave(self) -> None:
        """End the host with everything in its namespaces, and begin anew somewhere else."""
        host, self._host = self._host, None
        if host is not None:
            host.kill()
            host.wait()
            with suppress(OSError):  # It may have ended with a line unread.
                host.stdin and host.stdin.close()
        self._number += 1


def _apart(words: Sequence[str]) -> list[str]:
    """Run something in namespaces of its own, with a ceiling for its memory."""
    limits = f'ulimit -c 0; ulimit -v {MEMORY_KB}; "$@"; exit $?'
    namespaces = UNSHARE if "namespaces" in offered() else ()
    return [*namespaces, "sh", "-c", limits, "sh", *words]


@dataclass
class Case:
    """One body on a stage."""

    stage: Stage
    body: Body
    scratch: Path
    workspace: dict[str, str] = field(default_factory=dict)
    began: float = field(default_factory=time.time)

    def arrange(self) -> None:
        plant(self.scratch, self.stage.secret)
        repository = new_name()
        store = self.stage.store()
        store.create_repository(repository)
        if isinstance(store, EmbeddedStore):
            store.put_all(repository, BRANCH, BASE)
        else:
            for key, content in BASE.items():
                store.put(repository, BRANCH, key, content)
        head = store.commit_branch(repository, BRANCH, "begin")
        store.close()
        self.workspace = {
            "repository": repository,
            "branch": BRANCH,
            "ref_type": "commit",
            "ref": head.id,
        }

    def spec(self) -> dict[str, Any]:
        return {
            "scratch": str(self.scratch),
            "store": "lakefs" if self.stage.lakefs else "embedded",
            "flow": flow(self.body, self.scratch, "local"),
            "input": {"workspace": self.workspace},
        }

    @property
    def answered(self) -> bool:
        return (self.scratch / "answer.json").exists()

    def findings(self) -> Iterator[str]:
        """Check everything; see :mod:`tests.faults.bodies.checking`."""
        place = self.stage.place
        yield from outside(self.body, self.scratch)
        written = [place / "home", place / "logs", place / "host.log", self.scratch / "said.log"]
        yield from secrets(written, self.stage.secret, self.began)
        if not self.answered:
            log = (place / "host.log").read_bytes()[-1500:].decode(errors="replace")
            yield f"V5: the process that runs the workflow ended or hangs: {log!a}"
            return
        said = json.loads((self.scratch / "answer.json").read_text())
        yield from said["problems"]
        if said["left"] and not (self.body.stays or self.body.renames):
            yield f"V7: attempt directories are left: {said['left']}"
        if said["stuck"] and not self.body.renames:
            yield f"V7: no sweep removes {said['stuck']}"
        with State(self.stage.home / "runs.sqlite") as state:
            run = state.run(said["run"])
            tasks = state.tasks(run.id)
        if run.status is not RunStatus.COMPLETED:
            yield f"V5: the run is {run.status}: {run.reason!a}"
        hostile, well = (
            [
                Attempt(task.status, task.reason, task.output)
                for task in tasks
                if task.reference_name == name and not task.lost
            ]
            for name in ("hostile", "well")
        )
        yield from statuses(self.body, hostile, well)
        store = self.stage.store()
        try:
            repository, base = self.workspace["repository"], self.workspace["ref"]
            yield from Published(store, repository, base, self.body).findings(hostile, well)
        finally:
            store.close()


def flow(body: Body, scratch: Path, tag: str) -> dict[str, Any]:
    """Describe the workflow of a case: the hostile step, and one that behaves on its output."""
    act = {"scratch": str(scratch)}
    hostile = {"body": body.name, "data": body.data, **act}
    return {
        "name": f"bodies_{tag}",
        "version": 1,
        "schemaVersion": 2,
        "ownerEmail": "tests@example.com",
        "timeoutSeconds": 0,
        "timeoutPolicy": "ALERT_ONLY",
        "tasks": [
            _step(f"{body.task}_{tag}", "hostile", "${workflow.input.workspace}", hostile),
            _step(f"write_{tag}", "well", "${hostile.output.workspace}", act),
        ],
    }


def _step(task: str, name: str, workspace: str, params: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": task,
        "taskReferenceName": name,
        "type": "SIMPLE",
        "inputParameters": {"workspace": workspace, "params": dict(params)},
    }
