"""Which way object bytes travel: signed addresses, the S3 gateway, or the API, as they answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from perago.errors import PeragoError, StoreUnavailableError
from perago.ports import Advance, Fetch, Put
from perago.settings import LakeFSSettings
from perago.stores.lakefs.client import CALL_SECONDS, Ask, LakeFSClient
from perago.stores.lakefs.direct import ApiObjects
from perago.stores.lakefs.gateway import MULTIPART_BYTES, WHOLE_BYTES, Gateway, is_plain
from perago.stores.lakefs.presigned import BlocksUnreachableError, Presigned
from perago.transfer.cache import ContentCache
from perago.transfer.parallel import Pace
from perago.transfer.wire import path_of

T = TypeVar("T")
Way = ApiObjects | Gateway | Presigned
_PAUSES = (0.1, 0.5, 2.0)


@dataclass(slots=True)
class Road:
    """The ways to one repository; those that do not answer are None."""

    direct: ApiObjects
    gateway: Gateway | None
    presigned: Presigned | None
    pace: Pace

    def download(self, ref: str, fetch: Fetch, advance: Advance, cache: ContentCache) -> None:
        """Write one object to its new file, verified (D3), and to the cache."""
        big = fetch.entry.size > WHOLE_BYTES
        self._move(
            self._way(fetch.key, direct=big, presigned=big),
            lambda way, report: way.download(ref, fetch, report, cache),
            advance,
        )

    def upload(self, branch: str, put: Put, advance: Advance) -> bytes | None:
        """Send one file, verified (S3); returns what went in one piece."""
        size = put.entry.size
        signed = self.presigned is not None and self.presigned.takes(size) and size > WHOLE_BYTES
        return self._move(
            self._way(put.key, direct=WHOLE_BYTES < size < MULTIPART_BYTES, presigned=signed),
            lambda way, report: way.upload(branch, put, report),
            advance,
        )

    def _way(self, key: str, *, direct: bool, presigned: bool) -> Way:
        """Choose as measured: small ones fly through the gateway, big ones straight to the blocks.

        Without signed addresses big ones stream faster through the API than through the gateway.
        """
        if presigned and self.presigned is not None:
            return self.presigned
        return self.gateway if self.gateway and is_plain(key) and not direct else self.direct

    def _move(self, way: Way, transfer: Callable[[Way, Advance], T], advance: Advance) -> T:
        try:
            return _repeat(lambda report: transfer(way, report), advance, self.pace)
        except BlocksUnreachableError:
            self.presigned = None  # The first one was the probe; the other ways are always there.
            return _repeat(lambda report: transfer(self.direct, report), advance, self.pace)


def _repeat(transfer: Callable[[Advance], T], advance: Advance, pace: Pace) -> T:
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
            pace.back_off()
            # One that hung has used up its time: it is still worth a second try.
            late = number > 0 and time.monotonic() - started > CALL_SECONDS
            if pause is None or late:
                raise
            advance(-moved)
            time.sleep(pause)
    raise AssertionError("unreachable")


class Roads:
    """Probes each repository once."""

    def __init__(self, settings: LakeFSSettings, client: LakeFSClient, pace: Pace) -> None:
        self._settings = settings
        self._client = client
        self._pace = pace
        self._known: dict[str, Road] = {}
        self._storage: dict[str, Any] | None = None
        self._lock = threading.Lock()

    def of(self, repository: str, ref: str) -> Road:
        """Find the way to a repository; ``ref`` is something to ask about."""
        with self._lock:
            road = self._known.get(repository)
            if road is None:
                gateway = Gateway(self._settings, repository)
                works = gateway.works(ref)
                direct = ApiObjects(self._client, repository)
                signed = self._presigned(repository)
                road = Road(direct, gateway if works else None, signed, self._pace)
                self._known[repository] = road
            return road

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
        """Say which way was found for a repository."""
        road = self._known.get(repository)
        if road is None:
            return "an unknown way"
        usual = "the S3 gateway" if road.gateway else "the API"
        return f"{usual}, big ones by signed addresses" if road.presigned else usual
