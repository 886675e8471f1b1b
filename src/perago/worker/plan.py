"""What a worker is to do, and the world in which it does it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from perago.brokers.conductor.client import ConductorClient
from perago.ports import Clock
from perago.process.reports import WatchedExecutors
from perago.settings import Settings
from perago.tasks.definition import TaskDefinition
from perago.worker.post_mortem import CleanupConfig
from perago.worker.reporter import Channels
from perago.worker.watching import Watcher


@dataclass(frozen=True, slots=True)
class Plan:
    """What a worker is to do."""

    settings: Settings
    tasks: Mapping[str, TaskDefinition]
    size: int
    mode: str


@dataclass(frozen=True, slots=True)
class SupervisorDeps:
    """The world of a supervisor."""

    pool: WatchedExecutors
    connect: Callable[[], ConductorClient]
    cleanup: CleanupConfig
    channels: Channels
    watchers: Sequence[Watcher]
    clock: Clock
