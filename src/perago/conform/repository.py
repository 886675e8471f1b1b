"""The lakeFS side of a case: branches with known content, planted commits, and what is there after.

A branch of its own for every case, in a repository of its own. Its first content holds an action
that does nothing: lakeFS then writes down every commit, merge and branch that anyone makes.
"""

from __future__ import annotations

import hashlib
import time
import uuid
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from perago.errors import AlreadyExistsError, NotFoundError, StoreError, UsageError
from perago.protocol.evidence import JournalEntry, Tree
from perago.protocol.kinds import FenceKind
from perago.protocol.paths import ACTIONS
from perago.protocol.values import Commit, WorkspaceInput
from perago.stores.lakefs import moves
from perago.stores.lakefs.admin import create_repository, default_branch
from perago.stores.lakefs.client import Ask
from perago.stores.lakefs.errors import Call
from perago.stores.lakefs.installing import install_fence
from perago.stores.lakefs.store import LakeFSStore
from perago.transfer.wire import path_of

FILES: Final[Mapping[str, str]] = {
    "keep.txt": "this file is kept\n",
    "change.txt": "this file is changed\n",
    "remove.txt": "this file is removed\n",
    "deep/er/keep.txt": "so is this one kept\n",
    "folder/": "",
}
"""Below the prefix at A; the last one is a directory marker, which is not a file (D2)."""
_JOURNAL: Final = """\
name: perago_conform_journal
description: does nothing, so that the server lists what was done
on:
  pre-commit:
  pre-merge:
  post-create-branch:
  post-delete-branch:
hooks:
  - id: journal
    type: lua
    properties:
      script: |
        local branch = action.branch_id
"""
_COMMITTING: Final = frozenset({"pre-commit", "pre-merge"})
_MOST_COMMITS: Final = 100
_CONNECTIONS: Final = 8
_SETTLE_SECONDS: Final = 3.0
_PAUSE_SECONDS: Final = 0.05


@dataclass
class CaseRepository:
    """One repository, and what was done there on purpose."""

    store: LakeFSStore
    name: str
    prefix: str
    """As it stands in keys: empty, or ending in ``/``."""
    fence: FenceKind
    made: set[str] = field(default_factory=set)
    """Commits of our own."""
    branches: set[str] = field(default_factory=set)
    """Branches of our own."""
    run: str = field(default_factory=lambda: uuid.uuid4().hex[:8])

    def prepare(self) -> None:
        """Have the repository."""
        try:
            create_repository(self.store.client, self.name, None, "main")
        except AlreadyExistsError:
            return
        except UsageError as error:
            raise UsageError(
                error.message,
                remedy="name another one with --repo, or make it with: "
                "perago repo init NAME --storage PLACE",
            ) from None

    def branch(
        self, case: str, more: Mapping[str, str] | None = None, *, fenced: bool = True
    ) -> WorkspaceInput:
        """Make the target of a case; its head is A. ``more`` are files below the prefix."""
        branch = f"conform-{self.run}-{len(self.branches)}-{case.replace(' ', '-')}"
        root = self.store.head(self.name, default_branch(self.store.client, self.name))
        self.fork(branch, root.id)
        files = {f"{self.prefix}{key}": text for key, text in {**FILES, **(more or {})}.items()}
        files[f"{ACTIONS}/perago_conform.yaml"] = _JOURNAL
        if self.prefix:  # A prefix "ws" is not the beginning of "ws2" (D1).
            files |= {f"{self.prefix[:-1]}2/near.txt": "near\n", "elsewhere.txt": "elsewhere\n"}
        at = self.commit(branch, files, {}).id
        if self.fence == "hard" and fenced:
            at = install_fence(self.store, self.name, branch).head
        return WorkspaceInput(self.name, branch, "commit", at)

    def commit(self, branch: str, files: Mapping[str, str], metadata: Mapping[str, str]) -> Commit:
        """Write and commit on a branch directly, as no worker may."""
        self.put(branch, files)
        path = path_of("repositories", self.name, "branches", branch, "commits")
        body = {"message": "perago conform", "metadata": dict(metadata)}
        ask = Ask("commit", "POST", path, Call.CREATE, body=body)
        return self._own(str(self.store.client.ask(ask)["id"]))

    def put(self, branch: str, files: Mapping[str, str]) -> None:
        """Write on a branch without a commit."""
        path = path_of("repositories", self.name, "branches", branch, "objects")

        def send(item: tuple[str, str]) -> None:
            key, text = item
            parts = [text.encode()] if text else []
            self.store.client.send(f"write {key}", path, {"path": key}, parts)

        with ThreadPoolExecutor(_CONNECTIONS) as pool:
            list(pool.map(send, files.items()))

    def fork(self, branch: str, ref: str) -> None:
        """Make a branch of our own."""
        self.branches.add(branch)
        path = path_of("repositories", self.name, "branches")
        body = {"name": branch, "source": ref}
        ask = Ask("create branch", "POST", path, Call.CREATE, body=body, plain=True)
        self.store.client.ask(ask)

    def merge(self, source: str, branch: str, metadata: Mapping[str, str]) -> Commit:
        """Merge with two parents, as the first half of a replacement does (K3)."""
        body = {
            "message": "perago conform",
            "metadata": dict(metadata),
            "strategy": "source-wins",
            "allow_empty": True,
        }
        found = self.store.client.ask(moves.merge(self.name, source, branch, body))
        return self._own(str(found["reference"]))

    def _own(self, ref: str) -> Commit:
        self.made.add(ref)
        return self.store.commit(self.name, ref)

    def drop(self, branch: str) -> None:
        """Delete a branch; on a server that does not answer it stays."""
        path = path_of("repositories", self.name, "branches", branch)
        with suppress(StoreError):
            self.store.client.ask(Ask("delete branch", "DELETE", path, Call.PRIVATE))

    # --- what is there ----------------------------------------------------------------------

    def head(self, workspace: WorkspaceInput) -> Commit:
        """Read the head of the target."""
        return self.store.head(self.name, workspace.branch)

    def ref_of(self, branch: str) -> str:
        """Read where a branch is; empty when it is gone."""
        try:
            return self.store.head(self.name, branch).id
        except NotFoundError:
            return ""

    def tree(self, ref: str) -> Tree:
        """List all objects of a commit with their checksums."""
        return {info.key: info.checksum for info in self.store.listing(self.name, ref, "")}

    def history(self, workspace: WorkspaceInput) -> tuple[Commit, ...] | None:
        """Return the commits from the head back to A, without A; None when A is not there."""
        found: list[Commit] = []
        for commit in self.store.history(self.name, workspace.branch):
            if commit.id == workspace.ref:
                return tuple(found)
            if len(found) == _MOST_COMMITS:
                break
            found.append(commit)
        return None

    def dirty(self, workspace: WorkspaceInput) -> bool:
        """Return whether the target has uncommitted changes."""
        return self.store.dirty(self.name, workspace.branch)

    def all_branches(self, *, hidden: bool = True) -> frozenset[str]:
        """List every branch, hidden ones too."""
        path = path_of("repositories", self.name, "branches")
        ask = Ask("list branches", "GET", path, query={"show_hidden": hidden})
        return frozenset(str(item["id"]) for item in self.store.client.pages(ask))

    def left(self, known: frozenset[str], allowed: int) -> tuple[str, ...]:
        """Return the new branches of others; a worker gets a moment to delete its own."""
        until = time.monotonic() + _SETTLE_SECONDS
        while True:
            found = sorted(self.all_branches() - known - self.branches)
            if len(found) <= allowed or time.monotonic() > until:
                return tuple(found)
            time.sleep(_PAUSE_SECONDS)

    def runs(self) -> frozenset[tuple[str, JournalEntry]]:
        """Read the journal of the server: what others did to branches, each with its own id."""
        path = path_of("repositories", self.name, "actions", "runs")
        return frozenset(
            (str(run["run_id"]), JournalEntry(run["event_type"], run["branch"], run["commit_id"]))
            for run in self.store.client.pages(Ask("read action runs", "GET", path))
            if run["commit_id"] not in self.made or run["event_type"] not in _COMMITTING
        )


def checksum(text: str) -> str:
    """Return the checksum that lakeFS lists for a text."""
    return "md5:" + hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def respelled(workspace: WorkspaceInput) -> WorkspaceInput:
    """Return the same workspace in the other spelling that an input may have (I2)."""
    return replace(workspace, spelling="refType")
