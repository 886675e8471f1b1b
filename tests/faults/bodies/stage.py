"""Cases on a stage: runs with real executors, and what a checker finds after each.

A workflow of two steps runs in one executor: the hostile one, whose retry behaves, and a
well-behaved one. Everything that is found is a sentence that begins with the invariant.
"""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perago.brokers.local import RunStatus, State
from perago.brokers.local.records import RunRecord, TaskRecord
from perago.dev import LakeFSEndpoint
from perago.protocol.values import Phase
from perago.stores.embedded import EmbeddedStore
from tests.faults.bodies import canary
from tests.faults.bodies.body import BASE, COMPLETED, Body, Tree, ordinary
from tests.faults.bodies.cleaning import remove
from tests.lakefs_lab import ArrangedLakeFS, new_name

ROOT = Path(__file__).parents[3]
BRANCH = "main"
MODULE = "tests.faults.bodies.tasks"
FOREIGN = ("PERAGO_", "LAKECTL_", "CONDUCTOR_", "PYTEST_", "OTEL_", "COV_", "ACTS")
CASE_SECONDS = 300.0
MEMORY_KB = 6 << 20
DOCUMENTED = (*(f"{phase}:" for phase in Phase), "executor", "timeoutSeconds")
WELL: Tree = {"data/well.txt": b"well\n"}
UNSHARE = ("unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child")
AnyStore = EmbeddedStore | ArrangedLakeFS


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
        done = subprocess.run(words, check=False, capture_output=True, timeout=30)
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
        findings = list(case.findings())
        if findings:
            self._leave()
        else:
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
        deadline = time.monotonic() + CASE_SECONDS
        while not case.answered and host.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)

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
        (case.scratch / "flow.json").write_text(json.dumps(case.flow()))
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
        own = {key: text for key, text in os.environ.items() if not key.startswith(FOREIGN)}
        lakefs = self.lakefs
        return {
            **own,
            "PYTHONPATH": str(ROOT),
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

    # --- before -----------------------------------------------------------------------------------

    def arrange(self) -> None:
        self.scratch.mkdir(parents=True)
        canary.plant(self.scratch / "outside")
        beside = self.scratch.parent / "ground" / "beside"
        if not beside.exists():
            canary.plant(beside)
        (self.scratch / "secret").write_text(self.stage.secret)
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

    @property
    def repository(self) -> str:
        return self.workspace["repository"]

    def flow(self) -> dict[str, Any]:
        act = {"scratch": str(self.scratch)}
        hostile = {"body": self.body.name, "data": self.body.data, **act}
        return {
            "name": "bodies",
            "version": 1,
            "schemaVersion": 2,
            "tasks": [
                _step(f"{self.body.task}_local", "hostile", "${workflow.input.workspace}", hostile),
                _step("write_local", "well", "${hostile.output.workspace}", act),
            ],
        }

    def spec(self) -> dict[str, Any]:
        return {
            "scratch": str(self.scratch),
            "store": "lakefs" if self.stage.lakefs else "embedded",
            "flow": self.flow(),
            "input": {"workspace": self.workspace},
        }

    @property
    def answered(self) -> bool:
        return (self.scratch / "answer.json").exists()

    # --- after ------------------------------------------------------------------------------------

    def findings(self) -> Iterator[str]:
        yield from self._canary()
        yield from self._secrets()
        if not self.answered:
            log = (self.stage.place / "host.log").read_bytes()[-1500:].decode(errors="replace")
            yield f"V5: the process that runs the workflow ended or hangs: {log!a}"
            return
        said = json.loads((self.scratch / "answer.json").read_text())
        yield from said["problems"]
        if said["left"] and not self.body.stays:
            yield f"V7: attempt directories are left: {said['left']}"
        if said["stuck"]:
            yield f"V7: no sweep removes {said['stuck']}"
        with State(self.stage.home / "runs.sqlite") as state:
            run = state.run(said["run"])
            tasks = state.tasks(run.id)
        yield from self._ended(run, tasks)

    def _ended(self, run: RunRecord, tasks: Sequence[TaskRecord]) -> Iterator[str]:
        if run.status is not RunStatus.COMPLETED:
            yield f"V5: the run is {run.status}: {run.reason!a}"
        hostile = [task for task in tasks if task.reference_name == "hostile"]
        well = [task for task in tasks if task.reference_name == "well"]
        if not hostile:
            yield "V5: the hostile step was never scheduled"
            return
        yield from self._statuses(hostile, well)
        store = self.stage.store()
        try:
            yield from self._published(store, hostile, well)
            branches = [found.name for found in store.branches(self.repository, hidden=True)]
            if staging := sorted({*branches} - {BRANCH}):
                yield f"V7: branches are left: {staging}"
        finally:
            store.close()

    def _canary(self) -> Iterator[str]:
        """Look whether everything outside is as it was (V6)."""
        try:
            before = json.loads((self.scratch / "before.json").read_text())
        except (OSError, ValueError):
            yield "V5: the body was never run"
            return
        seen = [*before.items()]
        watched = self.scratch / "watched.jsonl"
        if watched.exists():
            seen += [json.loads(line) for line in watched.read_text().splitlines()]
        for place, snapshot in seen:
            now, shown = canary.snapshot(Path(place)), Path(place).name
            if shown == "neighbour":  # A sweep has to look into it to see that it is not ours.
                snapshot[""]["atime"] = now.get("", {}).get("atime")
            changes = list(canary.differences(snapshot, now, loose=self.body.loose))
            yield from (f"V6: outside, {shown}: {change}" for change in changes[:3])
            if len(changes) > 3:
                yield f"V6: outside, {shown}: {len(changes) - 3} more differences"

    def _statuses(self, hostile: list[TaskRecord], well: list[TaskRecord]) -> Iterator[str]:
        """Look at the documented statuses and reasons (V9), and whether it could go on (V5)."""
        first, *later = hostile
        if not self.body.interrupts:
            if first.status not in self.body.statuses:
                wanted = " or ".join(sorted(self.body.statuses))
                yield f"V9: {first.status} instead of {wanted}: {first.reason!a}"
            elif first.status != COMPLETED and not re.search(self.body.reason, first.reason):
                yield f"V9: the reason does not say {self.body.reason!r}: {first.reason!a}"
        for task in hostile:
            if task.status == "FAILED" and not task.lost:
                yield from one_reason(task.reason)
        for task in [*later, *well]:
            if task.status != COMPLETED and not task.lost:
                yield f"V5: {task.reference_name}, which behaves, is {task.status}: {task.reason!a}"

    def _published(
        self, store: AnyStore, hostile: list[TaskRecord], well: list[TaskRecord]
    ) -> Iterator[str]:
        """Compare history and trees with what must be there, byte by byte (V1, V2, V4)."""
        base, tree = self.workspace["ref"], dict(BASE)
        steps: list[tuple[str, Tree, bool]] = []
        for task in hostile:
            if task.status == COMPLETED:
                by_deed = _result(task)["run"] == 0
                if self.body.task != "look":
                    tree = ordinary(tree)
                    tree = {**self.body.tree(tree)} if by_deed else tree
                steps.append((_ref(task), dict(tree), by_deed))
        by_deed = bool(steps) and steps[-1][2]
        steps += [(_ref(task), {**tree, **WELL}, by_deed) for task in well if task.output]
        history = [commit.id for commit in store.history(self.repository, BRANCH)]
        if base not in history:
            yield "V1: the input is no longer on the target's history"
            return
        wanted = list(dict.fromkeys([base, *(ref for ref, _, _ in steps)]))[::-1]
        if history[: history.index(base) + 1] != wanted:
            yield f"V1: the history is {history[: history.index(base) + 1]}, not {wanted}"
        for ref, wanted_tree, by_deed in steps:
            yield from (
                f"V2: in {ref[:8]}: {problem}"
                for problem in self._differences(store, ref, wanted_tree, by_deed=by_deed)
            )

    def _differences(
        self, store: AnyStore, ref: str, tree: Tree, *, by_deed: bool
    ) -> Iterator[str]:
        found = {info.key: info.size for info in store.listing(self.repository, ref, "")}
        for key in sorted(tree.keys() - found.keys())[:5]:
            yield f"{key!a} is missing"
        for key in sorted(found):
            if key in tree and found[key] != len(tree[key]):
                yield f"{key!a} has {found[key]} bytes instead of {len(tree[key])}"
                continue
            if self.stage.lakefs and len(found) > 1000 and key.startswith("data/n/"):
                continue  # Sizes will do for ten thousand small ones.
            with store.open_object(self.repository, ref, key) as file:
                content = file.read()
            if key in tree and content != tree[key]:
                yield f"{key!a} has other bytes"
            elif key not in tree and not (
                by_deed and self.body.valid and self.body.valid(key, content)
            ):
                yield f"{key!a} should not be there"

    def _secrets(self) -> Iterator[str]:
        """Look for the key in everything that was written since (V8)."""
        secret, place = self.stage.secret.encode(), self.stage.place
        written = [path for name in ("home", "logs") for path in (place / name).rglob("*")]
        for path in [*written, place / "host.log", self.scratch / "said.log"]:
            if not path.is_file() or path.stat().st_mtime < self.began - 1:
                continue
            if secret in path.read_bytes():
                yield f"V8: the key is in {path.relative_to(place)}"


def _step(task: str, name: str, workspace: str, params: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": task,
        "taskReferenceName": name,
        "type": "SIMPLE",
        "inputParameters": {"workspace": workspace, "params": dict(params)},
    }


def _ref(task: TaskRecord) -> str:
    return str(task.output["workspace"]["ref"])  # type: ignore[index]


def _result(task: TaskRecord) -> Mapping[str, Any]:
    found = task.output["result"]
    assert isinstance(found, Mapping)
    return found


def one_reason(reason: str) -> Iterator[str]:
    """Find what keeps a reason from being one clear sentence (R1)."""
    if not reason.startswith(DOCUMENTED):
        yield f"V9: the reason does not begin with a phase: {reason!a}"
    elif "\n" in reason or "Traceback" in reason:
        yield f"V9: the reason is not one line: {reason!a}"
    elif len(reason) > 500:
        yield f"V9: the reason has {len(reason)} characters"
