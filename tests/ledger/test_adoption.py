"""K5, the decision: every combination of what can differ, and nothing adopts that should not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from itertools import product

import pytest

from perago.protocol.adoption import (
    INTEND,
    Adopt,
    Completion,
    Decline,
    Posting,
    Terms,
    judge,
    params_digest,
)
from perago.protocol.values import Attempt
from tests.ledger.postings import FIRST, LANDED, RETRY, TERMS, THIRD

NAMES = [field.name for field in fields(Terms)]
DECISIONS = ["merge", "replace", "adopt", "keep", "relocate", "refuse", "intend"]
COMPLETIONS = [None, *Completion]
HEADS = ["A", "X", "Y"]
REFS = [None, "A", "X"]
AGAIN = replace(FIRST, started_at=3000)
"""The very same task, handed out a second time because somebody asked for a rerun."""


def altered(names: tuple[str, ...]) -> Terms:
    changed = {name: "hard" if name == "fence" else "other" for name in names}
    return replace(TERMS, **changed)  # type: ignore[arg-type]


def every_posting() -> Iterator[tuple[tuple[str, ...], Posting]]:
    """All terms that differ, alone and together, with every state a posting can be in."""
    for mask in product([False, True], repeat=len(NAMES)):
        different = tuple(name for name, is_so in zip(NAMES, mask, strict=True) if is_so)
        terms = altered(different)
        for decision, completion, ref in product(DECISIONS, COMPLETIONS, REFS):
            yield (
                different,
                replace(LANDED, terms=terms, decision=decision, completion=completion, ref=ref),
            )


@pytest.mark.parametrize("attempt", [RETRY, FIRST, AGAIN], ids=["retry", "twin", "rerun"])
@pytest.mark.parametrize("head", HEADS)
def test_k5_only_the_same_step_on_its_own_head_adopts(attempt: Attempt, head: str) -> None:
    adopted = 0
    for different, posting in every_posting():
        verdict = judge(TERMS, attempt, head, [posting])
        expected = (
            not different
            and head == posting.ref == "X"
            and posting.decision in {"merge", "replace", "adopt"}
            and posting.completion is not Completion.ACCEPTED
            and attempt is not AGAIN
        )
        assert isinstance(verdict, Adopt) is expected, (different, posting, verdict)
        if isinstance(verdict, Decline):
            assert verdict.reason
        adopted += expected
    assert adopted == (9 if head == "X" and attempt is not AGAIN else 0)


def test_k5_code_that_was_not_recorded_is_not_compared_but_recorded_code_is() -> None:
    unknown = replace(LANDED, terms=replace(TERMS, code=""))
    assert judge(TERMS, RETRY, "X", [unknown]) == Adopt(unknown)
    assert judge(replace(TERMS, code=""), RETRY, "X", [unknown]) == Adopt(unknown)
    assert isinstance(judge(replace(TERMS, code=""), RETRY, "X", [LANDED]), Decline)


def test_k5_a_step_that_was_ever_completed_runs_again_whatever_else_is_recorded() -> None:
    """A rerun or a restart was asked for by somebody: that is no lost completion."""
    done = replace(LANDED, execution_id="execution-1", ref="Y", completion=Completion.ACCEPTED)
    for postings in ([LANDED, done], [done, LANDED], [done]):
        verdict = judge(TERMS, RETRY, "X", postings)
        assert isinstance(verdict, Decline)
        assert "completed before, with Y" in verdict.reason


@pytest.mark.parametrize("other", [FIRST, RETRY], ids=["twin", "later"])
def test_v3_what_another_execution_may_still_replace_is_not_adopted(other: Attempt) -> None:
    """Adopting writes nothing, so nothing would stop it (``tests/model/test_adoption.py``)."""
    about_to = replace(LANDED, execution_id="slow", attempt=other, decision=INTEND, ref=None)
    verdict = judge(TERMS, THIRD, "X", [LANDED, about_to])
    assert isinstance(verdict, Decline)
    assert "slow may still replace it" in verdict.reason
    refused = replace(about_to, decision="refuse")
    assert judge(TERMS, THIRD, "X", [LANDED, refused]) == Adopt(LANDED)


def test_k5_among_several_the_oldest_that_fits_is_adopted() -> None:
    unknown = replace(LANDED, execution_id="dead", ref=None)
    replaced = replace(LANDED, execution_id="replaced", ref="W")
    landed = replace(LANDED, attempt=RETRY)
    adopter = replace(landed, execution_id="adopter", decision="adopt")
    assert judge(TERMS, THIRD, "X", [unknown, replaced, landed, adopter]) == Adopt(landed)
    verdict = judge(TERMS, RETRY, "X", [unknown, replaced])
    assert isinstance(verdict, Decline)
    assert "dead: it is not known" in verdict.reason
    assert "replaced: it published W" in verdict.reason


def test_k5_an_empty_ledger_and_a_branch_at_its_input_adopt_nothing() -> None:
    assert isinstance(judge(TERMS, RETRY, "X", []), Decline)
    at_input = replace(LANDED, ref="A")
    assert isinstance(judge(TERMS, RETRY, "A", [at_input]), Decline)


def test_g2_a_posting_says_only_what_is_known() -> None:
    intended = replace(LANDED, ref=None)
    assert intended.state == "outcome unknown"
    assert LANDED.state == "completion unknown"
    assert replace(intended, decision="refuse").state == "refused"
    states = {each: replace(LANDED, completion=each).state for each in Completion}
    assert states == {
        Completion.ACCEPTED: "completed",
        Completion.DROPPED: "completion lost",
        Completion.FAILED: "failed",
    }


# --- params -------------------------------------------------------------------------------------


def test_params_are_compared_by_meaning_not_by_order() -> None:
    one = params_digest("key", "A", {"a": 1, "b": {"c": [1, 2], "d": None}})
    other = params_digest("key", "A", {"b": {"d": None, "c": [1, 2]}, "a": 1})
    assert one == other


@pytest.mark.parametrize("params", [{}, {"a": "1"}, {"a": 1.5}, {"a": [1]}, {"b": 1}, {"a": True}])
def test_other_params_have_another_digest(params: dict[str, object]) -> None:
    assert params_digest("key", "A", params) != params_digest("key", "A", {"a": 1})


def test_v8_the_same_params_of_another_step_or_input_look_different() -> None:
    digests = {
        params_digest(key, ref, {"password": "short"}) for key in ("k", "l") for ref in ("A", "B")
    }
    assert len(digests) == 4
    assert all("short" not in digest for digest in digests)
