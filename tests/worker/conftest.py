from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from perago.dev import ConductorEndpoint, LakeFSEndpoint
from tests.worker.stage import Stage


@pytest.fixture
def stage(
    tmp_path: Path, conductor_server: ConductorEndpoint, lakefs_server: LakeFSEndpoint
) -> Iterator[Stage]:
    # Where the tests run under nohup the workers would, rightly, leave SIGHUP alone as well.
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    made = Stage(tmp_path, conductor_server, lakefs_server)
    yield made
    made.close()
    signal.signal(signal.SIGHUP, before)
