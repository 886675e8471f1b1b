"""The table of mutants is up to date: ``make mutants`` runs them, this looks that they exist."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.mutants.__main__ import mutated
from tests.mutants.table import MUTANTS, Mutant

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_can_be_made_and_its_tests_exist(mutant: Mutant) -> None:
    compile(mutated(mutant, ROOT), mutant.file, "exec")
    files = [word for word in shlex.split(mutant.tests) if word.startswith("tests/")]
    assert files
    assert [file for file in files if not (ROOT / file).exists()] == []


def test_at_least_60_rules_are_broken_and_every_family_of_rules_is_there() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 60
    assert {mutant.rule[0] for mutant in MUTANTS} >= set("DSFPNKRWTIXVQ")
