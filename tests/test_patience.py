"""No test depends on how fast the machine is, and nothing here lets one begin to."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import patience

TESTS = Path(__file__).parent
ROOT = TESTS.parent
OWN_CLOCKS = {
    "patience.py": "the limits themselves",
    "faults/bodies/body.py": "ends, within an executor, those whom a body left behind",
    "faults/bodies/patches.py": "a clock that a body sets back",
    "faults/impatience.py": "a clock that others are given",
    "faults/report.py": "says how long the families took",
    "faults/test_kill_and_resume.py": "kills at a moment within the time a run takes",
    "mutants/__main__.py": "says how long all of them took",
    "newcomer/__main__.py": "says how long a page takes a person",
    "soak/soak.py": "goes on for so many minutes",
    "conductor/test_broker.py": "a clock that others are given",
}
"""Who reads a clock, and what for; never to say that something was quick enough."""
CLOCKS = {"monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns"}
WAITS = {"wait", "join", "result", "acquire", "communicate"}


def sources() -> list[str]:
    return sorted(str(path.relative_to(TESTS)) for path in TESTS.rglob("*.py"))


def problems(text: str, name: str) -> Iterator[str]:
    """Find what depends on the speed of the machine."""
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module == "time":
            yield f"{name}:{node.lineno} hides where the time comes from: import time"
        if not isinstance(node, ast.Call):
            continue
        where = f"{name}:{node.lineno}"
        called = ast.unparse(node.func)
        if called == "time.sleep" and "#" not in lines[(node.end_lineno or node.lineno) - 1]:
            yield f"{where} sleeps: wait for what is awaited (tests.patience.until), or say why"
        if called.startswith("time.") and called[5:] in CLOCKS and name not in OWN_CLOCKS:
            yield f"{where} reads a clock: say what has to happen, not how soon"
        if any(map(_is_limit, _limits(node))) and "#" not in lines[node.lineno - 1]:
            yield f"{where} has a limit of its own: take tests.patience.LIMIT"


def _limits(call: ast.Call) -> Iterator[ast.expr]:
    """Find the time limits of a call; for a short wait on purpose a comment says so."""
    for keyword in call.keywords:
        if keyword.arg == "timeout":
            yield keyword.value
    if isinstance(call.func, ast.Attribute) and call.func.attr in WAITS and len(call.args) == 1:
        yield call.args[0]


def _is_limit(value: ast.expr) -> bool:
    if not isinstance(value, ast.Constant) or isinstance(value.value, bool):
        return False
    return isinstance(value.value, int | float) and value.value >= 1


def test_nothing_depends_on_the_speed_of_the_machine() -> None:
    texts = {name: (TESTS / name).read_text(encoding="utf-8") for name in sources()}
    assert [one for name, text in texts.items() for one in problems(text, name)] == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("time.sleep(1)", "sleeps"),
        ("from time import sleep", "hides where the time comes from"),
        ("begun = time.monotonic()", "reads a clock"),
        ("assert time.perf_counter() - begun < 5", "reads a clock"),
        ("subprocess.run(words, timeout=60)", "a limit of its own"),
        ("thread.join(10)", "a limit of its own"),
        ("assert done.wait(30.0)", "a limit of its own"),
        ("pytest.mark.timeout(2); process.communicate(timeout=5)", "a limit of its own"),
    ],
)
def test_what_depends_on_it_is_found(text: str, words: str) -> None:
    assert words in "".join(problems(text, "x.py"))


@pytest.mark.parametrize(
    "text",
    [
        "time.sleep(1)  # the work",
        "thread.join(LIMIT)",
        "thread.join()",
        "', '.join(['a'])",
        "assert not done.wait(0.3)",
        "assert not done.wait(3)  # a short while in which nothing may happen",
    ],
)
def test_what_does_not_is_left_alone(text: str) -> None:
    assert list(problems(text, "x.py")) == []


def test_the_clocks_that_are_named_exist() -> None:
    assert set(OWN_CLOCKS) <= set(sources())


@pytest.mark.parametrize(
    ("seconds", "factor"), [(0.0, 1.0), (0.15, 1.0), (0.45, 3.0), (600.0, patience.LARGEST)]
)
def test_a_slow_machine_gets_more_time_but_not_for_ever(seconds: float, factor: float) -> None:
    assert patience.factor_of(seconds) == pytest.approx(factor)


@pytest.mark.parametrize(("given", "factor"), [("3", 3.0), ("0.5", 0.5)])
def test_the_factor_is_what_it_was_said_to_be(given: str, factor: float) -> None:
    told = subprocess.run(
        [sys.executable, "-c", "from tests.patience import FACTOR; print(FACTOR)"],
        cwd=ROOT,
        env={**os.environ, patience.VARIABLE: given},
        capture_output=True,
        text=True,
        check=True,
        timeout=patience.LIMIT,
    )
    assert float(told.stdout) == factor


def test_a_machine_that_became_slower_meanwhile_gets_more_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[float] = []

    def slower() -> float:
        asked.append(1e9)
        return asked[-1]

    monkeypatch.setattr(patience, "measured", slower)
    monkeypatch.setattr(patience, "LARGEST", 1e9)
    deadline = patience.Deadline(1e-3)
    patience.until(lambda: deadline.over or asked, "the first end of it")
    assert not deadline.over
    assert len(asked) == 1


def test_a_hang_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "measured", lambda: patience.FACTOR)
    with pytest.raises(AssertionError, match=r"not within 0\.01 s: what never comes"):
        patience.until(lambda: False, "what never comes", seconds=0.01)


def test_the_limit_of_a_test_is_scaled(request: pytest.FixtureRequest) -> None:
    words = " ".join(map(str, request.config.invocation_params.args))
    said = "--timeout" in words or "PYTEST_TIMEOUT" in os.environ
    given = request.config.getoption("timeout")
    assert said or given == patience.scaled(patience.TEST_SECONDS)


@pytest.mark.timeout(1000)
def test_the_limit_of_a_marked_test_is_scaled(request: pytest.FixtureRequest) -> None:
    marker = request.node.get_closest_marker("timeout")
    assert marker.args == (patience.scaled(1000),)
