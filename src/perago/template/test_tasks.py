"""Run with pytest. ``perago_lab`` runs a task as a real attempt on a store of its own."""

from __future__ import annotations

from tasks import count_words

from perago.testing import FailAt, Lab

TEXT = {"poem.txt": "rain on the river, rain on the roof"}


def test_words_are_counted(perago_lab: Lab) -> None:
    run = perago_lab.run(count_words, {"min_length": 4}, files=TEXT)
    assert run.completed, run.reason
    assert run.result == {"files": 1, "words": 4}
    assert run.files["counts.csv"].splitlines()[1] == b"rain,2"


def test_a_crash_loses_nothing(perago_lab: Lab) -> None:
    crashed = perago_lab.run(count_words, files=TEXT, faults=[FailAt("after publish")])
    retried = crashed.retry()
    assert retried.completed, retried.reason
    assert len(retried.history) == 2  # the input and one publication, never two
