"""What guardrails on a table cost an attempt: none, eight in one pass, eight passes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel

from bench.comparison import Comparison, Options, Ratio, Work
from perago import WorkspaceSpec, task
from perago.data import (
    max_drift,
    require_not_null,
    require_rows,
    require_schema,
    require_unique,
    require_values,
)
from perago.testing import Lab

ROWS = 1_000_000
TABLE = "trips.parquet"
BARE, GUARDED, READ = "no guards", "eight guards", "read the table eight times"
GUARDS = (
    require_schema(TABLE, {"id": "bigint", "city": "string", "km": "double"}),
    require_rows(TABLE, min=1000),
    require_not_null(TABLE, "id"),
    require_not_null(TABLE, "city", "km"),
    require_unique(TABLE, "id"),
    require_values(TABLE, "km", min=0, max=500),
    require_values(TABLE, "city", allowed=["Bern", "Basel", "Genf"]),
    max_drift(TABLE, rows=0.9),
)


class Turn(BaseModel):
    """Which round it is."""

    turn: int


def step(name: str, guards: Sequence[object]) -> Callable[..., Turn]:
    """Make a task that touches a note beside the table."""

    @task(
        name=name,
        owner_email="bench@example.com",
        workspace=WorkspaceSpec(post=list(guards)),  # type: ignore[arg-type]
    )
    def change(workspace: Path, params: Turn) -> Turn:
        (workspace / "note.txt").write_text(str(params.turn))
        return params

    return change


@contextmanager
def comparison(_: Options) -> Iterator[Comparison]:
    """Run the same attempt on a table of a million rows."""
    with TemporaryDirectory(prefix="perago-bench-") as temporary:
        root = Path(temporary)
        table = _table(root / TABLE)
        lab = Lab(root / "lab")
        lab.commit({TABLE: table.read_bytes()})
        turn = 0

        def attempt(work: Callable[..., Turn]) -> Work:
            def run() -> None:
                nonlocal turn
                turn += 1
                found = lab.run(work, {"turn": turn})
                if not found.completed:
                    raise SystemExit(found.reason)

            return run

        def reads() -> None:
            for _ in GUARDS:
                pq.read_table(table)

        yield Comparison(
            name="guards",
            what=f"an attempt on a table of {ROWS:,} rows, pyarrow, embedded store",
            contenders={
                BARE: attempt(step("bare", ())),
                GUARDED: attempt(step("guarded", GUARDS)),
                READ: reads,
            },
            ratios=[Ratio("guards: eight guards / no guards", GUARDED, BARE)],
        )
        lab.close()


def _table(path: Path) -> Path:
    chance = random.Random(7)
    cities = ["Bern", "Basel", "Genf"]
    rows = pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "city": [cities[number % 3] for number in range(ROWS)],
            "km": [chance.uniform(0, 40) for _ in range(ROWS)],
        }
    )
    pq.write_table(rows, path)
    return path
