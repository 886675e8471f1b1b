"""Looks at everything a run depends on, and says what to mend."""

from __future__ import annotations

import shutil
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from perago.app.local import conductor_of, home_of, lakefs_of, ledger_of
from perago.brokers.conductor.registration import registration
from perago.brokers.conductor.taskdef import taskdef
from perago.errors import BrokerError, LedgerUnavailableError, PeragoError
from perago.filesystem import roots
from perago.protocol.spark import is_connect, open_to_strangers, shown
from perago.settings import Settings, weak_keys
from perago.spark import java
from perago.tasks.definition import TaskDefinition
from perago.workspace import attempt_dirs, stamps

if TYPE_CHECKING:
    from perago.brokers.conductor.client import ConductorClient
    from perago.stores.lakefs.store import LakeFSStore

LITTLE_SPACE = 1 << 30
MUCH_SKEW_SECONDS = 30.0
OLDEST_PYTHON = (3, 11)


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


def examine(
    settings: Settings, repository: str | None, tasks: Sequence[TaskDefinition] = ()
) -> Iterator[Finding]:
    """Look at this machine, then at each server that is configured, and what it knows of tasks."""
    yield _python()
    yield _configuration(settings)
    yield from _disks(settings)
    yield from _roots(settings)
    yield from _places(settings)
    yield _asked("embedded store", lambda: _embedded(settings))
    yield _java(settings)
    if settings.lakefs is None:
        yield Finding("lakeFS", Health.ABSENT, "only the embedded store can be used")
    else:
        yield from _lakefs(settings, repository)
    if settings.conductor is None:
        yield Finding("Conductor", Health.ABSENT, "workflows run on this machine only")
    else:
        yield from _conductor(settings, tasks)
    yield _ledger(settings)
    for problem in weak_keys(settings):
        yield Finding("keys", Health.DOUBTFUL, problem, "use a longer one, made at random")


def _ledger(settings: Settings) -> Finding:
    """Ask the ledger; attempts run without it, so that it is down is no more than doubtful."""
    if settings.ledger is None:
        return Finding("ledger", Health.ABSENT, "a retry replaces what was published before it")
    where = settings.ledger.shown
    try:
        ledger = ledger_of(settings)
        count = ledger.count() if ledger else 0
    except LedgerUnavailableError as error:
        return Finding("ledger", Health.DOUBTFUL, error.message, error.remedy)
    except PeragoError as error:
        return Finding("ledger", Health.BAD, error.message, error.remedy)
    return Finding("ledger", Health.GOOD, f"{count} executions in {where}")


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


def _configuration(settings: Settings) -> Finding:
    """Return where the settings come from, and whether others can read keys there."""
    what, path = "configuration", settings.dotenv
    if path is None:
        return Finding(what, Health.GOOD, f"the environment; there is no .env in {Path.cwd()}")
    detail = f"the environment, then {path}"
    if path.stat().st_mode & 0o077:
        return Finding(
            what, Health.DOUBTFUL, f"{detail}, which other users can read", f"chmod 600 {path}"
        )
    return Finding(what, Health.GOOD, detail)


def _places(settings: Settings) -> Iterator[Finding]:
    """Look whether what workers and runs would use is theirs; nothing is made or changed."""
    for path, use in (
        (settings.home, roots.HOME),
        (settings.workspace_root, roots.WORKSPACES),
        (settings.log_root, roots.LOGS),
        (settings.cache_root, roots.CACHE),
    ):
        try:
            roots.check(path.absolute(), use)
        except PeragoError as error:
            yield Finding(use.name, Health.BAD, error.message, error.remedy)


def _java(settings: Settings) -> Finding:
    """Look at what Spark tasks need, where PySpark is installed."""
    if not java.installed():
        return Finding("Spark", Health.ABSENT, "Spark tasks need the extra perago[spark]")
    if is_connect(settings.spark.master):
        where = shown(settings.spark.master)
        return Finding("Spark", Health.GOOD, f"on the Connect server {where}, no Java needed")
    if problem := open_to_strangers(settings.spark.master, settings.spark.conf):
        return Finding(
            "Spark",
            Health.DOUBTFUL,
            f"{problem}: whoever reaches the cluster's ports can run code on it",
            "give master and workers a secret, and the same in PERAGO_SPARK_CONF: "
            "spark.authenticate=true;spark.authenticate.secret=...",
        )
    return _asked("Java for Spark", java.check)


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


def _roots(settings: Settings) -> Iterator[Finding]:
    """Look whether roots are ours, and whether their disks note the time of every change (S2)."""
    disks: dict[int, Path] = {}
    for root in (settings.local_rooms, settings.workspace_root):
        disks.setdefault(_existing(root).stat().st_dev, _existing(root))
        try:
            attempt_dirs.check_root(root)
        except PeragoError as error:
            yield Finding(f"root {root}", Health.BAD, error.message, error.remedy)
    what = "changes in attempt directories"
    for place in disks.values():
        if stamps.tell(place):
            yield Finding(what, Health.GOOD, f"detected by file times at {place}")
        else:
            yield Finding(
                what,
                Health.DOUBTFUL,
                f"the file system of {place} does not note when a mapped file is written, so that"
                " every file is read again before a result is published",
                "for big inputs, set PERAGO_WORKSPACE_ROOT to a directory on ext4, XFS or Btrfs",
            )


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
        yield _clock("lakeFS", admin.server_time(store.client))
        if repository is not None:
            yield _asked(f"permissions on {repository}", lambda: _rehearse(store, repository))
            yield from _fence(store, repository)
    store.close()


def _reached(store: LakeFSStore, version: str) -> str:
    began = time.monotonic()
    from perago.stores.lakefs import admin  # noqa: PLC0415 - an optional extra

    who = admin.user(store.client)
    took = (time.monotonic() - began) * 1000
    return f"version {version} at {store.client.endpoint}, as {who}, {took:.0f} ms"


def _clock(server: str, told: str) -> Finding:
    """Compare the clocks: times in logs of both sides should mean the same."""
    try:
        skew = abs(parsedate_to_datetime(told).timestamp() - time.time())
    except ValueError:
        return Finding("clock", Health.DOUBTFUL, f"{server} does not tell its time")
    if skew > MUCH_SKEW_SECONDS:
        detail = f"{skew:.0f} s apart from {server}"
        return Finding("clock", Health.DOUBTFUL, detail, "synchronise the clocks")
    return Finding("clock", Health.GOOD, f"within {skew:.0f} s of {server}")


def _rehearse(store: LakeFSStore, repository: str) -> str:
    """Do on scratch branches all that an attempt does: branch, write, commit, merge, reset."""
    from perago.stores.lakefs import admin  # noqa: PLC0415 - an optional extra

    name = f"perago-doctor-{uuid.uuid4().hex[:12]}"
    way = admin.rehearse(store, repository, name)
    return f"may branch, write, commit, merge, hard-reset and delete; objects go by {way}"


def _fence(store: LakeFSStore, repository: str) -> Iterator[Finding]:
    """Try the hard fence where it is installed, and look for what a dead worker left of it."""
    from perago.stores.lakefs import admin  # noqa: PLC0415 - an optional extra

    what = f"fence hard on {repository}"
    try:
        branch = admin.fence(store, repository)
        unfinished = admin.unfinished_branches(store, repository)
    except PeragoError as error:
        yield Finding(what, Health.BAD, error.message, error.remedy)
        return
    if branch is None:
        yield Finding(what, Health.ABSENT, "tasks with fence='hard' are refused there")
    else:
        yield Finding(what, Health.GOOD, f"it holds on {branch}: the server refused a wrong merge")
    if unfinished:
        detail = f"unfinished replacements on {', '.join(unfinished)}"
        remedy = f"run 'perago gc --repo {repository} --delete', or let the next attempt do it"
        yield Finding(what, Health.DOUBTFUL, detail, remedy)


def _conductor(settings: Settings, tasks: Sequence[TaskDefinition]) -> Iterator[Finding]:
    try:
        client = conductor_of(settings)
    except PeragoError as error:
        yield Finding("Conductor", Health.BAD, error.message, error.remedy)
        return
    found = _asked("Conductor", lambda: _healthy(client))
    yield found
    if found.health is Health.GOOD:
        yield _clock("Conductor", client.server_time())
        for task in tasks:
            yield _registered(client, task)
    client.close()


def _healthy(client: ConductorClient) -> str:
    began = time.monotonic()
    if not client.health():
        raise BrokerError(
            f"Conductor at {client.root} reports that it is not healthy", remedy="see its log"
        )
    took = (time.monotonic() - began) * 1000
    version = client.version()  # It wants a token where the server has accounts.
    return f"version {version or 'unknown'} at {client.root}, {took:.0f} ms"


def _registered(client: ConductorClient, task: TaskDefinition) -> Finding:
    what = f"task {task.name}"
    try:
        found = registration("task", task.name, taskdef(task), client.taskdef(task.name))
    except PeragoError as error:
        return Finding(what, Health.BAD, error.message, error.remedy)
    remedy = f"run 'perago register {task.body.source}'"
    if found.state == "new":
        return Finding(what, Health.BAD, "not registered at Conductor", remedy)
    if found.state == "changed":
        paths = ", ".join(change.path for change in found.differences)
        return Finding(what, Health.DOUBTFUL, f"registered with another {paths}", remedy)
    return Finding(what, Health.GOOD, "registered at Conductor as declared here")
