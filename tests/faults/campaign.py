"""Many cases at once: workflows are begun ahead of the tests that wait for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import pytest

from tests.faults.rig import Begun

C = TypeVar("C")
AHEAD = 10


class Campaign(Generic[C]):
    """Begins each case once; the next ones too, so that the workers never wait for a test."""

    def __init__(self, order: Sequence[C], begin: Callable[[C], Begun], ahead: int = AHEAD) -> None:
        self._order = list(order)
        self._begin = begin
        self._ahead = ahead
        self._begun: dict[C, Begun] = {}

    def take(self, case: C) -> Begun:
        """Return the workflow of a case."""
        at = self._order.index(case)
        for one in self._order[at : at + self._ahead]:
            if one not in self._begun:
                self._begun[one] = self._begin(one)
        return self._begun[case]


def cases_of(request: pytest.FixtureRequest, function: str, kind: type[C]) -> list[C]:
    """List the chosen cases of a test, in the order in which they will run."""
    items = [item for item in request.session.items if isinstance(item, pytest.Function)]
    cases = [item.callspec.params["case"] for item in items if item.originalname == function]
    return [case for case in cases if isinstance(case, kind)]
