"""What became of the tables between two commits, for ``perago diff`` (X13)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from perago.cli.screen import plain, say
from perago.errors import PeragoError, RuntimeConfigError
from perago.ports import Fetch
from perago.protocol.parts import only_names_differ, tables_of
from perago.protocol.paths import Selection, plan_download
from perago.protocol.printable import size
from perago.protocol.table_comparison import TableComparison

if TYPE_CHECKING:
    from perago.ports import Store
    from perago.protocol.values import ChangeSet, Manifest

_ALL = Selection("")


@dataclass(frozen=True, slots=True)
class Versions:
    """Two commits of a repository."""

    store: Store
    repository: str
    before: str
    after: str

    def tables(self, steps: ChangeSet, most_bytes: int | None) -> Iterator[TableComparison]:
        """Compare the tables that are in both commits and whose files differ.

        By the names and checksums of their files; with ``most_bytes`` the rows of the others, too,
        where both versions together are no bigger.
        """
        for table, own in tables_of(steps).items():
            try:
                old, new = (self._files(ref, table) for ref in (self.before, self.after))
            except PeragoError as error:  # A name that cannot be a file of this machine.
                yield TableComparison(table, "unknown", why=error.message)
                continue
            if only_names_differ(own, old, new):
                yield TableComparison(table, "names")
            elif old and new and most_bytes is not None:
                yield self._read(table, old, new, most_bytes)

    def _files(self, ref: str, table: str) -> Manifest:
        root = f"{table}/" if table else ""
        return plan_download(_ALL, self.store.listing(self.repository, ref, root))

    def _read(self, table: str, old: Manifest, new: Manifest, most_bytes: int) -> TableComparison:
        total = sum(entry.size for entry in (*old.values(), *new.values()))
        if total > most_bytes:
            why = f"both versions have {size(total)}, more than {size(most_bytes)}"
            return TableComparison(table, "unknown", why=why)
        compare = _comparison()
        with TemporaryDirectory(prefix="perago-diff-") as scratch:
            before, after = Path(scratch, "before"), Path(scratch, "after")
            for to, ref, files in ((before, self.before, old), (after, self.after, new)):
                wanted = [Fetch(path, entry, to / path) for path, entry in files.items()]
                self.store.fetch(self.repository, ref, wanted, lambda _: None)
            return compare(before, after, table)


def say_tables(found: Iterable[TableComparison]) -> None:
    """Print what became of tables, one a line."""
    for table in found:
        say(f"[bold]=[/bold] {plain(table.table or '/')}: {plain(table)}")


def _comparison() -> Callable[[Path, Path, str], TableComparison]:
    try:
        from perago.data.comparing import compare
    except ModuleNotFoundError as error:
        raise RuntimeConfigError(
            f"comparing rows needs the package {error.name!r}", remedy="install 'perago[data]'"
        ) from None
    return compare
