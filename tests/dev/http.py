"""The little HTTP the tests need, without any SDK."""

from __future__ import annotations

import base64
import json
import urllib.request
from typing import Any

from perago.dev import LakeFSEndpoint
from tests.patience import LIMIT

_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def ask(url: str, method: str = "GET", *, body: object = None, user: str = "") -> Any:
    """Send JSON, read JSON; anything but success raises."""
    request = urllib.request.Request(url, method=method)  # noqa: S310 - a server of the test
    if body is not None:
        request.data = json.dumps(body).encode()
        request.add_header("Content-Type", "application/json")
    if user:
        request.add_header("Authorization", f"Basic {base64.b64encode(user.encode()).decode()}")
    with _DIRECT.open(request, timeout=LIMIT) as response:
        return json.loads(response.read() or b"null")


def send(url: str, content: bytes) -> str:
    """PUT bytes to a presigned address; gives their entity tag."""
    request = urllib.request.Request(url, content, method="PUT")  # noqa: S310
    with _DIRECT.open(request, timeout=LIMIT) as response:
        return str(response.headers["ETag"])


def fetch(url: str) -> bytes:
    with _DIRECT.open(url, timeout=LIMIT) as response:
        return bytes(response.read())


class LakeFS:
    """Calls the API with the keys of an instance."""

    def __init__(self, server: LakeFSEndpoint) -> None:
        self._server = server
        self._user = f"{server.access_key_id}:{server.secret}"

    def __call__(self, path: str, method: str = "GET", body: object = None) -> Any:
        return ask(f"{self._server.endpoint}/api/v1{path}", method, body=body, user=self._user)

    def create(self, name: str) -> Any:
        namespace = self._server.storage_namespace(name)
        return self("/repositories", "POST", {"name": name, "storage_namespace": namespace})

    def repositories(self) -> list[str]:
        return [each["id"] for each in self("/repositories")["results"]]
