"""What operators do with a lakeFS server, beyond the port."""

from __future__ import annotations

import re
from typing import Any

from perago.errors import UsageError
from perago.stores.lakefs.client import Ask, LakeFSClient, path_of
from perago.stores.lakefs.errors import Call

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
                "this lakeFS has no usual place for blocks", remedy="name one with --storage"
            )
        storage = usual + name if usual.endswith("/") else f"{usual}/{name}"
    body = {"name": name, "storage_namespace": storage, "default_branch": branch}
    ask = Ask(f"create repository {name}", "POST", path_of("repositories"), Call.CREATE, body=body)
    client.ask(ask)
