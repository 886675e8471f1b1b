"""The pre-merge action that is the hard fence on lakeFS, as text (K3).

lakeFS reads it from the source of a merge and runs it inside the update of the branch, whose
write is a compare-and-set. So the check of the head and the move of the branch are one decision.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from perago.protocol.paths import ACTIONS

KEY = f"{ACTIONS}/perago_fence.yaml"
PROBE = "perago-probe-"
"""What the names of scratch branches begin with; the action covers them, to be tried there."""

# The second condition makes a head with two parents mean one thing only: an unfinished
# replacement. Without it a late "<branch>^2" could take a merge of others for one.
_TEXT = """\
# Written by 'perago repo init --fence hard'. Do not change it: workers compare it with their own.
name: perago_fence
description: a merge lands only on the head that it expects
on:
  pre-merge:
    branches:
{branches}
hooks:
  - id: expected_head
    type: lua
    properties:
      script: |
        local said = action.commit.metadata
        local found = action.commit.parents[1]
        local expected = said["perago.expected_head"]
        if expected ~= found then
          error("perago: branch " .. action.branch_id .. " is at " .. tostring(found)
            .. ", expected " .. tostring(expected))
        end
        if #action.commit.parents > 1 and said["perago.intent"] ~= "replace" then
          error("perago: a merge into branch " .. action.branch_id .. " has to be squashed")
        end
"""
_LINE = '      - "{}"'
_BRANCH = re.compile(r'^      - "([A-Za-z0-9_][A-Za-z0-9_-]*)"$', re.MULTILINE)


def render(branches: Iterable[str]) -> str:
    """Write the action that protects these branches."""
    names = [*sorted(set(branches)), f"{PROBE}*"]
    return _TEXT.format(branches="\n".join(map(_LINE.format, names)))


def branches_of(text: str) -> tuple[str, ...] | None:
    """Read which branches an action protects; None when it is not word for word ours."""
    found = tuple(_BRANCH.findall(text))
    return found if render(found) == text else None


def refuse_action(text: str | None, branch: str) -> str | None:
    """Return why an action does not fence a branch, or None."""
    if text is None:
        return f"there is no {KEY}"
    protected = branches_of(text)
    if protected is None:
        return f"{KEY} was changed"
    if branch not in protected:
        return f"{KEY} protects {', '.join(protected) or 'no branch'} and not {branch}"
    return None
