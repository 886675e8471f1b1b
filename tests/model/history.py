"""A history as numbered lines: how a world came from its beginning to a state."""

from __future__ import annotations

from itertools import pairwise

from perago.stores.lakefs.hard import is_unfinished
from tests.model.search import Search
from tests.model.server import Made, Move, Refused
from tests.model.wire import Answer, AskEngine, AskStanding, Look, Post, ReadLedger, Report
from tests.model.world import GONE, Event, State, World


def tell(found: Search, state: State) -> list[str]:
    """Tell how a state was reached, one line for each step."""
    path = [state]
    while (before := found.came_from[path[-1]]) is not None:
        path.append(before)
    path.reverse()
    lines = []
    for here, there in pairwise(path):
        event = next(event for event, following in found.world.steps(here) if following == there)
        lines.append(line(found.world, event))
    return lines


def numbered(lines: list[str]) -> str:
    """Write lines with their numbers."""
    return "".join(f"{number:2}  {text}\n" for number, text in enumerate(lines, 1))


def line(world: World, event: Event) -> str:
    """Say in one line what happened."""
    who = "somebody" if event.who == GONE else world.scenario.writers[event.who].name
    match event.kind:
        case "answered":
            return f"{who} {_answered(event)}"
        case "unanswered":
            what = f"sends a {event.question}" if isinstance(event.question, Move) else "reports"
            return f"{who} {what}, and no answer comes"
        case "late":
            return f"the {_arrived(event, who)}"
        case "over":
            name = world.scenario.writers[world.scenario.tasks.index(event.who)].name
            return f"the engine gives {name} up, and hands out the next"
        case "dies":
            return f"{who} dies"
        case "person":
            return f"a person commits to the branch: the head is {event.answer}"


def _answered(event: Event) -> str:
    match event.question:
        case Look():
            return f"reads the head: {event.answer}"
        case ReadLedger() | Post():
            return _kept(event)
        case AskEngine() | AskStanding() as asked:
            about = f" who made the head: {asked[0]}," if isinstance(asked, AskStanding) else ":"
            return f"asks the engine{about} {event.answer}"
        case Report() as report:
            return f"reports: {_reported(report, event.answer)}"
        case Move(kind="reset", ref="main"):
            return "tries a reset of the branch to itself"
        case _:
            return f"{_does(event.question)}: {_effect(event.answer)}"


def _kept(event: Event) -> str:
    if isinstance(event.question, Post):
        return f"writes to the ledger: {event.question.name}"
    assert isinstance(event.answer, tuple)
    return f"reads the ledger: {', '.join(map(str, event.answer)) or 'nothing'}"


def _arrived(event: Event, who: str) -> str:
    if isinstance(event.question, Report):
        return f"report of {who} arrives: {_reported(event.question, event.answer)}"
    return f"{event.question} by {who} arrives: {_effect(event.answer)}"


def _does(move: object) -> str:
    assert isinstance(move, Move)
    if move.kind == "reset":
        return f"resets the branch to {move.ref}"
    return f"merges {move.ref}" + (" as an intent to replace" if move.kind == "intent" else "")


def _effect(answer: Answer | None) -> str:
    if isinstance(answer, Refused):
        return f"refused ({answer.status})"
    assert isinstance(answer, Made)
    return f"the head is {answer.ref}"


def _reported(report: Report, wanted: Answer | None) -> str:
    how = f"COMPLETED with {report.ref}" if report.completed else "FAILED"
    return f"{how}, {'accepted' if wanted else 'dropped'}"


def at_rest(world: World, state: State) -> str:
    """Name the branch as the next one to come sees it."""
    head = world.library.commits[state.head]
    seen = head.parents[1] if is_unfinished(head) else head.id
    return " -> ".join(reversed(world.library.line(seen)))
