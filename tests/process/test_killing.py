"""Where attempts are told to end: the value of ``PERAGO_KILL_AT``."""

from __future__ import annotations

import signal

import pytest

from perago.errors import RuntimeConfigError
from perago.process.killing import VARIABLE, End, KillAt


def test_unset_is_nothing() -> None:
    assert KillAt.from_environment({}) is None
    assert KillAt.from_environment({VARIABLE: ""}) is None


def test_several_places_transfers_and_stops() -> None:
    found = KillAt.from_environment({VARIABLE: "a:0:claimed,b:12:during stage,a:1:decision:STOP"})
    assert found is not None
    assert found.ends == {
        ("a", 0): End("claimed", signal.SIGKILL),
        ("b", 12): End("during stage", signal.SIGKILL),
        ("a", 1): End("decision", signal.SIGSTOP),
    }


@pytest.mark.parametrize(
    "text", ["x", "a:0", ":0:claimed", "a:-1:claimed", "a:0:nowhere", "a:0:claimed,", "a:0:STOP"]
)
def test_a_mistake_is_told(text: str) -> None:
    with pytest.raises(RuntimeConfigError, match=VARIABLE):
        KillAt.from_environment({VARIABLE: text})
