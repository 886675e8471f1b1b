"""Plays cases one after the other: ``python -m tests.faults.bodies.host DIRECTORY``.

It takes a line of JSON for each case on stdin and leaves the answer as a file. Every case has an
executor of its own, started and ended here as ``perago run`` does, so that no body spoils the next
case; what it spoils for its own retry and for the step behind it is what is looked at. The process
is started in namespaces of its own: what a body mounts or leaves running ends with it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from perago.app.cleanup import (
    drop_branches,
    lakefs_orphans,
    lakefs_repositories,
    orphaned_branches,
    sweep_rooms,
)
from perago.app.local import (
    Home,
    LocalWork,
    home_of,
    lakefs_of,
    local_pool,
    local_runner,
    settings_here,
)
from perago.brokers.local import Runner
from perago.cli.seed import chosen_store
from perago.tasks.loading import load_tasks
from tests.faults.bodies.cleaning import free, remove, rooms_of
from tests.patience import LIMIT, scaled

MODULE = "tests.faults.bodies.tasks"
STOPPING_SECONDS = scaled(0.5)
SWEEP_SECONDS = round(scaled(30))
PATIENCE_SECONDS = LIMIT
"""How long a run may take before somebody looks where it hangs; all of them take seconds."""


def main(directory: Path) -> None:
    os.chdir(directory)
    settings = settings_here()
    tasks = load_tasks([MODULE])
    for line in sys.stdin:
        given = json.loads(line)
        home = home_of(settings)
        work = LocalWork(settings, (MODULE,), chosen_store(given["store"]))
        pool = local_pool(work, 1, "process")
        runner = local_runner(home, pool, tasks, lambda _: None)
        said = _play(runner, given)
        pool.close()
        said["problems"] += _swept(home, settings, given["store"])
        said["left"] = rooms_of(home.attempt_dirs)
        (Path(given["scratch"]) / "stop").touch()  # Those left behind have had their time.
        free(home.attempt_dirs, Path(given["scratch"]))
        if said["left"]:
            time.sleep(STOPPING_SECONDS)  # for them to see it
            said["problems"] += _swept(home, settings, given["store"])
        said["stuck"] = rooms_of(home.attempt_dirs)
        for name in said["stuck"]:  # The next case shall not find it.
            remove(home.attempt_dirs / name)
        home.close()
        _answer(Path(given["scratch"]), said)


def _play(runner: Runner, given: Mapping[str, Any]) -> dict[str, Any]:
    """Run the workflow of a case to its end, and say what went wrong with the runner itself."""
    said: dict[str, Any] = {"run": "", "problems": [], "left": [], "stuck": []}
    timer = threading.Timer(PATIENCE_SECONDS, _give_up, (said, runner))
    timer.start()
    try:
        made = runner.create(given["flow"], given["input"], modules=(MODULE,), store=given["store"])
        said["run"] = made.id
        runner.run(made.id)
    except BaseException as error:  # noqa: BLE001 - what ends a runner is what is looked for
        found = "".join(traceback.format_exception(error))[-1500:]
        said["problems"].append(f"V5: the runner ended: {type(error).__name__}: {error}: {found}")
    finally:
        timer.cancel()
    return said


def _give_up(said: dict[str, Any], runner: Runner) -> None:
    said["problems"].append(f"V5: the run did not end within {PATIENCE_SECONDS:.0f} s")
    runner.stop()


def _swept(home: Home, settings: Any, store: str) -> list[str]:
    """Sweep as the end of ``perago run`` does; a sweep that hangs is ended."""
    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(SWEEP_SECONDS)
    try:
        sweep_rooms(home, settings.gc_ttl_seconds)
        if store == "embedded":
            drop_branches(home.store, orphaned_branches(home))
        else:
            lakefs = lakefs_of(settings)
            for repository, ended in lakefs_repositories(home).items():
                drop_branches(lakefs, lakefs_orphans(lakefs, repository, ended))
            lakefs.close()
    except BaseException as error:  # noqa: BLE001 - as above
        return [f"V7: the sweep ended: {type(error).__name__}: {error}"]
    finally:
        signal.alarm(0)
    return []


def _too_long(*_: object) -> None:
    raise TimeoutError(f"the sweep took more than {SWEEP_SECONDS} s")


def _answer(scratch: Path, said: Mapping[str, Any]) -> None:
    with suppress(FileExistsError):
        scratch.mkdir()
    draft = scratch / "answer.new"
    draft.write_text(json.dumps(said))
    draft.rename(scratch / "answer.json")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
