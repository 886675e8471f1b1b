"""Object bytes through the lakeFS API: slower for many small files, and always there."""

from __future__ import annotations

from perago.ports import Advance, Fetch, Put
from perago.stores.lakefs.client import LakeFSClient
from perago.stores.lakefs.files import CHUNK, Incoming, Outgoing
from perago.transfer.cache import ContentCache
from perago.transfer.wire import path_of

_READ_BYTES = 1 << 20  # Fewer, longer steps: hashing and writing run beside other threads.


class ApiObjects:
    """One repository's objects, by branch or commit and key."""

    def __init__(self, client: LakeFSClient, repository: str) -> None:
        self._client = client
        self._repository = repository

    def download(self, ref: str, fetch: Fetch, advance: Advance, cache: ContentCache) -> None:
        """Write one object to its new file, verified (D3)."""
        path = path_of("repositories", self._repository, "refs", ref, "objects")
        with (
            self._client.body(f"read object {fetch.key!a}", path, {"path": fetch.key}) as answer,
            Incoming(fetch, cache) as file,
        ):
            while chunk := answer.read(_READ_BYTES, decode_content=False):
                file.take(chunk)
                advance(len(chunk))

    def upload(self, branch: str, put: Put, advance: Advance) -> None:
        """Send one file; the server's own checksum must agree where it has one."""
        path = path_of("repositories", self._repository, "branches", branch, "objects")
        with Outgoing(put) as file:
            parts = file.unhashed(CHUNK, advance)
            what = f"write object {put.key!a}"
            said = self._client.send(what, path, {"path": put.key}, parts, put.entry.size)
            file.answered(str(said.get("checksum", "")))
