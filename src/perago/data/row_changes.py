"""Which rows of a table were added, removed and changed between two versions, with samples."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from perago.data.comparing import BATCH, exact_values, open_version
from perago.data.showing import Cells, cells, count, unreadable
from perago.data.types import type_name
from perago.protocol.table_comparison import choose_key

MOST_ROWS = 200_000
"""Of larger tables only the columns are compared: rows are compared one by one."""
_KEYS_TRIED = 40
"""So many columns are looked at for one that tells rows apart."""
_COLUMNS_SHOWN = 30
_Row = tuple[bytes, bytes, pa.RecordBatch, int]
"""The key of a row, the hash of all of it, and where it is."""


@dataclass(frozen=True, slots=True)
class RowChanges:
    """How one version of a table became another."""

    added_columns: tuple[tuple[str, str], ...]
    removed_columns: tuple[tuple[str, str], ...]
    retyped_columns: tuple[tuple[str, str, str], ...]
    """Name, type before, type after."""
    before: int
    after: int
    """How many rows there are."""
    columns: tuple[str, ...] = ()
    """What the samples show."""
    candidates: tuple[str, ...] = ()
    """Columns that tell rows apart."""
    key: str | None = None
    told: str = ""
    """How rows were compared, or why they were not."""
    added: int = 0
    removed: int = 0
    changed: int = 0
    added_rows: tuple[Cells, ...] = ()
    removed_rows: tuple[Cells, ...] = ()
    changed_rows: tuple[tuple[Cells, Cells], ...] = ()


def row_changes(before: Path, after: Path, table: str, key: str, most: int) -> RowChanges:
    """Compare the table at a path below two directories; ``most`` rows of each kind are shown."""
    try:
        old, new = open_version(before, table), open_version(after, table)
        return _compared(old, new, key, most)
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise unreadable(error, before, after) from None


def _compared(old: ds.Dataset, new: ds.Dataset, asked: str, most: int) -> RowChanges:
    had, has = ({field.name: type_name(field.type) for field in data.schema} for data in (old, new))
    common = [name for name in had if has.get(name) == had[name]]
    schema = RowChanges(
        added_columns=tuple((name, has[name]) for name in has if name not in had),
        removed_columns=tuple((name, had[name]) for name in had if name not in has),
        retyped_columns=tuple(
            (name, had[name], has[name]) for name in had if has.get(name, had[name]) != had[name]
        ),
        before=count(old),
        after=count(new),
    )
    if max(schema.before, schema.after) > MOST_ROWS:
        return replace(schema, told=f"rows were not compared: there are more than {MOST_ROWS:,}")
    if not common:
        return replace(schema, told="rows were not compared: no column is the same in both")
    tried = [*([asked] if asked in common else []), *common[:_KEYS_TRIED]]
    unique = [name for name in dict.fromkeys(tried) if _tells_apart(old, new, name)]
    key, told = choose_key(asked, common, unique)
    found = _Comparison(common, key, most)
    found.run(old, new)
    return replace(
        schema,
        columns=tuple(found.shown),
        candidates=tuple(unique),
        key=key,
        told=told,
        added=found.added,
        removed=found.removed,
        changed=found.changed,
        added_rows=tuple(found.added_rows),
        removed_rows=tuple(found.removed_rows),
        changed_rows=tuple(found.changed_rows.values()),
    )


def _tells_apart(old: ds.Dataset, new: ds.Dataset, name: str) -> bool:
    """Return whether a column has no value twice and none missing, in both versions."""
    for data in (old, new):
        column = data.to_table(columns=[name], use_threads=False)[name]
        if column.null_count or pa.types.is_floating(column.type):
            return False
        try:
            if pc.count_distinct(column).as_py() < len(column):
                return False
        except pa.ArrowNotImplementedError:  # A list or a map.
            return False
    return True


@dataclass
class _Comparison:
    """One pass over the old rows, one over the new; a third fetches samples of the old."""

    columns: Sequence[str]
    key: str | None
    most: int
    added: int = 0
    removed: int = 0
    changed: int = 0
    added_rows: list[Cells] = field(default_factory=list)
    removed_rows: list[Cells] = field(default_factory=list)
    changed_rows: dict[bytes, tuple[Cells, Cells]] = field(default_factory=dict)

    def run(self, old: ds.Dataset, new: ds.Dataset) -> None:
        """Count, and keep the first rows of each kind."""
        counted = Counter((key, whole) for key, whole, _, _ in self._rows(old))
        # A key is there once, or there is none: then a row is nothing but its hash.
        held = dict(counted.keys()) if self.key is not None else {}
        altered: dict[bytes, Cells] = {}
        for key, whole, batch, at in self._rows(new):
            if counted[key, whole] > 0:
                counted[key, whole] -= 1
            elif key in held:
                counted[key, held[key]] -= 1
                self.changed += 1
                if len(altered) < self.most:
                    altered[key] = self._cells(batch, at)
            else:
                self.added += 1
                if len(self.added_rows) < self.most:
                    self.added_rows.append(self._cells(batch, at))
        left = +counted
        self.removed = left.total()
        if left or altered:
            self._fetch(old, left, altered)

    def _fetch(
        self, old: ds.Dataset, left: Counter[tuple[bytes, bytes]], altered: dict[bytes, Cells]
    ) -> None:
        for key, whole, batch, at in self._rows(old):
            if left[key, whole] > 0 and len(self.removed_rows) < self.most:
                left[key, whole] -= 1
                self.removed_rows.append(self._cells(batch, at))
            elif self.key is not None and key in altered:
                self.changed_rows[key] = (self._cells(batch, at), altered[key])

    @property
    def shown(self) -> list[str]:
        """The columns of samples: the key, and the first of the others."""
        first = [self.key] if self.key is not None else []
        return list(dict.fromkeys([*first, *self.columns]))[:_COLUMNS_SHOWN]

    def _cells(self, batch: pa.RecordBatch, at: int) -> Cells:
        return cells(batch.slice(at, 1).select(self.shown))[0]

    def _rows(self, data: ds.Dataset) -> Iterator[_Row]:
        batches = data.to_batches(
            columns=list(self.columns), batch_size=BATCH, batch_readahead=1, use_threads=False
        )
        for batch in batches:
            values = [exact_values(column) for column in batch.columns]
            keys = values[self.columns.index(self.key)] if self.key is not None else ()
            for at, row in enumerate(zip(*values, strict=True)):
                yield _hash(keys[at]) if keys else b"", _hash(row), batch, at


def _hash(value: object) -> bytes:
    text = repr(value).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=16).digest()
