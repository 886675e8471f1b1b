"""Looks at everything a run depends on, and says what to mend."""

from __future__ import annotations

import shutil
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from perago.errors import PeragoError
from perago.settings import Settings
from perago.wiring import home_of, lakefs_of

if TYPE_CHECKING:
    from perago.stores.lakefs.store import LakeFSStore

LITTLE_SPACE = 1 << 30
MUCH_SKEW_SECONDS = 30.0
OLDEST_PYTHON = (3, 11)
SECONDS = 5.0


class Health(StrEnum):
    """How a thing is."""

    GOOD = "good"
    DOUBTFUL = "doubtful"
    BAD = "bad"
    ABSENT = "not configured"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at; ``remedy`` is empty when there is nothing to do."""

    what: str
    health: Health
    detail: str
    remedy: str = ""


def examine(settings: Settings, repository: str | None) -> Iterator[Finding]:
    """Look at this machine, then at each server that is configured."""
    yield _python()
    yield from _disks(settings)
    yield _asked("embedded store", lambda: _embedded(settings))
    if settings.lakefs is None:
        yield Finding("lakeFS", Health.ABSENT, "only the embedded store can be used")
    else:
        yield from _lakefs(settings, repository)
    if settings.conductor is None:
        yield Finding("Conductor", Health.ABSENT, "workflows run on this machine only")
    else:
        yield _conductor(settings.conductor.url)


def _asked(what: str, ask: Callable[[], str]) -> Finding:
    """Turn an answer, or an error of ours, into a finding."""
    try:
        return Finding(what, Health.GOOD, ask())
    except PeragoError as error:
        return Finding(what, Health.BAD, error.message, error.remedy)


def _python() -> Finding:
    found = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < OLDEST_PYTHON:
        return Finding("Python", Health.BAD, found, "use Python 3.11 or newer")
    return Finding("Python", Health.GOOD, found)


def _disks(settings: Settings) -> Iterator[Finding]:
    for what, path in (
        ("disk of the home", settings.home),
        ("disk of attempt directories", settings.local_rooms),
        ("disk of the cache", settings.cache_root),
    ):
        free = shutil.disk_usage(_existing(path)).free
        detail = f"{free / 1e9:.1f} GB free at {path}"
        if free < LITTLE_SPACE:
            yield Finding(what, Health.DOUBTFUL, detail, "make room, or choose another place")
        else:
            yield Finding(what, Health.GOOD, detail)


def _existing(path: Path) -> Path:
    while not path.exists():
        path = path.parent
    return path


def _embedded(settings: Settings) -> str:
    home = home_of(settings)
    if not home.path.is_dir():
        return "not made yet; the first run makes it"
    repositories = home.store.repositories()
    home.close()
    return f"{len(repositories)} repositories in {home.path}"


def _lakefs(settings: Settings, repository: str | None) -> Iterator[Finding]:
    try:
        store = lakefs_of(settings)
    except PeragoError as error:
        yield Finding("lakeFS", Health.BAD, error.message, error.remedy)
        return
    from perago.stores.lakefs import admin  # noqa: PLC0415 - an optional extra

    found = _asked("lakeFS", lambda: _reached(store, admin.version(store.client)))
    yield found
    if found.health is Health.GOOD:
        yield _clock(admin.server_time(store.client))
        if repository is not None:
            yield _asked(f"permissions on {repository}", lambda: _rehearse(store, repository))
    store.close()


def _reached(store: LakeFSStore, version: str) -> str:
    began = time.monotonic()
    from perago.stores.lakefs import admin  # noqa: PLC0415 - an optional extra

    who = admin.user(store.client)
    took = (time.monotonic() - began) * 1000
    return f"version {version} at {store.client.endpoint}, as {who}, {took:.0f} ms"


def _clock(server: str) -> Finding:
    """Compare the clocks: times in logs of both sides should mean the same."""
    if not server:
        return Finding("clock", Health.DOUBTFUL, "lakeFS does not tell its time")
    skew = abs(parsedate_to_datetime(server).timestamp() - time.time())
    if skew > MUCH_SKEW_SECONDS:
        return Finding(
            "clock", Health.DOUBTFUL, f"{skew:.0f} s apart from lakeFS", "synchronise the clocks"
        )
    return Finding("clock", Health.GOOD, f"within {skew:.0f} s of lakeFS")


def _rehearse(store: LakeFSStore, repository: str) -> str:
    """Do on scratch branches all that an attempt does: branch, write, commit, merge, reset."""
    from perago.stores.lakefs import admin  # noqa: PLC0415 - an optional extra

    name = f"perago-doctor-{uuid.uuid4().hex[:12]}"
    way = admin.rehearse(store, repository, name)
    return f"may branch, write, commit, merge, hard-reset and delete; objects go by {way}"


def _conductor(url: str) -> Finding:
    health = url.rstrip("/").removesuffix("/api") + "/health"
    try:
        with urllib.request.urlopen(health, timeout=SECONDS) as answer:  # noqa: S310 - configured
            answer.read()
    except (urllib.error.URLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        remedy = "start it ('perago dev up'), or correct CONDUCTOR_SERVER_URL"
        return Finding("Conductor", Health.BAD, f"{health} does not answer: {reason}", remedy)
    return Finding("Conductor", Health.GOOD, f"healthy at {url}")
