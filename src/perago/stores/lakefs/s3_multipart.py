"""Very big files in parts through the S3 gateway, where no address for the parts is signed."""

from __future__ import annotations

import re
from datetime import timedelta
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

from perago.errors import StoreUnavailableError
from perago.ports import Advance, Put
from perago.settings import LakeFSSettings
from perago.stores.lakefs.files import OutgoingFile
from perago.stores.lakefs.tags import CONTENT_MD5
from perago.transfer.parallel import MemoryAllowance

PART_BYTES = 16 << 20
PARTS_AT_ONCE = 2
MEMORY_BYTES = 4 * PART_BYTES
MULTIPART_BYTES = 4 * PART_BYTES
SECONDS = 60  # For a part of 16 MiB; one that hangs is given up after it and asked for again.
# Names that every layer between here and the server spells the same way.
_PLAIN = re.compile(r"[A-Za-z0-9._=/+-]+")


def is_plain(key: str) -> bool:
    """Return whether a key may be sent this way; the others go through the API."""
    return _PLAIN.fullmatch(key) is not None and not key.endswith("/")


class S3Multipart:
    """One repository's objects, by branch or commit and key."""

    def __init__(self, settings: LakeFSSettings, repository: str) -> None:
        endpoint = settings.endpoint.rstrip("/").removesuffix("/api/v1")
        self._memory = MemoryAllowance(MEMORY_BYTES)
        self._store = S3Store(
            repository,
            endpoint=endpoint,
            access_key_id=settings.access_key_id,
            secret_access_key=settings.secret_access_key,
            region="us-east-1",
            virtual_hosted_style_request=False,
            # The tag of the answer says what arrived; another hash on both sides adds nothing.
            unsigned_payload=True,
            client_options={
                "allow_http": urlsplit(endpoint).scheme == "http",
                "timeout": f"{SECONDS}s",
                "connect_timeout": "5s",
            },
            # The rest is repeated above it, where others hear that the server is busy.
            retry_config={"max_retries": 1, "retry_timeout": timedelta(seconds=SECONDS)},
        )

    def works(self, ref: str) -> bool:
        """Ask for an object that is not there: a gateway says so, anything else does not."""
        try:
            obstore.head(self._store, f"{ref}/perago-probe/none")
        except FileNotFoundError:
            return True
        except BaseError:
            return False
        return True

    def upload(self, branch: str, put: Put, advance: Advance) -> None:
        """Send one file in parts, verified (S3)."""
        with OutgoingFile(put) as file, self._memory.of(PARTS_AT_ONCE * PART_BYTES):
            try:
                answer = obstore.put(
                    self._store,
                    f"{branch}/{put.key}",
                    file.uploads(PART_BYTES, advance),
                    attributes={CONTENT_MD5: put.entry.checksum.partition(":")[2]},
                    use_multipart=True,
                    chunk_size=PART_BYTES,
                    max_concurrency=PARTS_AT_ONCE,
                )
            except BaseError as error:
                raise _unavailable(put.key, error) from error
            file.united(_tag(answer))


def _tag(answer: object) -> str:
    found = answer.get("e_tag") if isinstance(answer, dict) else None
    return str(found or "").strip('"')


def _unavailable(key: str, error: Exception) -> StoreUnavailableError:
    # The library's text holds the whole request; the first line is enough for a person.
    why = str(error).partition("\n")[0][:200]
    return StoreUnavailableError(
        f"lakeFS gateway could not write object {key!a}: {why}",
        remedy="check the server, then run the task again",
    )
