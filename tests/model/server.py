"""A lakeFS server as far as publications can tell it from a real one: a branch and three requests.

What is modelled was measured on a real one: a squash merge lands on any head, a hard reset looks
at nothing, the action of fence ``hard`` compares the head inside the update of the branch, and
``<branch>^2`` is looked up inside the update, too. A commit is named after who made it and on
what, so that two histories that made the same commit have made one commit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from perago.protocol.adoption import Posting
from perago.protocol.values import Commit

A = "A"
BRANCH = "main"
REPOSITORY = "repo"
SECOND_PARENT = f"{BRANCH}^2"
Tree = frozenset[str]
Said = tuple[tuple[str, str], ...]


class Made(NamedTuple):
    """The server did it; ``ref`` is the head that it made."""

    ref: str


class Refused(NamedTuple):
    """The server did nothing, and says which status it answers with."""

    status: int


@dataclass(frozen=True, slots=True)
class Move:
    """A request that moves the branch: on the wire, or held up there."""

    who: str
    kind: Literal["merge", "intent", "reset"]
    ref: str
    said: Said = ()
    fenced: bool = False

    def __str__(self) -> str:
        if self.kind == "reset":
            return f"hard reset to {self.ref}"
        return f"{'intent to replace by' if self.kind == 'intent' else 'merge of'} {self.ref}"


@dataclass
class Library:
    """Every commit that was ever made in any history; a branch is the name of one of them."""

    commits: dict[str, Commit] = field(default_factory=dict)
    trees: dict[str, Tree] = field(default_factory=dict)
    postings: dict[str, Posting] = field(default_factory=dict)
    """What was ever told to a ledger, by name."""

    def add(self, name: str, parents: tuple[str, ...], tree: Tree, said: Said = ()) -> str:
        """Make a commit; a name that is taken must mean the same."""
        content = ",".join(sorted(tree))
        made = Commit(name, parents, metadata=dict(said), tree=content)
        known = self.commits.setdefault(name, made)
        assert known == made, f"{name} is taken"
        self.trees[name] = tree
        return name

    def line(self, name: str) -> tuple[str, ...]:
        """Walk first parents, newest first, down to A."""
        found = [name]
        while found[-1] != A:
            found.append(self.commits[found[-1]].parents[0])
        return tuple(found)

    def ancestors(self, name: str) -> list[str]:
        """List a commit and all it can reach, nearest first."""
        found = [name]
        for each in found:
            found += [parent for parent in self.commits[each].parents if parent not in found]
        return found

    def merged(self, head: str, source: str) -> Tree:
        """Lay what the source changed since the common past over the head; no two files clash."""
        reached = set(self.ancestors(head))
        base = self.trees[next(name for name in self.ancestors(source) if name in reached)]
        ours, theirs = self.trees[head], self.trees[source]
        return (ours - (base - theirs)) | (theirs - base)

    def apply(self, head: str, move: Move) -> tuple[str, Made | Refused]:
        """Do what a request asks for, at whatever head it finds; returns the head after it."""
        if move.kind == "reset":
            return self._reset(head, move.ref)
        said = dict(move.said)
        # The action, word for word in Lua in `stores/lakefs/action.py`.
        if move.fenced and said.get("perago.expected_head") != head:
            return head, Refused(412)
        if move.kind == "merge":
            staged_on = self.commits[move.ref].parents[0]
            name = f"X{move.ref[1:]}" + ("" if staged_on == head else f"+{head}")
        else:
            name = f"I{move.who}/{head}"
        parents = (head,) if move.kind == "merge" else (head, move.ref)
        made = self.add(name, parents, self.merged(head, move.ref), move.said)
        return made, Made(made)

    def _reset(self, head: str, ref: str) -> tuple[str, Made | Refused]:
        if ref == BRANCH:
            return head, Made(head)
        if ref != SECOND_PARENT:
            return ref, Made(ref)
        parents = self.commits[head].parents
        if len(parents) < 2:
            return head, Refused(400)
        return parents[1], Made(parents[1])
