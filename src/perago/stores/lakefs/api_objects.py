"""Object bytes through the lakeFS API, which is always there: small ones in one piece.

For a small object the client is what costs, and one request on a kept connection is cheaper than
any general client makes it, signatures for the S3 gateway included.
"""

from __future__ import annotations

from perago.ports import Advance, Fetch, Put
from perago.stores.lakefs.client import LakeFSClient
from perago.stores.lakefs.files import CHUNK, IncomingFile, OutgoingFile, receive
from perago.transfer.cache import ContentCache
from perago.transfer.wire import path_of

WHOLE_BYTES = 1 << 20
"""Objects up to this size are moved in one piece."""
_READ_BYTES = 1 << 20  # Fewer, longer steps: hashing and writing run beside other threads.


class ApiObjects:
    """One repository's objects, by branch or commit and key."""

    def __init__(self, client: LakeFSClient, repository: str) -> None:
        self._client = client
        self._repository = repository

    def download(self, ref: str, fetch: Fetch, advance: Advance, cache: ContentCache) -> None:
        """Write one object to its new file, verified (D3)."""
        what = f"read object {fetch.key!a}"
        path = path_of("repositories", self._repository, "refs", ref, "objects")
        query = {"path": fetch.key}
        if fetch.entry.size <= WHOLE_BYTES:
            receive(fetch, memoryview(self._client.read(what, path, query)), cache)
            advance(fetch.entry.size)
            return
        with self._client.body(what, path, query) as answer, IncomingFile(fetch, cache) as file:
            while chunk := answer.read(_READ_BYTES, decode_content=False):
                file.take(chunk)
                advance(len(chunk))

    def upload(self, branch: str, put: Put, advance: Advance) -> bytes | None:
        """Send one file, verified (S3); returns what went in one piece."""
        what = f"write object {put.key!a}"
        path = path_of("repositories", self._repository, "branches", branch, "objects")
        query = {"path": put.key}
        with OutgoingFile(put) as file:
            if put.entry.size <= WHOLE_BYTES:
                content = file.whole()
                said = self._client.write(what, path, query, content)
                file.agree(str(said.get("checksum", "")))
                advance(put.entry.size)
                return content
            parts = file.unhashed(CHUNK, advance)
            said = self._client.send(what, path, query, parts, put.entry.size)
            file.answered(str(said.get("checksum", "")))
        return None
