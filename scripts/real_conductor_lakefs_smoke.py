"""A workflow on a real Conductor and a real lakeFS, from ``register`` to SIGTERM.

    python scripts/real_conductor_lakefs_smoke.py --repo perago-smoke

Reads the settings of both servers from the environment or from ``.env``. The repository has to
exist (``perago repo init perago-smoke``). Task and workflow definitions and the target branch have
names of their own, and are removed again. One line per step; the exit code is 0 when all is well.
"""  # noqa: INP001 - run from the checkout, not shipped

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dotenv import dotenv_values

from perago.app.local import conductor_of, lakefs_of
from perago.brokers.conductor import client as conductor
from perago.brokers.conductor.client import ConductorClient
from perago.brokers.conductor.errors import Call
from perago.errors import NotFoundError, PeragoError
from perago.settings import Settings, load_settings
from perago.stores.lakefs import admin
from perago.stores.lakefs import client as lakefs
from perago.stores.lakefs.errors import Call as StoreCall
from perago.stores.lakefs.store import LakeFSStore
from perago.transfer.wire import path_of

START_SECONDS = 60.0
END_SECONDS = 60.0
PREFIX = "perago-smoke"
TASKS = """
from pathlib import Path

from pydantic import BaseModel

from perago import TaskControls, TimeoutPolicy, WorkspaceSpec, require_file, task

OWNER = "smoke@example.com"
CONTROLS = TaskControls(timeout=TimeoutPolicy(seconds=600, response_seconds=120))


class Text(BaseModel):
    text: str = ""


class Size(BaseModel):
    size: int


@task(
    name="{name}_write",
    owner_email=OWNER,
    workspace=WorkspaceSpec(prefix="{prefix}", pre=[require_file("in.txt")]),
    controls=CONTROLS,
)
def write(workspace: Path, params: Text) -> Size:
    given = (workspace / "in.txt").read_text()
    (workspace / "out.txt").write_text(given + params.text)
    return Size(size=len(given + params.text))


@task(
    name="{name}_look",
    owner_email=OWNER,
    workspace=WorkspaceSpec(prefix="{prefix}", read_only=True, pre=[require_file("out.txt")]),
    controls=CONTROLS,
)
def look(workspace: Path, params: Text) -> Size:
    return Size(size=len((workspace / "out.txt").read_text()))


@task(name="{name}_double", owner_email=OWNER, controls=CONTROLS)
def double(params: Size) -> Size:
    return Size(size=2 * params.size)
"""


class BrokenPromiseError(Exception):
    """A step did not end as it should."""


def demand(condition: object, otherwise: str) -> None:
    """Fail the step unless the condition holds."""
    if not condition:
        raise BrokenPromiseError(otherwise)


def step(task: str, reference: str, given: Mapping[str, object]) -> dict[str, object]:
    """Write one step of the workflow."""
    return {
        "name": task,
        "taskReferenceName": reference,
        "type": "SIMPLE",
        "inputParameters": dict(given),
    }


@dataclass
class Smoke:
    """One run of this script, and what its steps have found so far."""

    settings: Settings
    client: ConductorClient
    store: LakeFSStore
    repository: str
    directory: Path
    environment: dict[str, str]
    name: str
    given: str = ""
    worker: subprocess.Popen[bytes] | None = None
    workflow_id: str = ""

    @property
    def log(self) -> Path:
        """Name the file with what the worker prints."""
        return self.directory / "worker.log"

    def perago(self, *arguments: str) -> Any:
        """Run a command where the tasks are; returns its JSON."""
        done = subprocess.run(  # noqa: S603 - our own interpreter
            [sys.executable, "-m", "perago", *arguments, "--json"],
            cwd=self.directory,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=START_SECONDS,
            check=False,
        )
        demand(done.returncode == 0, done.stderr.strip() or done.stdout.strip())
        return json.loads(done.stdout)

    def branches(self) -> set[str]:
        """List the branches of attempts and of this script."""
        path = path_of("repositories", self.repository, "branches")
        query = {"prefix": "perago-", "show_hidden": True}
        what = f"list branches of {self.repository}"
        ask = lakefs.Ask(what, "GET", path, query=query)
        return {str(item["id"]) for item in self.store.client.pages(ask)}

    def definition(self) -> dict[str, object]:
        """Write the workflow: two writers one behind the other, a reader, a task without files."""
        text = {"text": "${workflow.input.text}"}
        tasks = [
            step(f"{self.name}_write", "one",
                 {"workspace": "${workflow.input.workspace}", "params": text}),
            step(f"{self.name}_write", "two",
                 {"workspace": "${one.output.workspace}", "params": {"text": "two"}}),
            step(f"{self.name}_look", "look",
                 {"workspace": "${two.output.workspace}", "params": {}}),
            step(f"{self.name}_double", "double",
                 {"params": {"size": "${look.output.result.size}"}}),
        ]  # fmt: skip
        return {
            "name": self.name,
            "version": 1,
            "schemaVersion": 2,
            "ownerEmail": "smoke@example.com",
            "tasks": tasks,
            "outputParameters": {
                "workspace": "${look.output.workspace}",
                "size": "${double.output.result.size}",
            },
        }

    @contextmanager
    def target(self) -> Iterator[None]:
        """Make a target branch with a workspace on it, and remove it whatever happens."""
        repository = path_of("repositories", self.repository)
        branches = path_of("repositories", self.repository, "branches")
        own = path_of("repositories", self.repository, "branches", self.name)
        ask, send = self.store.client.ask, self.store.client.send
        found = ask(lakefs.Ask(f"read repository {self.repository}", "GET", repository))
        body = {"name": self.name, "source": found["default_branch"]}
        what = "create branch"
        ask(lakefs.Ask(what, "POST", branches, StoreCall.CREATE, body=body, plain=True))
        try:
            send("write object", f"{own}/objects", {"path": f"{PREFIX}/in.txt"}, [b"given "])
            body = {"message": "perago smoke: input"}
            what = "commit branch"
            done = ask(lakefs.Ask(what, "POST", f"{own}/commits", StoreCall.CREATE, body=body))
            self.given = str(done["id"])
            yield
        finally:
            ask(lakefs.Ask("delete branch", "DELETE", own, StoreCall.PRIVATE))

    @contextmanager
    def definitions(self) -> Iterator[None]:
        """Remove the definitions from Conductor whatever happens."""
        try:
            yield
        finally:
            self.forget("metadata", "workflow", self.name, "1")
            for task in ("write", "look", "double"):
                self.forget("metadata", "taskdefs", f"{self.name}_{task}")

    def forget(self, *parts: str) -> None:
        """Remove a definition that may not be there."""
        path = path_of(*parts)
        ask = conductor.Ask("delete definition", "DELETE", path, Call.SAME, plain=True)
        with suppress(NotFoundError):
            self.client.ask(ask)

    @contextmanager
    def no_worker_left(self) -> Iterator[None]:
        """End the worker whatever happens."""
        try:
            yield
        finally:
            if self.worker is not None and self.worker.poll() is None:
                self.worker.kill()
                self.worker.wait(END_SECONDS)


# --- the steps ------------------------------------------------------------------------------------


def reach(smoke: Smoke) -> str:
    """Reach both servers."""
    demand(smoke.client.health(), "Conductor says it is ill")
    store = admin.version(smoke.store.client)
    return f"Conductor {smoke.client.version() or 'unknown'}, lakeFS {store}"


def register(smoke: Smoke) -> str:
    """W1: register tasks and workflow; the second time there is nothing to do."""
    text = TASKS.replace("{name}", smoke.name).replace("{prefix}", PREFIX)
    (smoke.directory / "steps.py").write_text(text, encoding="utf-8")
    (smoke.directory / "flow.json").write_text(json.dumps(smoke.definition()), encoding="utf-8")
    for state in ("new", "same"):
        found = smoke.perago("register", "steps", "flow.json")["definitions"]
        states = {each["state"] for each in found}
        demand(states == {state}, f"expected {state}, found {states}")
    return "tasks and workflow"


def start(smoke: Smoke) -> str:
    """W2: start a worker of two executors, and a workflow."""
    command = [sys.executable, "-m", "perago", "start", "steps", "-j", "2"]
    with smoke.log.open("wb") as log:
        smoke.worker = subprocess.Popen(  # noqa: S603 - our own interpreter
            command, cwd=smoke.directory, env=smoke.environment, stdout=log, stderr=log
        )
    workspace = {
        "repository": smoke.repository,
        "branch": smoke.name,
        "ref_type": "commit",
        "ref": smoke.given,
    }
    given = {"workspace": workspace, "text": "one"}
    smoke.workflow_id = smoke.client.start_workflow(smoke.name, given, 1)
    return smoke.workflow_id


def complete(smoke: Smoke) -> str:
    """G1: the workflow completes, every task at its first attempt."""
    began = time.monotonic()
    execution: dict[str, Any] = {}
    while time.monotonic() - began < START_SECONDS + END_SECONDS:
        execution = smoke.client.execution(smoke.workflow_id) or {}
        if execution.get("status") != "RUNNING":
            break
        alive = smoke.worker is not None and smoke.worker.poll() is None
        demand(alive, f"the worker ended: {_last_words(smoke.log)}")
        time.sleep(0.2)
    tasks = execution.get("tasks", [])
    told = [f"{task['referenceTaskName']} {task['status']}" for task in tasks]
    demand(execution.get("status") == "COMPLETED", f"{execution.get('status')}: {told}")
    demand(len(tasks) == 4, f"there were retries: {told}")  # noqa: PLR2004 - as written above
    size = execution["output"].get("size")
    demand(size == 2 * len("given two"), f"the output is {execution['output']}")
    return f"{time.monotonic() - began:.1f} s"


def publish(smoke: Smoke) -> str:
    """V2: the branch is at the output, which holds the result: A -> one -> two."""
    execution = smoke.client.execution(smoke.workflow_id) or {}
    ref = str(execution["output"]["workspace"]["ref"])
    history: list[str] = []
    for commit in smoke.store.history(smoke.repository, smoke.name):
        if commit.id == smoke.given:
            break
        history.append(commit.id)
    demand(history[:1] == [ref], f"the head is {history[:1]}, the output {ref}")
    demand(len(history) == 2, f"above the input are {history}")  # noqa: PLR2004 - two writers
    path = path_of("repositories", smoke.repository, "refs", ref, "objects")
    with smoke.store.client.body("read object", path, {"path": f"{PREFIX}/out.txt"}) as answer:
        demand(answer.read() == b"given two", "out.txt is not what was written")
    return ref[:12]


def stop(smoke: Smoke) -> str:
    """W6: SIGTERM ends the worker."""
    if smoke.worker is None:
        raise BrokenPromiseError("there is no worker")
    began = time.monotonic()
    smoke.worker.send_signal(signal.SIGTERM)
    try:
        code = smoke.worker.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        raise BrokenPromiseError(f"it runs after {END_SECONDS:.0f} s") from None
    demand(code == 0, f"exit code {code}: {_last_words(smoke.log)}")
    store, broker = smoke.settings.lakefs, smoke.settings.conductor
    secrets = [store.secret_access_key if store else None, broker.auth_secret if broker else None]
    logs = [path for path in smoke.directory.rglob("*") if path.suffix in {".log", ".jsonl"}]
    for secret in filter(None, secrets):
        leaky = [path.name for path in logs if str(secret).encode() in path.read_bytes()]
        demand(not leaky, f"V8: a secret is in {leaky}")
    return f"{time.monotonic() - began:.1f} s"


def leave_nothing(smoke: Smoke) -> str:
    """V7: neither a staging branch nor an attempt directory is left."""
    left = {name for name in smoke.branches() if smoke.workflow_id in name}
    demand(not left, f"branches {left}")
    root = smoke.directory / "rooms"
    attempt_dirs = [path.name for path in root.iterdir() if path.is_dir()] if root.is_dir() else []
    demand(not attempt_dirs, f"directories {attempt_dirs}")
    return ""


STEPS = (reach, register, start, complete, publish, stop, leave_nothing)


def _last_words(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
    return lines[-1] if lines else "it said nothing"


def attempt(smoke: Smoke, go: Callable[[Smoke], str]) -> bool:
    """Do one step, and print how it ended."""
    what = (go.__doc__ or "").strip()
    try:
        found = go(smoke)
    except (BrokenPromiseError, PeragoError, subprocess.TimeoutExpired) as error:
        say(f"failed  {what}\n        {error}")
        return False
    say(f"ok      {what}" + (f" ({found})" if found else ""))
    return True


def say(line: str) -> None:
    """Print a line now."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def environment_of(directory: Path) -> dict[str, str]:
    """Give the commands the same servers, and places of their own."""
    dotenv = dotenv_values(Path.cwd() / ".env")
    return {
        **{key: value for key, value in dotenv.items() if value is not None},
        **os.environ,
        "PERAGO_HOME": str(directory / "home"),
        "PERAGO_WORKSPACE_ROOT": str(directory / "rooms"),
        "PERAGO_LOG_ROOT": str(directory / "logs"),
        "PERAGO_CACHE_ROOT": str(directory / "cache"),
    }


def main() -> int:
    """Go step by step; what was made is removed, whatever happened."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repo", default="perago-smoke", help="a repository that exists")
    repository = parser.parse_args().repo
    good = 0
    with tempfile.TemporaryDirectory(prefix="perago-smoke-") as place, ExitStack() as undo:
        directory = Path(place)
        try:
            settings = load_settings(os.environ, Path.cwd())
            client, store = conductor_of(settings), lakefs_of(settings)
            undo.callback(client.close)
            undo.callback(store.close)
            name = f"perago-smoke-{uuid.uuid4().hex[:12]}"
            environment = environment_of(directory)
            smoke = Smoke(settings, client, store, repository, directory, environment, name)
            with smoke.target(), smoke.definitions(), smoke.no_worker_left():
                for go in STEPS:
                    if not attempt(smoke, go):
                        break
                    good += 1
            clean = name not in smoke.branches() and client.workflow(name, 1) is None
        except PeragoError as error:
            say(f"failed  {error}")
            return 1
    say(f"{'ok' if clean else 'failed':7} cleanup: target branch and definitions are gone")
    say(f"{good} of {len(STEPS)} steps are well")
    return 0 if good == len(STEPS) and clean else 1


if __name__ == "__main__":
    sys.exit(main())
