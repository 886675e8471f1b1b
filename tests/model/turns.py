"""Two publishers of five turns each: read the head, ask, read again, publish, report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from perago.protocol.values import Phase, Status
from tests.model.wire import AskEngine, AskStanding, Report
from tests.model.world import CURRENT, WAITS, State, World

READ, FENCE, READ_AGAIN, PUBLISH, REPORT = range(5)
Order = tuple[int, ...]


def orders(turns: int = 5) -> Iterator[Order]:
    """Yield every order in which two publishers can take so many turns each."""
    for chosen in combinations(range(2 * turns), turns):
        yield tuple(0 if place in chosen else 1 for place in range(2 * turns))


def turn_of(world: World, state: State, who: int) -> int | None:
    """Tell which turn a publisher's next question belongs to; None when it has none."""
    standing = world.standing(state, who)
    if standing is None:
        return None
    if isinstance(standing.question, Report):
        return REPORT
    if standing.phase is Phase.PUBLISH:
        return PUBLISH
    if standing.phase is not Phase.FENCE_TWO:
        return READ  # The first fence and what `lineage` reads before it stages.
    if isinstance(standing.question, AskEngine | AskStanding):
        return FENCE
    asked = sum(isinstance(answer, Status) for answer in world.heard(state, who))
    return READ_AGAIN if asked > 1 else READ


def play(world: World, order: Order) -> State:
    """Let two publishers take their turns in this order; a turn is one act."""
    state = world.first()
    taken = [0, 0]
    for who in order:
        state = _hand_out(world, state, who)
        while turn_of(world, state, who) == taken[who]:
            state = world.answer(state, who)[1]
        taken[who] += 1
    return state


def _hand_out(world: World, state: State, who: int) -> State:
    """Let the retry exist from its first turn on, unless the attempt before it has completed."""
    mine = world.scenario.tasks[who]
    before = mine - 1
    if (
        mine < world.scenario.chain
        and state.tasks[mine] is WAITS
        and state.tasks[before] is CURRENT
    ):
        return world.time_out(state, before)
    return state


@dataclass(frozen=True)
class Turns:
    """When each of the two takes its turns, and what that means."""

    order: Order

    def __str__(self) -> str:
        return "".join("12"[who] for who in self.order)

    def of(self, who: int) -> list[int]:
        """Return when a publisher takes each of its turns."""
        return [place for place, taker in enumerate(self.order) if taker == who]

    def pauses(self, who: int) -> bool:
        """Tell whether the other publishes between this one's second read and its publication."""
        mine, others = self.of(who), self.of(1 - who)
        return mine[READ_AGAIN] < others[PUBLISH] < mine[PUBLISH]

    @property
    def overlap(self) -> bool:
        """Tell whether either of them does: the window that F3 leaves open."""
        return self.pauses(0) or self.pauses(1)

    @property
    def both_current(self) -> bool:
        """Tell whether attempt 1 was told that it is current before attempt 2 existed."""
        return self.of(0)[FENCE] < self.of(1)[READ]

    def meets(self, who: int) -> bool:
        """Tell whether one begins when the other has published."""
        return self.of(1 - who)[PUBLISH] < self.of(who)[READ]

    def overtakes(self, who: int) -> bool:
        """Tell whether a twin meets a publication whose completion is accepted after its fence."""
        mine, others = self.of(who), self.of(1 - who)
        return self.meets(who) and mine[FENCE] < others[REPORT] < mine[REPORT]

    @property
    def first_reports_first(self) -> bool:
        """Tell whether who publishes first also reports first."""
        return (self.of(0)[PUBLISH] < self.of(1)[PUBLISH]) == (
            self.of(0)[REPORT] < self.of(1)[REPORT]
        )
