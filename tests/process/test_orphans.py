"""No executor outlives its owner, however the owner ends."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from perago.process.lock import tidy_locks
from tests.patience import LIMIT, until
from tests.process.test_pool import running, wait_gone

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_executors_and_what_they_started_end_with_their_owner(
    tmp_path: Path, number: signal.Signals
) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-m", "tests.process.owner", str(tmp_path)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert owner.stdout is not None
    with owner, owner.stdout:
        pids = [int(pid) for _ in range(2) for pid in owner.stdout.readline().split()]
        assert len(pids) == 4
        assert all(running(pid) for pid in pids)
        owner.send_signal(number)
        owner.wait(LIMIT)
    for pid in pids:
        wait_gone(pid)

    def is_tidy() -> bool:
        # A process may be a zombie while its last thread still closes the files.
        tidy_locks(tmp_path)
        return not list(tmp_path.iterdir())

    until(is_tidy, "the end of all locks")
