r"""For the tests of task authors: run one task for real, crash it anywhere, look at the result.

    def test_clean(perago_lab: Lab) -> None:
        run = perago_lab.run(clean, files={"raw.csv": "a\n"}, params={})
        assert run.files["clean.csv"] == b"a\n"

Nothing here is a stand-in: the store is the embedded store and the attempt is the real lifecycle.
"""

from __future__ import annotations

from perago.protocol.points import POINTS
from perago.testing.broker import ScriptedBroker
from perago.testing.clock import ManualClock
from perago.testing.faults import FailAt, Fault, LoseAnswer, MoveHeadAt, StaleAt
from perago.testing.lab import Lab, Run

__all__ = [
    "POINTS",
    "FailAt",
    "Fault",
    "Lab",
    "LoseAnswer",
    "ManualClock",
    "MoveHeadAt",
    "Run",
    "ScriptedBroker",
    "StaleAt",
]
