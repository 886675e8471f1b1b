"""Random histories of real attempts on real stores; V1 to V7 hold after every step.

``PERAGO_MACHINE_EXAMPLES`` says how many histories; each has up to 20 steps.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from perago.dev import LakeFSEndpoint
from perago.protocol.kinds import FenceKind
from perago.stores.lakefs.installing import install_fence
from perago.stores.lakefs.moves import hard_reset
from perago.testing import Lab, ManualClock
from tests.lakefs_lab import ArrangedLakeFS, new_name
from tests.model.attempt import FENCES
from tests.model.machine import Publications
from tests.patience import TEST_SECONDS

EXAMPLES = int(os.environ.get("PERAGO_MACHINE_EXAMPLES", "0"))


def _profile(examples: int, steps: int) -> settings:
    """Choose the same histories every time; there is time to shorten one only when asked for."""
    shorten = (Phase.shrink,) if EXAMPLES else ()
    return settings(
        phases=(Phase.generate, *shorten),
        max_examples=EXAMPLES or examples,
        stateful_step_count=steps,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


@pytest.mark.timeout(TEST_SECONDS + 10 * EXAMPLES)
@pytest.mark.parametrize("fence", FENCES)
def test_v1_to_v7_on_the_embedded_store(fence: FenceKind) -> None:
    machine = type("EmbeddedPublications", (Publications,), {"fence": fence})
    run_state_machine_as_test(machine, settings=_profile(25 if fence == "hard" else 12, 20))


@pytest.mark.timeout(TEST_SECONDS + 10 * EXAMPLES)
def test_k5_v1_to_v7_with_a_ledger() -> None:
    machine = type("WithLedger", (Publications,), {"keeps_ledger": True})
    run_state_machine_as_test(machine, settings=_profile(15, 20))


class LakeFSPublications(Publications):
    """The same on a server, under the fence that promises the same there."""

    server: ClassVar[LakeFSEndpoint]

    def open(self, place: Path) -> Lab:
        store = ArrangedLakeFS(self.server, place / "store")
        name = new_name()
        store.create_repository(name)
        install_fence(store, name, "main")
        lab = Lab(place, ManualClock(), store, name)
        lab._made = True  # noqa: SLF001 - the repository is there, and fenced
        return lab

    def hard_reset(self, ref: str) -> None:
        assert isinstance(self.lab.store, ArrangedLakeFS)
        self.lab.store.client.ask(hard_reset(self.lab.repository, "main", ref))


@pytest.mark.timeout(TEST_SECONDS + 30 * EXAMPLES)
def test_v1_to_v7_on_lakefs(lakefs_server: LakeFSEndpoint) -> None:
    machine = type("OnServer", (LakeFSPublications,), {"server": lakefs_server})
    run_state_machine_as_test(machine, settings=_profile(8, 15))
