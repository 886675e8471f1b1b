"""A poll that never comes back: looking up a name has no timeout of its own (W5)."""

from __future__ import annotations

from tests.worker.stage import Stage, eventually

HANG = """
import os, socket, threading, time

look_up = socket.getaddrinfo
first = threading.Lock()


def hanging(*given, **more):
    if threading.current_thread().name == "perago-poller" and first.acquire(blocking=False):
        while not os.path.exists("resolved"):
            time.sleep(0.05)
    return look_up(*given, **more)


socket.getaddrinfo = hanging
"""


def test_a_poller_that_hangs_is_replaced_and_takes_nothing_when_it_wakes_up(stage: Stage) -> None:
    stage.register()
    (stage.directory / "sitecustomize.py").write_text(HANG)
    worker = stage.start("-j", "1", PYTHONPATH=str(stage.directory))
    stage.completed(stage.run(text="one"))
    assert [line["event"] for line in stage.logged("poller")] == ["worker poller replaced"]
    assert "poller replaced" in stage.perago("status").stdout
    (stage.directory / "resolved").touch()
    workflows = [stage.run(text=str(number)) for number in range(10)]
    for workflow in workflows:
        stage.completed(workflow)
        assert stage.tasks(workflow) == [("COMPLETED", 0)]  # What the late poll took came back.
    eventually(lambda: not worker.state["running"], "the end of the last attempt")
    assert worker.stop() == 0
