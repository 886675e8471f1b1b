"""Proof that the hard fence holds: per repository by trying it, per commit by reading it (K3)."""

from __future__ import annotations

import math
import threading
import time
import uuid
from contextlib import suppress

from perago.errors import LostRaceError, NotFoundError, RuntimeConfigError, StoreError
from perago.protocol.values import WorkspaceInput
from perago.stores.lakefs.action import KEY, PROBE, refuse_action
from perago.stores.lakefs.client import Ask, LakeFSClient
from perago.stores.lakefs.errors import Call
from perago.stores.lakefs.moves import merge
from perago.transfer.wire import path_of

NOWHERE = "0" * 64
_ACTION_BYTES = 1 << 16


class FenceProof:
    """What one process has seen to hold. Only what holds is remembered."""

    def __init__(self, client: LakeFSClient) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._tried: set[str] = set()

    def prove(self, workspace: WorkspaceInput) -> None:
        """Make sure that a publication made from this commit will be fenced on this branch."""
        repository, ref = workspace.repository, workspace.ref
        self.covers(repository, ref, workspace.branch)
        with self._lock:
            if repository not in self._tried:
                self._try(repository, ref)
                self._tried.add(repository)

    def covers(self, repository: str, ref: str, branch: str) -> None:
        """Refuse a source of merges that does not carry the action as it was installed."""
        problem = refuse_action(self.action(repository, ref), branch)
        if problem:
            raise RuntimeConfigError(
                f"fence 'hard' does not hold on branch {branch!r} of {repository!r}: "
                f"{problem} in commit {ref}",
                remedy=f"run 'perago repo init --fence hard {repository} --branch {branch}',"
                " then start from the new head of the branch",
            )

    def action(self, repository: str, ref: str) -> str | None:
        """Read the action at a commit; None when there is none."""
        path = path_of("repositories", repository, "refs", ref, "objects")
        try:
            with self._client.body(f"read object {KEY}", path, {"path": KEY}) as answer:
                return answer.read(_ACTION_BYTES).decode(errors="replace")
        except NotFoundError:
            # Whoever asks with a commit that is not there must hear of that instead.
            commit = path_of("repositories", repository, "commits", ref)
            self._client.ask(Ask(f"read commit {ref} of {repository}", "GET", commit))
            return None

    def _try(self, repository: str, ref: str) -> None:
        """On a scratch branch, a merge that expects another head must not land; a good one must."""
        scratch = scratch_name()
        with Scratch(self._client, repository, scratch, ref):
            try:
                self._merge(repository, ref, scratch, NOWHERE)
            except LostRaceError:
                pass
            else:
                raise RuntimeConfigError(
                    f"fence 'hard' does not hold in {repository!r}: the server merged without"
                    " running the action",
                    remedy="switch hooks on in the lakeFS server (actions.enabled)",
                )
            try:
                self._merge(repository, ref, scratch, ref)
            except LostRaceError as error:
                raise RuntimeConfigError(
                    f"fence 'hard' cannot be tried in {repository!r}: {error.message}",
                    remedy=f"let the other actions of the repository leave {PROBE}* alone",
                ) from None

    def _merge(self, repository: str, source: str, branch: str, expected: str) -> None:
        said = {"perago.expected_head": expected}
        body = {"message": "perago probe", "metadata": said, "allow_empty": True}
        body["squash_merge"] = True
        self._client.ask(merge(repository, source, branch, body))


class Scratch:
    """A branch for a moment."""

    def __init__(self, client: LakeFSClient, repository: str, name: str, ref: str) -> None:
        self._client = client
        self._repository = repository
        self._name = name
        self._ref = ref

    def __enter__(self) -> str:
        path = path_of("repositories", self._repository, "branches")
        body = {"name": self._name, "source": self._ref, "hidden": True}
        ask = Ask("create branch", "POST", path, Call.CREATE, body=body, plain=True)
        try:
            self._client.ask(ask)
        except BaseException:
            self.__exit__()
            raise
        return self._name

    def __exit__(self, *_: object) -> None:
        path = path_of("repositories", self._repository, "branches", self._name)
        with suppress(StoreError):  # 'perago gc' finds it by its name.
            self._client.ask(Ask("delete branch", "DELETE", path, Call.PRIVATE))


def scratch_name() -> str:
    """Name a scratch branch; the time in it tells when it has been forgotten."""
    return f"{PROBE}{int(time.time())}-{uuid.uuid4().hex[:12]}"


def probed_at(name: str) -> float:
    """Read when a scratch branch was made; a name that is none of ours was made just now."""
    made = name.removeprefix(PROBE).partition("-")[0]
    return float(made) if made.isdecimal() else math.inf
