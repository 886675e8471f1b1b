"""What must hold (``faults.md``): V1, V3 and V4, and N4 for as long as nobody else writes."""

from __future__ import annotations

from dataclasses import dataclass, field

from perago.stores.lakefs.hard import is_unfinished
from tests.model.server import A
from tests.model.world import State, World

COMMITTED_BY_HAND = "F"


@dataclass
class Properties:
    """Looks at states; equal heads and acceptances are looked at once."""

    world: World
    _known: dict[tuple[str, tuple[str, ...]], tuple[str, ...]] = field(default_factory=dict)

    def broken(self, state: State) -> tuple[str, ...]:
        """Name what does not hold."""
        key = state.head, state.accepted
        if key not in self._known:
            self._known[key] = tuple(self._broken(*key))
        return self._known[key]

    def _broken(self, head: str, accepted: tuple[str, ...]) -> list[str]:
        """Look at the branch as the next one to come sees it: unfinished replacements completed."""
        library = self.world.library
        commit = library.commits[head]
        if is_unfinished(commit):
            head = commit.parents[1]
        line = library.line(head)
        made = [name for name in line if name != A and name[0] != COMMITTED_BY_HAND]
        found = []
        if self._stacked(line, made):
            found.append("V1")
        reached = library.ancestors(head)
        if any(ref and ref not in reached for ref in accepted):
            found.append("V3")
        if len(library.trees[head] - {"a", "f"}) > 1:
            found.append("V4")
        by_hand = any(name[0] == COMMITTED_BY_HAND for name in line)
        refs = [ref for ref in accepted if ref]
        if len(refs) == 1 and not by_hand and "V3" not in found and line[0] != refs[0]:
            found.append("N4")
        return found

    def _stacked(self, line: tuple[str, ...], made: list[str]) -> bool:
        """V1: A, or A -> X; under ``lineage`` A -> ... -> X, all by one step."""
        if self.world.scenario.fence == "lineage":
            commits = self.world.library.commits
            keys = {commits[name].metadata["perago.logical_task_key"] for name in made}
            return len(keys) > 1
        return bool(made) and (len(made) > 1 or line[-2] != made[0])
