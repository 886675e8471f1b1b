"""Branches that people make and delete on lakeFS, in the words of the embedded store."""

from __future__ import annotations

from dataclasses import dataclass

from perago.protocol.values import Commit
from perago.stores.lakefs import admin
from perago.stores.lakefs.client import Ask
from perago.stores.lakefs.errors import Call
from perago.stores.lakefs.store import LakeFSStore
from perago.transfer.wire import path_of


@dataclass(frozen=True, slots=True)
class BranchHead:
    """A branch, and the commit that it is at."""

    name: str
    head: str


@dataclass(frozen=True, slots=True)
class LakeFSBranches:
    """The branches of one server."""

    store: LakeFSStore

    def default_branch(self, repository: str) -> str:
        """Name the branch a repository begins with."""
        return admin.default_branch(self.store.client, repository)

    def branches(self, repository: str) -> tuple[BranchHead, ...]:
        """List the branches that are not hidden, by name."""
        found = admin.visible_branches(self.store.client, repository)
        return tuple(BranchHead(name, head) for name, head in found)

    def commit(self, repository: str, ref: str) -> Commit:
        """Read a commit, or the head of a branch."""
        return self.store.commit(repository, ref)

    def head(self, repository: str, branch: str) -> Commit:
        """Read the head of a branch."""
        return self.store.head(repository, branch)

    def dirty(self, repository: str, branch: str) -> bool:
        """Return whether a branch has uncommitted changes."""
        return self.store.dirty(repository, branch)

    def create_branch(self, repository: str, branch: str, at: str) -> Commit:
        """Make a branch at a commit; ``AlreadyExistsError`` when the name is taken."""
        path = path_of("repositories", repository, "branches")
        body = {"name": branch, "source": at}
        what = f"create branch {branch} of {repository}"
        self.store.client.ask(Ask(what, "POST", path, Call.CREATE, body=body, plain=True))
        return self.store.head(repository, branch)

    def delete_branch(self, repository: str, branch: str) -> None:
        """Delete a branch; its commits stay until the server cleans up."""
        path = path_of("repositories", repository, "branches", branch)
        what = f"delete branch {branch} of {repository}"
        self.store.client.ask(Ask(what, "DELETE", path, Call.PRIVATE))
