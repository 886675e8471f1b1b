"""Which way object bytes travel: the S3 gateway where it answers, the API otherwise."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from perago.errors import StoreUnavailableError
from perago.ports import Advance, Fetch, Put
from perago.settings import LakeFSSettings
from perago.stores.lakefs.client import CALL_SECONDS, LakeFSClient
from perago.stores.lakefs.direct import ApiObjects
from perago.stores.lakefs.gateway import MULTIPART_BYTES, WHOLE_BYTES, Gateway, is_plain
from perago.transfer.cache import Arrival

T = TypeVar("T")
_PAUSES = (0.1, 0.5)


@dataclass(frozen=True, slots=True)
class Road:
    """Both ways to one repository; ``gateway`` is None where it does not answer."""

    direct: ApiObjects
    gateway: Gateway | None

    def download(self, ref: str, fetch: Fetch, advance: Advance, also: Arrival) -> None:
        """Write one object to its new file, verified (D3), and to the cache."""
        way = self._way(fetch.key, big=fetch.entry.size > WHOLE_BYTES)
        _repeat(lambda report: way.download(ref, fetch, report, also), advance)

    def upload(self, branch: str, put: Put, advance: Advance) -> bytes | None:
        """Send one file, verified (S3); returns what went in one piece."""
        way = self._way(put.key, big=WHOLE_BYTES < put.entry.size < MULTIPART_BYTES)
        return _repeat(lambda report: way.upload(branch, put, report), advance)

    def _way(self, key: str, *, big: bool) -> ApiObjects | Gateway:
        """Take the gateway for what is small and many: big ones stream faster through the API."""
        return self.gateway if self.gateway and is_plain(key) and not big else self.direct


def _repeat(transfer: Callable[[Advance], T], advance: Advance) -> T:
    """Move one content again when it broke off: it is idempotent, and verified at its end."""
    started = time.monotonic()
    for pause in (*_PAUSES, None):
        moved = 0

        def report(count: int) -> None:
            nonlocal moved
            moved += count
            advance(count)

        try:
            return transfer(report)
        except StoreUnavailableError:
            if pause is None or time.monotonic() - started > CALL_SECONDS:
                raise
            advance(-moved)
            time.sleep(pause)
    raise AssertionError("unreachable")


class Roads:
    """Probes each repository once."""

    def __init__(self, settings: LakeFSSettings, client: LakeFSClient) -> None:
        self._settings = settings
        self._client = client
        self._known: dict[str, Road] = {}
        self._lock = threading.Lock()

    def of(self, repository: str, ref: str) -> Road:
        """Find the way to a repository; ``ref`` is something to ask about."""
        with self._lock:
            road = self._known.get(repository)
            if road is None:
                gateway = Gateway(self._settings, repository)
                works = gateway.works(ref)
                direct = ApiObjects(self._client, repository)
                road = self._known[repository] = Road(direct, gateway if works else None)
            return road

    def way(self, repository: str) -> str:
        """Say which way was found for a repository."""
        road = self._known.get(repository)
        if road is None:
            return "an unknown way"
        return "the S3 gateway" if road.gateway else "the API"
