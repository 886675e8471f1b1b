"""A real lakeFS server as a store whose past a test can arrange."""

from __future__ import annotations

import io
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from perago.dev import LakeFSEndpoint
from perago.errors import AlreadyExistsError, OutcomeUnknownError
from perago.protocol.values import Commit
from perago.settings import LakeFSSettings
from perago.stores.lakefs.client import Ask
from perago.stores.lakefs.errors import Call
from perago.stores.lakefs.manifests import Manifests
from perago.stores.lakefs.store import LakeFSStore
from perago.transfer.cache import ContentCache
from perago.transfer.wire import path_of
from tests.patience import LIMIT


@dataclass(frozen=True)
class NamedBranch:
    name: str


def new_name() -> str:
    """Name a repository nobody else has."""
    return f"test-{uuid.uuid4().hex[:12]}"


class ArrangedLakeFS(LakeFSStore):
    """lakeFS through its own API, for what the port does not offer."""

    def __init__(self, endpoint: LakeFSEndpoint, root: Path, url: str | None = None) -> None:
        """``url`` leads somewhere else than straight to the server, to a proxy for instance."""
        super().__init__(
            LakeFSSettings(url or endpoint.endpoint, endpoint.access_key_id, endpoint.secret),
            ContentCache(root / "cache", 1 << 30),
            Manifests(root / "manifests.sqlite"),
        )
        self._endpoint = endpoint

    def create_repository(self, name: str, branch: str = "main") -> Commit:
        body = {
            "name": name,
            "storage_namespace": self._endpoint.storage_namespace(name),
            "default_branch": branch,
        }
        ask = Ask("create", "POST", path_of("repositories"), Call.CREATE, body=body)
        try:
            self.client.ask(replace(ask, timeout_seconds=LIMIT))
        except (AlreadyExistsError, OutcomeUnknownError):
            # Nobody else asks for this name: what is there now is what was asked for.
            found = self.client.ask(Ask("read", "GET", path_of("repositories", name)))
            told = {"name": found["id"], **{key: found[key] for key in body if key != "name"}}
            if told != body:
                raise
        return self.head(name, branch)

    def branches(self, repository: str, *, hidden: bool = False) -> list[NamedBranch]:
        path = path_of("repositories", repository, "branches")
        found = self.client.pages(Ask("list", "GET", path, query={"show_hidden": hidden}))
        return [NamedBranch(item["id"]) for item in found]

    def put(self, repository: str, branch: str, key: str, source: bytes) -> object:
        path = path_of("repositories", repository, "branches", branch, "objects")
        return self.client.send("put", path, {"path": key}, [source] if source else [])

    def remove(self, repository: str, branch: str, key: str) -> None:
        path = path_of("repositories", repository, "branches", branch, "objects", "delete")
        self._arrange("POST", path, {"paths": [key]})

    def commit_branch(
        self,
        repository: str,
        branch: str,
        message: str,
        metadata: Mapping[str, str] | None = None,
    ) -> Commit:
        path = path_of("repositories", repository, "branches", branch, "commits")
        body = {"message": message, "metadata": dict(metadata or {})}
        return self.commit(repository, self._arrange("POST", path, body)["id"])

    def open_object(self, repository: str, ref: str, key: str) -> BinaryIO:
        path = path_of("repositories", repository, "refs", ref, "objects")
        with self.client.body("read", path, {"path": key}) as answer:
            return io.BytesIO(answer.read())

    def _arrange(self, method: str, path: str, body: object) -> Any:
        """Do it once, however long it takes: what was given up too early is done all the same."""
        ask = Ask("arrange", method, path, Call.PRIVATE, body=body, timeout_seconds=LIMIT)
        return self.client.ask(replace(ask, once=True))
