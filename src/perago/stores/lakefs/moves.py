"""The two requests that move a branch, and the words lakeFS has for what differs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from perago.protocol.values import ChangeSet
from perago.stores.lakefs.client import CALL_SECONDS, Ask
from perago.stores.lakefs.errors import Call
from perago.transfer.wire import path_of


def merge(
    repository: str,
    source: str,
    branch: str,
    body: Mapping[str, object],
    seconds: float = CALL_SECONDS,
) -> Ask:
    """Ask for a merge of a commit into a branch; what is merged how stands in the body."""
    path = path_of("repositories", repository, "refs", source, "merge", branch)
    what = f"merge into branch {branch} of {repository}"
    return Ask(what, "POST", path, Call.PUBLISH, body=dict(body), timeout_seconds=seconds)


def hard_reset(repository: str, branch: str, ref: str, seconds: float = CALL_SECONDS) -> Ask:
    """Ask for a branch to be moved to what a ref names when the server comes to it."""
    path = path_of("repositories", repository, "branches", branch, "hard_reset")
    what = f"hard-reset branch {branch} of {repository}"
    query = {"ref": ref}
    return Ask(what, "PUT", path, Call.PUBLISH, query=query, timeout_seconds=seconds)


def change_set(found: Iterable[Mapping[str, Any]]) -> ChangeSet:
    """Sort what a comparison lists by its kind."""
    kinds: dict[str, list[str]] = {"added": [], "changed": [], "removed": []}
    for item in found:
        kinds[item["type"]].append(item["path"])
    return ChangeSet(**{kind: tuple(sorted(keys)) for kind, keys in kinds.items()})
