"""Work on a staging branch in place: through the S3 gateway, and seen as uncommitted changes."""

from __future__ import annotations

from collections.abc import Sequence

from perago.ports import Gateway
from perago.protocol.values import ChangeSet, Staging
from perago.settings import LakeFSSettings
from perago.stores.lakefs.client import Ask, LakeFSClient
from perago.stores.lakefs.manifests import Manifests
from perago.stores.lakefs.moves import change_set
from perago.transfer.wire import path_of


class LakeFSInPlace:
    """The ``Direct`` port on lakeFS."""

    def __init__(
        self, settings: LakeFSSettings, client: LakeFSClient, manifests: Manifests
    ) -> None:
        self.gateway = Gateway(client.endpoint, settings.access_key_id, settings.secret_access_key)
        self._client = client
        self._manifests = manifests

    def changes(self, staging: Staging, root: str) -> ChangeSet:
        """Read the uncommitted changes of a branch; what others wrote is not in our manifests."""
        self._manifests.forget(staging.repository, staging.branch)
        return change_set(self._client.pages(_ask(staging, root)))

    def touched(self, staging: Staging, key: str) -> bool:
        """Ask for the first change below a key, then for one of the key itself."""
        below = key if key.endswith("/") or not key else f"{key}/"
        if self._first(staging, below) is not None:
            return True
        return bool(key) and self._first(staging, key) == key

    def names(self, repository: str, ref: str, root: str) -> Sequence[str]:
        """List objects and common prefixes; the directory's own marker has no name."""
        path = path_of("repositories", repository, "refs", ref, "objects", "ls")
        query = {"prefix": root, "delimiter": "/"}
        ask = Ask(f"list objects of {ref} of {repository}", "GET", path, query=query)
        found = (str(item["path"])[len(root) :] for item in self._client.pages(ask))
        return [name for name in found if name]

    def _first(self, staging: Staging, prefix: str) -> str | None:
        asked = _ask(staging, prefix, amount=1)
        found = self._client.ask(asked)["results"]
        return str(found[0]["path"]) if found else None


def _ask(staging: Staging, prefix: str, **query: object) -> Ask:
    path = path_of("repositories", staging.repository, "branches", staging.branch, "diff")
    return Ask("read changes of a branch", "GET", path, query={"prefix": prefix, **query})
