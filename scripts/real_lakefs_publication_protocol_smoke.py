"""The publication protocol on a real lakeFS, path by path (source 004).

    python scripts/real_lakefs_publication_protocol_smoke.py --repo perago-smoke

Reads the lakeFS settings from the environment or from ``.env``. The repository has to exist
(``perago repo init perago-smoke``); in it each path makes a target branch of its own, and removes
it. One line per path; the exit code is 0 when all of them are as the protocol says.
"""  # noqa: INP001 - run from the checkout, not shipped

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from perago import WorkspaceSpec, task
from perago.app.engines import EngineFactory
from perago.app.local import lakefs_of
from perago.attempt.lifecycle import run_attempt
from perago.attempt.services import AttemptServices
from perago.clock import SystemClock
from perago.errors import PeragoError
from perago.history.event_log import AttemptJournal, EventLog
from perago.programs.running import ProgramRunner
from perago.protocol.outcome import Outcome
from perago.protocol.values import Attempt, Claim, WorkspaceInput
from perago.settings import load_settings
from perago.stores.lakefs.client import Ask
from perago.stores.lakefs.errors import Call
from perago.stores.lakefs.store import LakeFSStore
from perago.tasks.declaration import definition_of
from perago.testing import ScriptedBroker
from perago.transfer.wire import path_of
from perago.workspace.attempt_dirs import LocalAttemptDirs

PREFIX = "perago-smoke"
OWNER = "smoke@example.com"


class Text(BaseModel):
    """What to write."""

    text: str = ""


class Done(BaseModel):
    """Nothing to tell."""


@task(name="smoke_write", owner_email=OWNER, workspace=WorkspaceSpec(prefix=PREFIX))
def write(workspace: Path, params: Text) -> Done:
    """Change the workspace."""
    (workspace / "out.txt").write_text(params.text, encoding="utf-8")
    return Done()


@task(name="smoke_idle", owner_email=OWNER, workspace=WorkspaceSpec(prefix=PREFIX))
def idle(workspace: Path, params: Text) -> Done:  # noqa: ARG001 - a task takes them
    """Leave the workspace as it is."""
    return Done()


class BrokenPromiseError(Exception):
    """A path did not end as the protocol says."""


def demand(condition: object, otherwise: str) -> None:
    """Fail the path unless the condition holds."""
    if not condition:
        raise BrokenPromiseError(otherwise)


@dataclass(frozen=True)
class Target:
    """A branch of its own, at A."""

    smoke: Smoke
    branch: str
    a: str

    def attempt(self, body: Callable[..., object], text: str = "") -> Outcome:
        """Run one attempt on A: the whole lifecycle, the broker alone is scripted."""
        definition = definition_of(body)
        attempt = Attempt("smoke", str(uuid.uuid4()), 0, definition.name, definition.name, 1)
        workspace = WorkspaceInput(self.smoke.repository, self.branch, "commit", self.a)
        given = {"workspace": workspace.as_json(), "params": {"text": text}}
        claim = Claim(attempt, given, uuid.uuid4().hex)
        clock = SystemClock()
        services = AttemptServices(
            self.smoke.store,
            ScriptedBroker(),
            LocalAttemptDirs(self.smoke.directory / "rooms", "smoke", clock),
            clock,
            AttemptJournal(self.smoke.events, claim, clock),
            engines=EngineFactory(),
            programs=ProgramRunner(),
        )
        outcome = run_attempt(claim, definition, services)
        left = [name for name in self.smoke.branches() if name.endswith(claim.execution_id)]
        demand(not left, f"staging branch {left} is left")
        return outcome

    def publish(self, text: str) -> str:
        """Run an attempt that has to complete with a new commit; returns it."""
        outcome = self.attempt(write, text)
        demand(outcome.completed, outcome.reason)
        ref = ref_of(outcome)
        demand(ref != self.a, "nothing was published")
        return ref

    def put(self, key: str, content: bytes) -> None:
        """Leave an uncommitted change on the branch."""
        path = path_of("repositories", self.smoke.repository, "branches", self.branch, "objects")
        self.smoke.store.client.send("write object", path, {"path": key}, [content])

    def commit(self, message: str) -> str:
        """Commit what is on the branch."""
        path = path_of("repositories", self.smoke.repository, "branches", self.branch, "commits")
        ask = Ask("commit branch", "POST", path, Call.CREATE, body={"message": message})
        return str(self.smoke.store.client.ask(ask)["id"])

    def move_on(self) -> str:
        """Have somebody else commit twice, so that A is neither the head nor its parent."""
        self.put("foreign.txt", b"one")
        self.commit("foreign: one")
        self.put("foreign.txt", b"two")
        return self.commit("foreign: two")

    @property
    def history(self) -> list[str]:
        """Return the commits above A, newest first."""
        found: list[str] = []
        for commit in self.smoke.store.history(self.smoke.repository, self.branch):
            if commit.id == self.a:
                return found
            found.append(commit.id)
        raise BrokenPromiseError("the input is no longer in the history of the target")

    def demand_untouched(self, outcome: Outcome, head: str) -> None:
        """Demand a failure that left the branch where it was."""
        demand(not outcome.completed, "the attempt completed")
        demand("workspace" not in outcome.output, "a failed attempt has an output")
        found = self.smoke.store.head(self.smoke.repository, self.branch).id
        demand(found == head, f"the head moved from {head} to {found}")


def ref_of(outcome: Outcome) -> str:
    """Return the commit of an output."""
    workspace = outcome.output.get("workspace")
    return str(workspace["ref"]) if isinstance(workspace, dict) else ""


@dataclass(frozen=True)
class Smoke:
    """One run of this script."""

    store: LakeFSStore
    repository: str
    directory: Path
    events: EventLog

    @contextmanager
    def target(self) -> Iterator[Target]:
        """Make a target branch with a workspace on it, and remove it whatever happens."""
        branch = f"perago-smoke-{uuid.uuid4().hex[:12]}"
        path = path_of("repositories", self.repository)
        ask = Ask(f"read repository {self.repository}", "GET", path)
        default = self.store.client.ask(ask)["default_branch"]
        branches = path_of("repositories", self.repository, "branches")
        body = {"name": branch, "source": default}
        ask = Ask("create branch", "POST", branches, Call.CREATE, body=body, plain=True)
        self.store.client.ask(ask)
        try:
            empty = Target(self, branch, "")
            empty.put(f"{PREFIX}/in.txt", branch.encode())
            yield Target(self, branch, empty.commit("perago smoke: input"))
        finally:
            path = path_of("repositories", self.repository, "branches", branch)
            self.store.client.ask(Ask("delete branch", "DELETE", path, Call.PRIVATE))

    def branches(self) -> set[str]:
        """List the branches that are there now and are of attempts or of this script."""
        path = path_of("repositories", self.repository, "branches")
        query = {"prefix": "perago-", "show_hidden": True}
        what = f"list branches of {self.repository}"
        return {
            str(item["id"]) for item in self.store.client.pages(Ask(what, "GET", path, query=query))
        }


# --- the paths ------------------------------------------------------------------------------------


def merge(target: Target) -> None:
    """P1: H is A, a change is merged: A -> published."""
    published = target.publish("merged")
    demand(target.history == [published], f"history is {target.history}")


def replace(target: Target) -> None:
    """P2: the parent of H is A, H is replaced by a hard reset: A -> C, never A -> H -> C."""
    abandoned = target.publish("abandoned")
    published = target.publish("published")
    demand(target.history == [published], f"history is {target.history}")
    demand(abandoned != published, "nothing was replaced")


def refuse(target: Target) -> None:
    """P3: anything else fails closed, the head stays."""
    head = target.move_on()
    outcome = target.attempt(write, "late")
    target.demand_untouched(outcome, head)
    demand("start a new workflow" in outcome.reason, f"the reason is {outcome.reason!r}")


def keep(target: Target) -> None:
    """N1: no change on H = A completes with A and makes no commit."""
    outcome = target.attempt(idle)
    demand(outcome.completed, outcome.reason)
    demand(ref_of(outcome) == target.a, "the output is not A")
    demand(target.history == [], f"history is {target.history}")


def relocate(target: Target) -> None:
    """N2: no change on a child of A moves the target back to A."""
    target.publish("abandoned")
    keep(target)


def refuse_nothing(target: Target) -> None:
    """N3: no change on any other head fails closed, the head stays."""
    head = target.move_on()
    target.demand_untouched(target.attempt(idle), head)


def refuse_dirty_merge(target: Target) -> None:
    """P4: uncommitted changes on the target stop the merge, the head stays."""
    target.put("dirt.txt", b"uncommitted")
    target.demand_untouched(target.attempt(write, "on dirt"), target.a)


def refuse_dirty_reset(target: Target) -> None:
    """P4: uncommitted changes on the target stop the hard reset, the head stays."""
    abandoned = target.publish("abandoned")
    target.put("dirt.txt", b"uncommitted")
    target.demand_untouched(target.attempt(write, "on dirt"), abandoned)


PATHS = (
    merge,
    replace,
    refuse,
    keep,
    relocate,
    refuse_nothing,
    refuse_dirty_merge,
    refuse_dirty_reset,
)


def attempt(smoke: Smoke, path: Callable[[Target], None]) -> bool:
    """Go one path on a new target branch, and print how it ended."""
    what = (path.__doc__ or "").strip()
    try:
        with smoke.target() as target:
            path(target)
    except (BrokenPromiseError, PeragoError) as error:
        say(f"failed  {what}\n        {error}")
        return False
    say(f"ok      {what}")
    return True


def say(line: str) -> None:
    """Print a line now."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    """Go every path."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repo", default="perago-smoke", help="a repository that exists")
    repository = parser.parse_args().repo
    with tempfile.TemporaryDirectory(prefix="perago-smoke-") as directory:
        events = EventLog(Path(directory) / "events.sqlite")
        try:
            store = lakefs_of(load_settings(os.environ, Path.cwd()))
        except PeragoError as error:
            say(f"failed  {error}")
            return 1
        smoke = Smoke(store, repository, Path(directory), events)
        try:
            before = smoke.branches()
            done = [attempt(smoke, path) for path in PATHS]
            clean = smoke.branches() <= before
        except PeragoError as error:
            say(f"failed  {error}")
            return 1
        finally:
            events.close()
            store.close()
    good = sum(done)
    say(f"{'ok' if clean else 'failed':7} cleanup: no staging or target branch is left")
    say(f"{good} of {len(done)} paths are as the protocol says")
    return 0 if good == len(done) and clean else 1


if __name__ == "__main__":
    sys.exit(main())
