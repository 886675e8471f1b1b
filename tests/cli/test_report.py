"""``perago report``: what the event log knows, added up (T5, K4)."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from perago.testing import FailAt, Lab, MoveHeadAt, StaleAt
from tests.cli.conftest import Perago
from tests.lifecycle.tasks import GIVEN, misbehave, touch, write


@pytest.fixture
def lab(project: Path) -> Lab:
    """Attempts of three tasks in the home of the project."""
    lab = Lab(project / ".perago")
    lab.run(write, {"text": "one"}, files=GIVEN)
    lab.run(touch)
    lab.retry(lab.run(write, {"text": "two"}, faults=[FailAt("after publish")]))
    lab.run(write, {"text": "3"}, faults=[StaleAt("before second attempt fence")])
    strangers = [MoveHeadAt("before stage"), MoveHeadAt("after stage", {"more.txt": "more"})]
    lab.run(write, {"text": "4"}, faults=strangers)
    lab.run(misbehave, {"how": "raise"})
    return lab


def test_k4_attempts_failures_and_refusals_are_counted(lab: Lab, inside: Perago) -> None:
    answer = inside("report", "--json")
    assert answer.code == 0, answer
    tasks = {each["task"]: each for each in answer.json["tasks"]}
    counted = tasks["write"]
    assert counted["attempts"] == 5
    assert (counted["completed"], counted["failed"], counted["died"]) == (2, 1, 1)
    assert (counted["lost"], counted["refused"], counted["retries"]) == (1, 2, 1)
    assert (counted["merged"], counted["replaced"]) == (2, 1)
    assert counted["publish"]["count"] == 2
    assert 0 < counted["publish"]["p50"] <= counted["publish"]["p99"]
    assert list(counted["phases"])[:3] == ["input", "attempt directory", "download"]
    assert tasks["touch"]["kept"] == 1
    assert tasks["touch"]["publish"] is None
    assert tasks["misbehave"]["failed"] == 1


def test_t5_the_advice_can_be_pasted(lab: Lab, inside: Perago) -> None:
    from perago import PublishBudget  # noqa: PLC0415, F401 - the pasted line names it

    answer = inside("report", "--task", "write")
    assert "2 publications, too few for a 99th percentile" in answer.out
    line = next(line for line in answer.out.splitlines() if "PublishBudget(" in line)
    budget = eval(line.strip())  # noqa: S307 - what a person would paste
    assert budget.lakefs_merge_timeout_seconds >= budget.observed_merge_p99_seconds + 20
    assert "touch" not in answer.out
    assert "timeout.response_seconds of" in answer.out
    assert "\x1b" not in answer.out


def test_only_what_is_asked_for(lab: Lab, inside: Perago) -> None:
    assert inside("report", "--task", "nobody", "--json").json["tasks"] == []
    assert inside("report", "--since", "1h", "--json").json["tasks"] != []
    assert inside("report", "--store", "embedded", "--json").json["tasks"] != []
    assert inside("report", "--store", "lakefs", "--json").json["tasks"] == []
    assert inside("report", "--repo", "other", "--json").json["tasks"] == []
    time.sleep(0.2)  # so that they are older than what is asked for
    assert "no attempts" in inside("report", "--since", "0.1s").out


def test_it_draws_a_picture(lab: Lab, project: Path, perago: Perago) -> None:
    target = project / "latency.png"
    answer = perago("report", "--plot", str(target))
    assert f"drawn in {target}" in answer.out
    assert target.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--engine", "abacus"), "no engine 'abacus'"),
        (("--store", "attic"), "use embedded or lakefs"),
        (("--since", "yesterday"), "--since is 'yesterday'"),
        (("--plot", "picture.txt"), "end its name in .png or .svg"),
        (("--plot", "no/such/place.png"), "there is no directory"),
    ],
)
def test_mistakes_get_one_sentence(
    lab: Lab, inside: Perago, arguments: tuple[str, ...], words: str
) -> None:
    answer = inside("report", *arguments)
    assert answer.code == 2
    assert words in answer.err
    assert answer.err.count("\n") == 1


def test_without_a_home_it_says_so(inside: Perago) -> None:
    answer = inside("report")
    assert answer.code == 2
    assert "no Perago home" in answer.err
