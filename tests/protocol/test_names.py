"""Names an execution makes for itself: S1, and step 2 of section 4."""

from __future__ import annotations

import re
import string
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perago.protocol.names import attempt_dir, safe, staging_branch
from perago.protocol.values import Attempt
from tests.protocol.identities import ME

PLAIN = re.compile(r"[A-Za-z0-9_-]+\Z")
anything = st.text(max_size=80) | st.text(string.printable, max_size=400)
plain_ids = st.text(string.ascii_letters + string.digits + "-_", min_size=1, max_size=40)
attempts = st.builds(
    Attempt,
    workflow_instance_id=anything,
    task_id=anything,
    retry_count=st.integers(0, 99),
    reference_task_name=anything,
    task_def_name=anything,
    seq=st.integers(0, 10**6),
    iteration=st.integers(0, 10**6),
)


def test_s1_the_branch_name_spells_the_attempt() -> None:
    attempt = replace(ME, seq=3, iteration=2)
    assert staging_branch(attempt, "0b5e") == (
        "perago-staging-workflow-1-clean_ref-seq-3-iteration-2-task-id-task-2-retry-1-exec-0b5e"
    )


def test_the_directory_name_holds_task_and_execution() -> None:
    assert attempt_dir("3f2c-11", "0b5e") == "3f2c-11-0b5e"


@given(attempts, anything)
def test_s1_every_name_is_plain_and_short(attempt: Attempt, execution_id: str) -> None:
    branch = staging_branch(attempt, execution_id)
    assert PLAIN.match(branch)
    assert branch.startswith("perago-staging-")
    assert len(branch) <= 300
    directory = attempt_dir(attempt.task_id, execution_id)
    assert PLAIN.match(directory)
    assert len(directory) <= 100


@given(attempts, plain_ids, plain_ids)
def test_s1_two_executions_never_share_a_name(attempt: Attempt, one: str, other: str) -> None:
    same = one == other
    assert (staging_branch(attempt, one) == staging_branch(attempt, other)) is same
    assert (attempt_dir(attempt.task_id, one) == attempt_dir(attempt.task_id, other)) is same


@given(anything, anything)
def test_s1_what_had_to_be_changed_stays_distinct(one: str, other: str) -> None:
    assert (safe(one) == safe(other)) is (one == other)


@pytest.mark.parametrize(
    ("part", "kept"),
    [
        ("", ""),
        ("plain-1_A", "plain-1_A"),
        ("n" * 48, "n" * 48),
        ("a.b", "a_b-"),
        ("../..", "_____-"),
        ("caf\u00e9", "caf_-"),
        ("\u0663", "_-"),
        ("n" * 49, "n" * 37 + "-"),
        ("\ud800", "_-"),
    ],
    ids=ascii,
)
def test_s1_only_ascii_letters_digits_and_dashes_survive(part: str, kept: str) -> None:
    name = safe(part)
    assert name.startswith(kept)
    assert len(name) <= 48
    if name != part:
        assert re.fullmatch(r"[0-9a-f]{10}", name.removeprefix(kept))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a.b", "a/b"),
        ("a_b", "a.b"),
        ("n" * 49, "n" * 50),
        ("caf\u00e9", "cafe\u0301"),
    ],
    ids=ascii,
)
def test_s1_look_alikes_get_different_names(one: str, other: str) -> None:
    assert safe(one) != safe(other)
