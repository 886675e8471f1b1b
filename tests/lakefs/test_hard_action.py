"""The text of the action: exactly ours, on exactly these branches, or refused (K3)."""

from __future__ import annotations

import pytest

from perago.stores.lakefs.action import KEY, branches_of, refuse_action, render

OURS = render(["main", "dev"])


@pytest.mark.parametrize("branches", [(), ("main",), ("dev", "main"), ("a-b", "a_b", "b9")])
def test_what_is_written_is_read_back(branches: tuple[str, ...]) -> None:
    assert branches_of(render(branches)) == branches


def test_writing_does_not_depend_on_the_order_or_on_repetition() -> None:
    assert render(["main", "dev", "main"]) == OURS


@pytest.mark.parametrize("branch", ["main", "dev"])
def test_k3_the_action_protects_the_branches_it_names(branch: str) -> None:
    assert refuse_action(OURS, branch) is None


CHANGED = {
    "a line more": OURS + "\n",
    "a line less": OURS.rpartition("        end")[0],
    "another condition": OURS.replace("~= found", "== found"),
    "another event": OURS.replace("pre-merge", "post-merge"),
    "branches as a pattern": OURS.replace('"main"', '"m*"'),
    "not sorted": OURS.replace('"dev"', '"zzz"'),
    "without the scratch branches": OURS.replace('      - "perago-probe-*"\n', ""),
    "other line ends": OURS.replace("\n", "\r\n"),
    "nothing": "",
    "somebody's own": "name: mine\non:\n  pre-merge:\nhooks: []\n",
}


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in CHANGED.items()])
def test_k3_a_changed_action_is_refused(text: str) -> None:
    assert refuse_action(text, "main") == f"{KEY} was changed"


def test_k3_a_missing_action_and_another_branch_are_refused() -> None:
    assert refuse_action(None, "main") == f"there is no {KEY}"
    refused = refuse_action(OURS, "other")
    assert refused == f"{KEY} protects dev, main and not other"
    assert "protects no branch" in str(refuse_action(render([]), "main"))
    assert refuse_action(OURS, "perago-probe-1") is not None
