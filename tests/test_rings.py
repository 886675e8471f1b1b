"""The rings of tests: what each leaves out."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from tests.rings import LATER, each_choice, is_later, is_quick, values_of

ROOT = Path(__file__).parents[1]


def test_every_value_is_in_one_of_the_chosen_cases() -> None:
    cases = [
        values_of({"point": point, "fence": fence, "path": path})
        for point, fence, path in product("abcdefg", ("head", "lineage", "hard"), "xy")
    ]
    chosen = each_choice(cases)
    assert len(chosen) == 7
    assert frozenset().union(*(cases[number] for number in chosen)) == frozenset().union(*cases)


def test_the_parts_of_a_name_are_values() -> None:
    cases = [values_of({"case": name}) for name in ("kill/a/x", "kill/b/x", "kill/b/y", "kill/a/y")]
    assert len(each_choice(cases)) == 2


def test_a_value_that_is_too_deep_to_be_shown_is_one() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    assert each_choice([values_of({"value": deep}), values_of({"value": 1})]) == [0, 1]
    while deep:
        deep = deep.pop()  # type: ignore[assignment]


def test_a_test_without_parameters_is_one_case() -> None:
    assert each_choice([values_of({})]) == [0]
    assert each_choice([]) == []


@pytest.mark.parametrize(
    ("path", "fixtures", "named", "quick"),
    [
        ("tests/protocol/test_events.py", (), "a", True),
        ("tests/lifecycle/test_attempt.py", ("lab", "lakefs_server"), "", False),
        ("tests/spark/test_naming.py", (), "", False),
        ("tests/cli/test_mistakes.py", ("tmp_path",), "", True),
        ("tests/contract/test_publishing.py", ("store",), "embedded", True),
        ("tests/contract/test_publishing.py", ("store",), "lakefs-head", False),
    ],
)
def test_what_is_quick(path: str, fixtures: tuple[str, ...], named: str, *, quick: bool) -> None:
    assert is_quick(path, fixtures, (named,)) is quick


def test_what_waits_is_there() -> None:
    assert is_later("tests/soak/test_soak.py::test_every_invariant_holds")
    assert not is_later("tests/spark/test_cluster.py::test_w4_a_lost_attempt[connect]")
    for test in LATER:
        file, _, name = test.partition("::")
        assert name.partition("[")[0] in (ROOT / file).read_text(), test
