"""K5 among attempts that will not die: an adopted publication is a completed one (V3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from perago.ledger.sql import SqlLedger
from perago.ledger.sqlite import SqliteDatabase
from perago.tasks.declaration import definition_of
from perago.testing import Lab, Run
from tests.model import tasks
from tests.model.search import explore
from tests.model.tales import ADOPTED, THREE_WITH_LEDGER, tale
from tests.model.tasks import GIVEN
from tests.model.walker import Walker
from tests.model.world import World


def test_v3_under_hard_no_history_of_three_attempts_loses_an_adopted_publication() -> None:
    """Without the rule that nobody else may still replace it, one does: the page tells it."""
    found = explore(World(THREE_WITH_LEDGER))
    assert not {"V1", "V3", "V4"} & found.broken.keys()
    adopted = [
        state for state in found.came_from if any(": adopt" in name for name in state.ledger)
    ]
    assert any(state.accepted[2] for state in adopted)
    assert "attempt 3 writes to the ledger: execution-3: adopt X1" in tale(ADOPTED)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    ledger = SqlLedger(SqliteDatabase(tmp_path / "ledger.sqlite"))
    made = Lab(tmp_path / "lab", ledger=ledger)
    made.commit(GIVEN)
    yield made
    made.close()
    ledger.close()


@pytest.mark.parametrize(
    "task", [tasks.head, tasks.lineage, tasks.hard], ids=["head", "lineage", "hard"]
)
def test_v3_no_earlier_attempt_takes_an_adopted_publication_away(
    lab: Lab, task: Callable[..., Any]
) -> None:
    """Adoption writes nothing, so a replacement that was decided before still finds its head."""
    params = {"text": "same"}

    def retry(walker: Walker) -> Walker:
        run = Run(lab, definition_of(task), walker.attempt, walker.workspace, params, None, "")
        return Walker(lambda faults: lab.retry(run, faults=faults))

    first = Walker(lambda faults: lab.run(task, params, faults=faults))
    first.walk("decision")
    second = retry(first)
    second.walk("after body")
    first.finish()  # It publishes, and nobody wants its completion (R2).
    second.walk("decision")  # What it meets is an abandoned publication.
    third = retry(second)
    third.finish()
    assert third.run
    assert third.run.completed, third.run.reason
    second.finish()
    line = [commit.id for commit in lab.store.history(lab.repository, "main")]
    assert third.run.ref in line, "V3: it was accepted, and an earlier attempt has taken it away"
