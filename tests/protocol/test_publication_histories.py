"""The publish fence over every small history: all shapes of up to 4 commits, all A, H, C, writers.

Each case is checked against an oracle written from the text of sections 8 and 9, and the decision
is then carried out on a model of the branch, where the invariants of the specification must hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import permutations, product

import pytest

from perago.protocol.kinds import FenceKind
from perago.protocol.lineage import first_parent_range
from perago.protocol.publication import (
    Decision,
    Keep,
    Merge,
    Refuse,
    Relocate,
    Replace,
    Situation,
    decide,
)
from perago.protocol.replacement import Standings
from perago.protocol.values import Commit, Status
from tests.protocol.identities import ABANDONED, ME, METADATA, MY_KEY, Writer

Shape = tuple[tuple[str, ...], ...]
Graph = Mapping[str, Commit]
NAMES = "pqrs"
CASES = {1: 10, 2: 160, 3: 4_860, 4: 187_200}
OWN_STEP = frozenset({Writer.MINE, Writer.TWIN, Writer.EARLIER})


@dataclass(frozen=True, slots=True)
class Case:
    """One state of the world when an attempt is about to publish."""

    graph: Graph
    writers: Mapping[str, Writer]
    input_ref: str
    head: str
    changed: bool
    intent: bool

    def line(self, start: str) -> list[str]:
        """Follow first parents down to a root."""
        return walk(self.graph, start)


def walk(graph: Graph, start: str) -> list[str]:
    found = [start]
    while parents := graph[found[-1]].parents:
        found.append(parents[0])
    return found


def shapes(size: int) -> Iterator[Shape]:
    """Give each commit no parent, one earlier parent, or two in either order."""
    choices = [[(), *((p,) for p in NAMES[:i]), *permutations(NAMES[:i], 2)] for i in range(size)]
    yield from product(*choices)


def cases(size: int) -> Iterator[Case]:
    """Vary who wrote each commit a fence can see: the first-parent line of the head."""
    for shape in shapes(size):
        bare = {name: Commit(name, parents) for name, parents in zip(NAMES, shape, strict=False)}
        for head, top in bare.items():
            seen = walk(bare, head)
            for writers in product(Writer, repeat=len(seen)):
                who = dict(zip(seen, writers, strict=True))
                signed = {name: replace(bare[name], metadata=METADATA[who[name]]) for name in who}
                for intent in {False, len(top.parents) > 1}:
                    graph = bare | signed
                    if intent:
                        said = {**graph[head].metadata, "perago.intent": "replace"}
                        graph[head] = replace(top, metadata=said)
                    for input_ref, changed in product(bare, (True, False)):
                        yield Case(graph, who, input_ref, head, changed, intent)


def ask(fence: FenceKind, case: Case, standings: Standings) -> Decision:
    history = (case.graph[name] for name in case.line(case.head))
    between = first_parent_range(case.input_ref, history)
    return decide(
        fence,
        Situation(
            input_ref=case.input_ref,
            head=case.graph[case.head],
            staged="C" if case.changed else None,
            attempt=ME,
            range_to_input=between if fence == "lineage" else (),
            standings=standings,
        ),
    )


STANDINGS: dict[str, Standings] = {
    "abandoned": ABANDONED,
    "completed": dict.fromkeys(ABANDONED, Status.COMPLETED),
    "open": dict.fromkeys(ABANDONED, Status.IN_PROGRESS),
    "not known": dict.fromkeys(ABANDONED),
    "not asked": {},
}
REPLACEABLE = {
    "abandoned": frozenset(Writer),
    "completed": frozenset({Writer.SILENT}),
    "open": OWN_STEP | {Writer.SILENT},
    "not known": frozenset(Writer),
    "not asked": frozenset({Writer.SILENT}),
}
"""P2a in other words: whose work may leave the branch; all of these are of one workflow."""


def oracle(fence: FenceKind, case: Case, standings: str) -> str:
    """Sections 8 and 9 in other words; answers with the name of the expected decision."""
    line = case.line(case.head)
    steps = line.index(case.input_ref) if case.input_ref in line else None
    if case.intent:
        return "Refuse"
    if steps == 0:
        return "Merge" if case.changed else "Keep"
    if steps is None:
        return "Refuse"
    between = [case.writers[name] for name in line[:steps]]
    if fence == "lineage":
        accepted = all(writer in OWN_STEP for writer in between)
        verdict = "Merge" if case.changed else "Relocate"
    else:
        accepted = steps == 1 and (fence == "head" or between == [Writer.EARLIER])
        verdict = "Replace" if case.changed else "Relocate"
    return verdict if accepted and REPLACEABLE[standings].issuperset(between) else "Refuse"


def carry_out(fence: FenceKind, case: Case, decision: Decision) -> tuple[dict[str, Commit], str]:
    """Do to a model branch what a store does; C is staged on the base the fence chose."""
    graph = dict(case.graph)
    said = METADATA[Writer.MINE]
    base = case.head if fence == "lineage" else case.input_ref
    graph["C"] = Commit("C", (base,), metadata=said)
    match decision:
        case Merge(head, source):
            assert source == "C"
            graph["M"] = Commit("M", (head,), metadata=said)
            return graph, "M"
        case Replace(_, source):
            return graph, source
        case Relocate(_, to):
            return graph, to
        case Keep(head):
            return graph, head
        case Refuse():
            return graph, case.head


def check_invariants(fence: FenceKind, case: Case, decision: Decision) -> None:
    graph, head = carry_out(fence, case, decision)
    line = walk(graph, head)
    direct = case.head == case.input_ref or case.graph[case.head].parent == case.input_ref
    match decision:
        case Refuse():
            assert head == case.head, "a refusal writes nothing"
            return
        case Keep() | Relocate():
            assert head == case.input_ref, "N4: after a no-op the head is the output ref"
        case Merge() | Replace() if fence != "lineage":
            assert direct, "nothing is written unless H is A or parent(H) is A"
    assert decision.head == case.head, "a decision is about the head that was read"
    if fence == "lineage":
        above = line[: line.index(case.input_ref)]
        keys = {graph[name].metadata.get("perago.logical_task_key") for name in above}
        assert keys <= {MY_KEY}, "V1: under lineage every commit above A is of this step"
        return
    assert line[0] == case.input_ref or line[1] == case.input_ref, "V1: A, or A -> X"
    if case.head != case.input_ref:
        assert case.head not in line, "never A -> H -> C"
        if fence == "hard":
            assert case.writers[case.head] is Writer.EARLIER, "K3: neither strangers nor twins"


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("fence", ["head", "lineage", "hard"])
def test_every_history_is_decided_as_the_specification_says(fence: FenceKind, size: int) -> None:
    """P1-P3, N1-N4, K1, K2, K3, K6 and V1 over every history of ``size`` commits."""
    seen: Counter[str] = Counter()
    for case in cases(size):
        decision = ask(fence, case, ABANDONED)
        expected = oracle(fence, case, "abandoned")
        assert type(decision).__name__ == expected, case
        check_invariants(fence, case, decision)
        seen[expected] += 1
    assert seen.total() == CASES[size]
    reachable = {"Keep", "Merge"} | ({"Relocate", "Refuse"} if size > 1 else set())
    reachable |= {"Replace"} if size > 1 and fence != "lineage" else set()
    assert set(seen) == reachable, "the enumeration meets every row of the table"


@pytest.mark.parametrize("standings", [name for name in STANDINGS if name != "abandoned"])
@pytest.mark.parametrize("fence", ["head", "lineage", "hard"])
def test_p2a_every_history_is_decided_by_what_the_broker_says(
    fence: FenceKind, standings: str
) -> None:
    for case in (case for size in (1, 2, 3) for case in cases(size)):
        decision = ask(fence, case, STANDINGS[standings])
        assert type(decision).__name__ == oracle(fence, case, standings), case
        check_invariants(fence, case, decision)


def test_the_enumeration_holds_every_shape() -> None:
    """1 root; then 2, 5 and 10 ways to choose no, one or two earlier parents."""
    assert [sum(1 for _ in shapes(size)) for size in (1, 2, 3, 4)] == [1, 2, 10, 100]
