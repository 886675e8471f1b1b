"""V8 on real servers: a body finds the worker's keys and says them; nothing of it is kept."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests import canary
from tests.worker.stage import Stage

MODULE = "tests.redaction.leaky_tasks"
PASSWORD = "conductor+Secret/of=tests1"  # noqa: S105 - the server has no accounts and ignores it


@pytest.mark.parametrize("mode", ["process", "thread"])
def test_v8_a_key_that_a_body_says_is_at_no_server_and_in_no_file(stage: Stage, mode: str) -> None:
    stage.settings |= {
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "CONDUCTOR_AUTH_KEY": "conductor-key-1",
        "CONDUCTOR_AUTH_SECRET": PASSWORD,
        "PERAGO_FAILURE_REASON_MAX_LENGTH": "60",
    }
    registered = stage.perago("register", MODULE)
    assert registered.returncode == 0, registered.stderr
    worker = stage.start("--execution-mode", mode, module=MODULE)
    place, other = stage.workspace(), stage.workspace()
    good = stage.run("leaky", place)
    bad = stage.run("leaky", other, how="error")
    curious = stage.run("curious", how=mode)
    done = stage.completed(good)["tasks"][0]["outputData"]["result"]
    assert (done["keys"], "[hidden]" in done["text"]) == (2, True)
    failed = stage.ended(bad)["tasks"][0]["reasonForIncompletion"]
    assert failed.startswith("body: ValueError: [hidden]")
    assert stage.completed(curious)["tasks"][0]["outputData"]["result"]["inherited"] == []
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    kept = [stage.directory / name for name in ("home", "logs", "root")]
    if mode == "process":  # What a body prints in thread mode, it prints itself.
        kept.append(worker.log)
    for key in (stage.lakefs.secret, PASSWORD):
        for workflow in (good, bad, curious):
            canary.assert_absent(key, canary.execution(stage.client, workflow))
        canary.assert_absent(key, canary.commits(stage.store, place["repository"]))
        canary.assert_absent(key, canary.files(*kept))
