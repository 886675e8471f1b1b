"""All that watches a worker, opened with one call: log files, console, task log, metrics."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TextIO

from perago.observe import metrics
from perago.observe.console import ConsoleLog
from perago.observe.logfiles import LogFiles
from perago.observe.logs import JsonLog
from perago.observe.metrics import MetricsWatcher
from perago.observe.secrets import Secrets
from perago.observe.tasklog import Logs, TaskLog
from perago.ports import Clock
from perago.settings import Settings, weak_keys
from perago.tasks.spec import MetricSpec


@dataclass(frozen=True, slots=True)
class Observers:
    """The watchers of one supervisor, and the one that renders ``/metrics``."""

    watchers: tuple[JsonLog | ConsoleLog | TaskLog | MetricsWatcher, ...]
    metrics: MetricsWatcher
    log: LogFiles


def open_watchers(
    settings: Settings,
    tasks: Mapping[str, MetricSpec],
    slots: int,
    client: Logs,
    clock: Clock,
    console: TextIO | None = None,
) -> Observers:
    """Open them; ``RuntimeConfigError`` when the log directory cannot be used."""
    secrets = Secrets.of(settings)
    instance = settings.instance_id or platform.node()

    def complain(text: str) -> None:
        sys.stderr.write(f"warning: {secrets.hide(text)}\n")

    for problem in weak_keys(settings):
        complain(problem)
    files = LogFiles(
        settings.log_root,
        instance,
        clock,
        max_bytes=settings.log_file_max_bytes,
        retention_seconds=settings.log_retention_seconds,
        complain=complain,
    )
    counted = metrics.start(settings, tasks, slots, complain)
    return Observers(
        watchers=(
            JsonLog(files, clock, secrets, instance),
            ConsoleLog(clock, secrets, console),
            TaskLog(client, secrets, complain),
            counted,
        ),
        metrics=counted,
        log=files,
    )
