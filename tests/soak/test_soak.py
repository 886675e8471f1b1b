"""Two minutes of the soak; ``make soak`` does thirty."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.patience import TEST_SECONDS
from tests.soak.soak import soak

MINUTES = float(os.environ.get("PERAGO_TEST_SOAK_MINUTES", "2"))


@pytest.mark.timeout(60 * MINUTES + TEST_SECONDS)
def test_every_invariant_holds_while_executors_and_servers_are_killed(tmp_path: Path) -> None:
    report = soak(MINUTES, seed=20, root=tmp_path)
    assert not report.findings, str(report)
    assert report.statuses["COMPLETED"], str(report)
    assert report.kills["executor"], str(report)
