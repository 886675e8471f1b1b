"""Big objects straight from and to the block store, by addresses that lakeFS signs.

The bytes do not pass through the lakeFS server. The addresses hold a signature, so they are in no
error and in no log, and the worker's own key is never sent along.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import md5 as md5_of
from typing import Any

import urllib3

from perago.errors import StoreUnavailableError
from perago.ports import Advance, Fetch, Put
from perago.stores.lakefs.client import Ask, LakeFSClient
from perago.stores.lakefs.errors import Call
from perago.stores.lakefs.files import CHUNK, IncomingFile, OutgoingFile
from perago.stores.lakefs.sending import manager
from perago.stores.lakefs.tags import LISTED_AS
from perago.transfer.cache import ContentCache
from perago.transfer.parallel import MemoryAllowance
from perago.transfer.wire import path_of

PART_BYTES = 16 << 20
MULTIPART_BYTES = 4 * PART_BYTES
MOST_PARTS = 10_000
_OK = range(200, 300)
_ENCRYPTED = "x-amz-server-side-encryption"


class BlocksUnreachableError(StoreUnavailableError):
    """The block store does not answer this worker, or not to signed addresses."""


class Presigned:
    """One repository's objects, by branch or commit and key."""

    def __init__(self, client: LakeFSClient, repository: str, *, parts: bool) -> None:
        self._client = client
        self._repository = repository
        self._memory = MemoryAllowance(MULTIPART_BYTES)
        self.takes_parts = parts
        self.answered = False
        """Whether the block store ever did; until then every failure means that it does not."""
        self._pool = manager(32, num_pools=2, headers={"User-Agent": "perago"})

    def takes(self, size: int) -> bool:
        """Return whether a file of a size can be sent this way."""
        return self.takes_parts or size < MULTIPART_BYTES

    def download(self, ref: str, fetch: Fetch, advance: Advance, cache: ContentCache) -> None:
        """Write one object to its new file, verified (D3)."""
        what = f"read object {fetch.key!a}"
        path = path_of("repositories", self._repository, "refs", ref, "objects", "stat")
        query = {"path": fetch.key, "presign": True}
        url = str(self._client.ask(Ask(what, "GET", path, query=query))["physical_address"])
        with self._answer(what, "GET", url) as answer, IncomingFile(fetch, cache) as file:
            file.told(answer.headers.get("ETag", ""))
            while chunk := answer.read(CHUNK, decode_content=False):
                file.take(chunk)
                advance(len(chunk))

    def upload(self, branch: str, put: Put, advance: Advance) -> None:
        """Send one file, verified (S3), and have lakeFS take it in."""
        if put.entry.size >= MULTIPART_BYTES:
            self._upload_parts(branch, put, advance)
            return
        what = f"write object {put.key!a}"
        path = self._staging(branch, "backing")
        query = {"path": put.key}
        place = self._client.ask(Ask(what, "GET", path, query={**query, "presign": True}))
        digest = put.entry.checksum.partition(":")[2]
        with OutgoingFile(put) as file:
            headers = {
                "Content-Length": str(put.entry.size),
                "Content-MD5": base64.b64encode(bytes.fromhex(digest)).decode(),
            }
            parts = file.unhashed(CHUNK, advance)
            tag, readable = self._put(what, str(place["presigned_url"]), parts, headers)
            file.answered(tag if readable else "")
        body = {
            "staging": {"physical_address": place["physical_address"]},
            "checksum": digest,
            "size_bytes": put.entry.size,
        }
        self._client.ask(Ask(what, "PUT", path, Call.PRIVATE, query=query, body=body))

    def _upload_parts(self, branch: str, put: Put, advance: Advance) -> None:
        what = f"write object {put.key!a}"
        part_bytes = max(PART_BYTES, -(-put.entry.size // MOST_PARTS))
        count = -(-put.entry.size // part_bytes)
        path, query = self._staging(branch, "pmpu"), {"path": put.key}
        begun = self._client.ask(
            Ask(what, "POST", path, Call.PRIVATE, query={**query, "parts": count})
        )
        tags = []
        with OutgoingFile(put) as file, self._memory.of(part_bytes):
            parts = file.parts(part_bytes, advance)
            for number, (url, part) in enumerate(zip(begun["presigned_urls"], parts, strict=True)):
                md5 = md5_of(part, usedforsecurity=False)
                headers = {"Content-MD5": base64.b64encode(md5.digest()).decode()}
                tag, readable = self._put(what, str(url), part, headers)
                if readable:
                    file.arrived(tag, md5.hexdigest())
                tags.append({"part_number": number + 1, "etag": tag})
            file.settled()
            body = {
                "physical_address": begun["physical_address"],
                "parts": tags,
                "user_metadata": {LISTED_AS: put.entry.checksum.partition(":")[2]},
            }
            # Not repeated by itself: what is united already cannot be united again.
            done = f"{path}/{begun['upload_id']}"
            asked = Ask(what, "PUT", done, Call.PRIVATE, query=query, body=body, once=True)
            self._client.ask(asked)

    def _put(
        self, what: str, url: str, body: bytes | Iterable[bytes], headers: Mapping[str, str]
    ) -> tuple[str, bool]:
        """Send bytes; returns the tag the store gives, and whether it is their MD5.

        Where the store encrypts it is not, and its own look at Content-MD5 must do.
        """
        with self._answer(what, "PUT", url, body, headers) as answer:
            answer.drain_conn()
            encrypted = str(answer.headers.get(_ENCRYPTED, "")).startswith("aws:kms")
            return str(answer.headers.get("ETag", "")).strip('"'), not encrypted

    @contextmanager
    def _answer(
        self,
        what: str,
        method: str,
        url: str,
        body: bytes | Iterable[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Iterator[urllib3.BaseHTTPResponse]:
        if not url.startswith(("http://", "https://")):
            raise self._failed(what, "it is not an address")
        answer = None
        words: dict[str, Any] = {"body": body} if body is not None else {}
        try:
            answer = self._pool.request(
                method,
                url,
                headers={**self._pool.headers, **(headers or {})},
                preload_content=False,
                redirect=False,
                **words,
            )
            if answer.status not in _OK:
                raise self._failed(what, f"answered {answer.status}")
            self.answered = True
            yield answer
            answer.release_conn()
            answer = None
        except (urllib3.exceptions.HTTPError, ValueError) as error:
            raise self._failed(what, type(error).__name__) from None
        finally:
            if answer is not None:
                answer.close()

    def _failed(self, what: str, why: str) -> StoreUnavailableError:
        kind = StoreUnavailableError if self.answered else BlocksUnreachableError
        return kind(
            f"{what}: the block store of lakeFS could not be used ({why})",
            remedy="check that the worker reaches the block store, then run the task again",
        )

    def _staging(self, branch: str, *rest: str) -> str:
        return path_of("repositories", self._repository, "branches", branch, "staging", *rest)
