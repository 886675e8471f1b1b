"""Puts the action of the hard fence on a branch; only that one file is touched (K3)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from perago.ports import Publication
from perago.protocol.publication import Merge
from perago.protocol.replacement import KIND
from perago.protocol.values import WorkspaceInput
from perago.stores.lakefs.action import KEY, branches_of, render
from perago.stores.lakefs.client import Ask
from perago.stores.lakefs.errors import Call
from perago.stores.lakefs.proving import FenceProof, Scratch, scratch_name
from perago.stores.lakefs.store import LakeFSStore
from perago.transfer.wire import path_of

SECONDS = 30.0


class InstallAction(StrEnum):
    """What had to be done."""

    NOTHING = "was there already"
    INSTALLED = "is installed"
    EXTENDED = "now protects one more branch"
    RESTORED = "was changed and has been restored"


@dataclass(frozen=True, slots=True)
class Fenced:
    """A branch under the hard fence; ``head`` is the first commit that it holds for."""

    deed: InstallAction
    branches: tuple[str, ...]
    head: str


def install_fence(store: LakeFSStore, repository: str, branch: str) -> Fenced:
    """Have the action on a branch, committed, and try it; harmless when it is there already.

    It arrives as every publication does: committed on a scratch branch, merged on condition.
    """
    head = store.finished_head(repository, branch)
    found = FenceProof(store.client).action(repository, head.id)
    deed, branches = _plan(found, branch)
    if deed is not InstallAction.NOTHING:
        with Scratch(store.client, repository, scratch_name(), head.id) as scratch:
            made = _commit(store, repository, scratch, render(branches))
            words = f"perago: fence hard on {', '.join(branches)}"
            decision = Merge(head.id, made)
            said = {KIND: "fence"}
            merge = Publication(repository, branch, decision, "hard", words, said, SECONDS)
            head = store.commit(repository, store.apply(merge).ref)
    store.prove(WorkspaceInput(repository, branch, "commit", head.id), "hard")
    return Fenced(deed, branches, head.id)


def _plan(found: str | None, branch: str) -> tuple[InstallAction, tuple[str, ...]]:
    protected = None if found is None else branches_of(found)
    if found is None:
        return InstallAction.INSTALLED, (branch,)
    if protected is None:
        return InstallAction.RESTORED, (branch,)
    if branch in protected:
        return InstallAction.NOTHING, protected
    return InstallAction.EXTENDED, tuple(sorted((*protected, branch)))


def _commit(store: LakeFSStore, repository: str, scratch: str, text: str) -> str:
    content = text.encode()
    place = ("repositories", repository, "branches", scratch)
    path = path_of(*place, "objects")
    store.client.send(f"write object {KEY}", path, {"path": KEY}, [content], len(content))
    body = {"message": "perago: fence hard"}
    ask = Ask("commit scratch branch", "POST", path_of(*place, "commits"), Call.CREATE, body=body)
    return str(store.client.ask(ask)["id"])
