"""What a published commit has to say, compared with what it says (S5, K4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from perago.protocol.names import safe
from perago.protocol.values import Commit


@dataclass(frozen=True, slots=True)
class PublishedWords:
    """What is known of the attempt whose result is on the target."""

    identity: Mapping[str, str]
    """What C and the merge say alike."""
    staging: str
    """The beginning of the staging branch's name; the id of the execution follows."""
    input_ref: str
    base_ref: str
    """The commit that the publication came after."""


def wrong_words(
    known: PublishedWords, head: Commit, staged: Commit | None, *, merged: bool
) -> list[str]:
    """Return the names of the metadata that are missing or not right.

    ``merged`` tells whether the head is a merge of ``staged``; otherwise it is C itself (P2).
    """
    said = head.metadata
    execution = said.get("perago.execution_id", "")
    both = {**known.identity, "perago.staging_branch": known.staging + safe(execution)}
    if not merged:
        return _unlike(said, {**both, "perago.phase": "try"}, execution)
    confirm = {
        **both,
        "perago.phase": "confirm",
        "perago.expected_head": known.base_ref,
        "perago.supersedes": "" if known.base_ref == known.input_ref else known.base_ref,
    }
    wrong = _unlike(said, confirm, execution)
    if staged is None or staged.parents != (known.base_ref,):
        return [*wrong, "perago.staging_commit"]
    tried = {**both, "perago.phase": "try", "perago.execution_id": execution}
    return [*wrong, *(f"{name} of C" for name in _unlike(staged.metadata, tried, execution))]


def _unlike(said: Mapping[str, str], expected: Mapping[str, str], execution: str) -> list[str]:
    wrong = [name for name, value in expected.items() if said.get(name) != value]
    return wrong if execution else [*wrong, "perago.execution_id"]
