"""Which way object bytes travel: the S3 gateway where it answers, the API otherwise."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from perago.errors import StoreUnavailableError
from perago.ports import Advance, Fetch, Put
from perago.settings import LakeFSSettings
from perago.stores.lakefs.client import CALL_SECONDS, LakeFSClient
from perago.stores.lakefs.direct import ApiObjects
from perago.stores.lakefs.gateway import Gateway, is_plain

_PAUSES = (0.1, 0.5)


@dataclass(frozen=True, slots=True)
class Road:
    """Both ways to one repository; ``gateway`` is None where it does not answer."""

    direct: ApiObjects
    gateway: Gateway | None

    def download(self, ref: str, fetch: Fetch, advance: Advance) -> None:
        """Write one object to its new file, verified (D3)."""
        way = self.gateway if self.gateway and is_plain(fetch.key) else self.direct
        _repeat(lambda report: way.download(ref, fetch, report), advance)

    def upload(self, branch: str, put: Put, advance: Advance) -> None:
        """Send one file."""
        way = self.gateway if self.gateway and is_plain(put.key) else self.direct
        _repeat(lambda report: way.upload(branch, put, report), advance)


def _repeat(transfer: Callable[[Advance], None], advance: Advance) -> None:
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
