"""Breadth first through all states of a world, each visited once; what breaks is shortest first."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from tests.model.properties import Properties
from tests.model.world import State, World


@dataclass
class Search:
    """What was found in one world."""

    world: World
    came_from: dict[State, State | None] = field(default_factory=dict)
    broken: dict[str, list[State]] = field(default_factory=dict)
    steps: int = 0


def explore(world: World) -> Search:
    """Visit every state that can be reached."""
    found = Search(world)
    properties = Properties(world)
    first = world.first()
    found.came_from[first] = None
    todo = deque([first])
    while todo:
        state = todo.popleft()
        for _, following in world.steps(state):
            found.steps += 1
            if following in found.came_from:
                continue
            found.came_from[following] = state
            todo.append(following)
            for name in properties.broken(following):
                found.broken.setdefault(name, []).append(following)
    return found
