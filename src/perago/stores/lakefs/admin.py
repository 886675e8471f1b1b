"""What operators do with a lakeFS server, beyond the port."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from perago.errors import UsageError
from perago.ports import Publication, Put
from perago.protocol.names import STAGING
from perago.protocol.publication import Merge, Relocate
from perago.protocol.values import Staging, WorkspaceInput
from perago.stores.lakefs.action import PROBE
from perago.stores.lakefs.client import Ask, LakeFSClient
from perago.stores.lakefs.errors import Call
from perago.stores.lakefs.hard import is_unfinished
from perago.stores.lakefs.proving import FenceProof, probed_at
from perago.stores.lakefs.store import LakeFSStore
from perago.transfer.copying import entry_of
from perago.transfer.wire import path_of

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{2,62}")


def configuration(client: LakeFSClient) -> dict[str, Any]:
    """Read what the server says of itself: version and block store."""
    found: dict[str, Any] = client.ask(Ask("read configuration", "GET", path_of("config")))
    return found


def create_repository(client: LakeFSClient, name: str, storage: str | None, branch: str) -> None:
    """Make a repository; ``AlreadyExistsError`` when the name is taken."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} cannot name a repository",
            remedy="use 3 to 63 small letters, digits and '-', a letter or digit first",
        )
    if storage is None:
        usual = configuration(client)["storage_config"].get("default_namespace_prefix")
        if not usual:
            raise UsageError(
                "this lakeFS has no default place for blocks", remedy="name one with --storage"
            )
        storage = usual + name if usual.endswith("/") else f"{usual}/{name}"
    body = {"name": name, "storage_namespace": storage, "default_branch": branch}
    ask = Ask(f"create repository {name}", "POST", path_of("repositories"), Call.CREATE, body=body)
    client.ask(ask)


def version(client: LakeFSClient) -> str:
    """Return which lakeFS it is."""
    return str(configuration(client).get("version_config", {}).get("version", "unknown"))


def user(client: LakeFSClient) -> str:
    """Return whose key it is; an error says that it is unknown."""
    found = client.ask(Ask("read user", "GET", path_of("user")))
    return str(found["user"]["id"])


def server_time(client: LakeFSClient) -> str:
    """Return the server's own idea of the time, as its answers carry it."""
    return client.header("GET", path_of("healthcheck"), "date")


def repositories(client: LakeFSClient) -> Iterator[str]:
    """List the repositories that the key may see."""
    for item in client.pages(Ask("list repositories", "GET", path_of("repositories"))):
        yield str(item["id"])


def staging_branches(client: LakeFSClient, repository: str) -> Iterator[str]:
    """List the private branches of attempts, living and dead."""
    for name, _ in _branches(client, repository, {"prefix": STAGING, "show_hidden": True}):
        yield name


def forgotten_probes(
    client: LakeFSClient, repository: str, age_seconds: float, now: float
) -> list[str]:
    """Find the scratch branches of the hard fence that are older than that (V7)."""
    found = _branches(client, repository, {"prefix": PROBE, "show_hidden": True})
    return [name for name, _ in found if now - probed_at(name) > age_seconds]


def unfinished_branches(store: LakeFSStore, repository: str) -> list[str]:
    """Find the branches whose head is half of a replacement (K3)."""
    return [
        name
        for name, head in _branches(store.client, repository, {})
        if is_unfinished(store.commit(repository, head))
    ]


def visible_branches(client: LakeFSClient, repository: str) -> Iterator[tuple[str, str]]:
    """List the branches that are not hidden, with their heads."""
    return _branches(client, repository, {})


def _branches(
    client: LakeFSClient, repository: str, query: dict[str, Any]
) -> Iterator[tuple[str, str]]:
    path = path_of("repositories", repository, "branches")
    for item in client.pages(Ask(f"list branches of {repository}", "GET", path, query=query)):
        yield str(item["id"]), str(item["commit_id"])


def default_branch(client: LakeFSClient, repository: str) -> str:
    """Return which branch a repository begins with."""
    path = path_of("repositories", repository)
    return str(client.ask(Ask(f"read repository {repository}", "GET", path))["default_branch"])


def fence(store: LakeFSStore, repository: str) -> str | None:
    """Try the hard fence on the default branch; None when it is not installed there."""
    branch = default_branch(store.client, repository)
    head = store.head(repository, branch).id
    if FenceProof(store.client).action(repository, head) is None:
        return None
    store.prove(WorkspaceInput(repository, branch, "commit", head), "hard")
    return branch


def rehearse(store: LakeFSStore, repository: str, name: str) -> str:
    """Do on two scratch branches what an attempt does; says which way the bytes went."""
    base = store.head(repository, default_branch(store.client, repository))
    work, target = Staging(repository, f"{name}-work"), Staging(repository, f"{name}-target")
    with ExitStack() as undo, tempfile.TemporaryDirectory(prefix="perago-doctor-") as directory:
        for scratch in (work, target):
            store.open_staging(scratch, base.id)
            undo.callback(store.drop, scratch)
        file = Path(directory) / "probe"
        content = name.encode()
        file.write_bytes(content)
        put = Put(f"{name}/probe", entry_of(content, store.checksum), file)
        store.write(work, [put], [], lambda _: None)
        sealed = store.seal(work, "perago doctor", {"perago.execution_id": name})
        for decision in (Merge(base.id, sealed.commit), Relocate("", base.id)):
            store.apply(
                Publication(repository, target.branch, decision, "head", "perago doctor", {}, 30.0)
            )
    return store.way(repository)
