"""Where attempts are told to end: the value of ``PERAGO_KILL_AT``."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from perago.errors import RuntimeConfigError
from perago.process.killing import VARIABLE, End, KillAt
from perago.protocol.events import Event
from perago.protocol.values import Attempt, Claim

ROOT = Path(__file__).parents[2]


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


@pytest.mark.parametrize("step", ["a__2", "a:b", "a b", "数"])
def test_a_step_of_any_name_can_be_named(step: str) -> None:
    found = KillAt.from_environment({VARIABLE: f"{step}:1:before publish:STOP"})
    assert found is not None
    assert found.ends == {(step, 1): End("before publish", signal.SIGSTOP)}


@pytest.mark.parametrize(
    "text", ["x", "a:0", ":0:claimed", "a:-1:claimed", "a:0:nowhere", "a:0:claimed,", "a:0:STOP"]
)
def test_a_mistake_is_told(text: str) -> None:
    with pytest.raises(RuntimeConfigError, match=VARIABLE):
        KillAt.from_environment({VARIABLE: text})


def test_a_place_is_written_down_before_it_kills(tmp_path: Path) -> None:
    log = tmp_path / "killed"
    child = f"""
from perago.process.killing import KillAt
from perago.protocol.event_format import read
from tests.process.test_killing import Silent, claim
told = {{"PERAGO_KILL_AT": "a:1:decision", "PERAGO_KILL_LOG": {str(log)!r}}}
kill = KillAt.from_environment(told)
kill.journal(Silent(), claim("a", 0)).event(read("decision", {{}}))
journal = kill.journal(Silent(), claim("a", 1))
journal.event(read("claimed", {{}}))
journal.event(read("decision", {{}}))
"""
    done = subprocess.run([sys.executable, "-c", child], cwd=ROOT, check=False)
    assert done.returncode == -signal.SIGKILL
    assert log.read_text() == "a:1:decision\n"


class Silent:
    """A journal that keeps nothing."""

    def event(self, event: Event) -> None: ...

    def progress(self, phase: str, done: int, total: int) -> None: ...


def claim(step: str, retry: int) -> Claim:
    return Claim(Attempt("w", "t", retry, step, step, 1), {}, "e")
