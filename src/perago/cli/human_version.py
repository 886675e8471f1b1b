"""What an approval is about: a version beside the one before it (Q14)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from perago.cli.screen import plain, say, say_steps, short
from perago.cli.tables import Versions, say_tables
from perago.errors import PeragoError
from perago.protocol.table_comparison import TableComparison
from perago.protocol.values import ChangeSet

if TYPE_CHECKING:
    from perago.human.attempts import HumanStep

_MOST_BYTES: Final = 256_000_000
_GUARDS: Final = "perago.data_guards"


@dataclass(frozen=True, slots=True)
class VersionDifference:
    """Two commits, and what differs between them."""

    base: str
    ref: str
    steps: ChangeSet
    tables: tuple[TableComparison, ...]
    guards: str = ""
    """What the guards of the version said of its tables."""

    def as_json(self) -> dict[str, object]:
        """Return it as plain values."""
        return {
            "base": self.base,
            "ref": self.ref,
            **self.steps.as_json(),
            "tables": [table.as_json() for table in self.tables],
            "guards": self.guards,
        }

    def say(self) -> None:
        """Print it."""
        say_steps(f"[bold]{short(self.base)} .. {short(self.ref)}[/bold]", self.steps)
        say_tables(self.tables)
        if self.guards:
            say(f"  [dim]guards:[/dim] {plain(self.guards)}")


def difference_of(step: HumanStep) -> VersionDifference | None:
    """Compare the version of a step with ``params.base``, or with the one before it."""
    workspace, spec = step.workspace, step.definition.workspace
    if workspace is None or spec is None:
        return None
    store, name, params = step.store, workspace.repository, step.task.input.get("params")
    given = params.get("base") if isinstance(params, Mapping) else None
    found = store.commit(name, workspace.ref)
    base = store.commit(name, str(given)).id if given else found.parent or found.id
    steps = store.diff(name, base, found.id, spec.selection.root)
    versions = Versions(store, name, base, found.id)
    try:
        tables = tuple(versions.tables(steps, _MOST_BYTES))
    except PeragoError:  # Without pyarrow there are files, and no figures of tables.
        tables = tuple(versions.tables(steps, None))
    return VersionDifference(base, found.id, steps, tables, found.metadata.get(_GUARDS, ""))
