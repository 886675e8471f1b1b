"""Which way object bytes travel: the API, signed addresses, the S3 gateway, as they answer."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from perago.errors import PeragoError, StoreUnavailableError
from perago.ports import Advance, Fetch, Put
from perago.settings import LakeFSSettings
from perago.stores.lakefs.api_objects import WHOLE_BYTES, ApiObjects
from perago.stores.lakefs.client import CALL_SECONDS, Ask, LakeFSClient
from perago.stores.lakefs.presigned import BlocksUnreachableError, Presigned
from perago.stores.lakefs.s3_multipart import MULTIPART_BYTES, S3Multipart, is_plain
from perago.transfer.cache import ContentCache
from perago.transfer.parallel import ConcurrencyLimit
from perago.transfer.wire import path_of

T = TypeVar("T")
_PAUSES = (0.1, 0.5, 2.0)


@dataclass(slots=True)
class Transport:
    """The ways to one repository; those that do not answer are None.

    As measured: small ones are quickest by the API, big ones straight to the blocks. Where their
    addresses are not signed they stream through the API, and in parts through the gateway.
    """

    direct: ApiObjects
    presigned: Presigned | None
    gateway: Callable[[], S3Multipart | None]
    limit: ConcurrencyLimit

    def download(self, ref: str, fetch: Fetch, advance: Advance, cache: ContentCache) -> None:
        """Write one object to its new file, verified (D3), and to the cache."""

        def by(way: ApiObjects | Presigned) -> Callable[[Advance], None]:
            return lambda report: way.download(ref, fetch, report, cache)

        signed = self.presigned if fetch.entry.size > WHOLE_BYTES else None
        self._move(by(signed or self.direct), by(self.direct), advance)

    def upload(self, branch: str, put: Put, advance: Advance) -> bytes | None:
        """Send one file, verified (S3); returns what went in one piece."""

        def by(way: ApiObjects | Presigned | S3Multipart) -> Callable[[Advance], bytes | None]:
            return lambda report: way.upload(branch, put, report)

        way = self._signed(put) or self._in_parts(put) or self.direct
        return self._move(by(way), by(self.direct), advance)

    def _signed(self, put: Put) -> Presigned | None:
        size = put.entry.size
        if size <= WHOLE_BYTES or self.presigned is None or not self.presigned.takes(size):
            return None
        return self.presigned

    def _in_parts(self, put: Put) -> S3Multipart | None:
        if put.entry.size < MULTIPART_BYTES or not is_plain(put.key):
            return None
        return self.gateway()

    def _move(
        self, chosen: Callable[[Advance], T], direct: Callable[[Advance], T], advance: Advance
    ) -> T:
        try:
            return _repeat(chosen, advance, self.limit)
        except BlocksUnreachableError:
            self.presigned = None  # The first one was the probe; the API is always there.
            return _repeat(direct, advance, self.limit)


def _repeat(transfer: Callable[[Advance], T], advance: Advance, limit: ConcurrencyLimit) -> T:
    """Move one content again when it broke off: it is idempotent, and verified at its end."""
    started = time.monotonic()
    for number, pause in enumerate((*_PAUSES, None)):
        moved = 0

        def report(count: int) -> None:
            nonlocal moved
            moved += count
            advance(count)

        try:
            return transfer(report)
        except BlocksUnreachableError:
            advance(-moved)
            raise
        except StoreUnavailableError:
            limit.back_off()
            # One that hung has used up its time: it is still worth a second try.
            late = number > 0 and time.monotonic() - started > CALL_SECONDS
            if pause is None or late:
                raise
            advance(-moved)
            time.sleep(pause)
    raise AssertionError("unreachable")


class Transports:
    """Probes each repository once."""

    def __init__(
        self, settings: LakeFSSettings, client: LakeFSClient, limit: ConcurrencyLimit
    ) -> None:
        self._settings = settings
        self._client = client
        self._limit = limit
        self._known: dict[str, Transport] = {}
        self._storage: dict[str, Any] | None = None
        self._lock = threading.Lock()

    def of(self, repository: str, ref: str) -> Transport:
        """Find the way to a repository; ``ref`` is something to ask about."""
        with self._lock:
            transport = self._known.get(repository)
            if transport is None:
                direct = ApiObjects(self._client, repository)
                signed = self._presigned(repository)
                transport = Transport(direct, signed, self._gateway(repository, ref), self._limit)
                self._known[repository] = transport
            return transport

    def _gateway(self, repository: str, ref: str) -> Callable[[], S3Multipart | None]:
        """Have it asked, once, by the first file that needs it: few are so big."""

        @functools.cache
        def found() -> S3Multipart | None:
            gateway = S3Multipart(self._settings, repository)
            return gateway if gateway.works(ref) else None

        return found

    def _presigned(self, repository: str) -> Presigned | None:
        if self._storage is None:
            asked = Ask("read configuration", "GET", path_of("config"))
            try:
                self._storage = self._client.ask(asked).get("storage_config", {})
            except PeragoError:
                return None  # Who may not read it takes the other ways.
        if not self._storage.get("pre_sign_support"):
            return None
        parts = bool(self._storage.get("pre_sign_multipart_upload"))
        return Presigned(self._client, repository, parts=parts)

    def way(self, repository: str) -> str:
        """Return which way was found for a repository."""
        transport = self._known.get(repository)
        if transport is None:
            return "an unknown way"
        return "the API, big ones by signed addresses" if transport.presigned else "the API"
