"""Sorts the one thing in a Parquet file of Spark's that is left to chance (X13).

The footer lists the encodings of each column chunk. Parquet's writer for Java keeps them in a set
whose order is another one in every JVM, so equal tables have unequal bytes. The order means
nothing, each encoding is one byte, and a sorted list is as long: the bytes are swapped in place.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

MAGIC: Final = b"PAR1"
_TAIL: Final = 8
_MOST: Final = 8 << 20
"""A footer that is longer is left alone: reading it would take seconds."""
_LIST, _SET, _MAP, _STRUCT = 9, 10, 11, 12
_BOOLEANS: Final = (1, 2)
_NUMBERS: Final = (4, 5, 6)
_FIXED: Final = {3: 1, 7: 8, 13: 16}
_BINARY: Final = 8
_INT: Final = 5
_LONG_LIST: Final = 15
# Fields of parquet.thrift: FileMetaData.row_groups, RowGroup.columns, ColumnChunk.meta_data and
# ColumnMetaData.encodings.
_ROW_GROUPS, _COLUMNS, _META_DATA, _ENCODINGS = 4, 1, 3, 2


def settle(fd: int) -> bool:
    """Sort the encodings in the footer of an open file; tell whether any byte was changed.

    A file that is not Parquet, or not as expected in any way, stays as it is.
    """
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
        return False
    tail = os.pread(fd, _TAIL, max(0, found.st_size - _TAIL))
    length = int.from_bytes(tail[:4], "little")
    start = found.st_size - _TAIL - length
    if not tail.endswith(MAGIC) or length > _MOST or start < len(MAGIC):
        return False
    old = os.pread(fd, length, start)
    new = settled(old)
    if new == old:
        return False
    return os.pwrite(fd, new, start) == length


def settled(footer: bytes) -> bytes:
    """Return a footer with its lists of encodings sorted, or as it is when it cannot be read."""
    new = bytearray(footer)
    reader = _Reader(footer)
    try:
        for first, last in reader.encodings():
            new[first:last] = bytes(sorted(footer[first:last]))
    except (IndexError, ValueError, RecursionError):
        return footer
    return bytes(new) if reader.at == len(footer) else footer


@dataclass(slots=True)
class _Reader:
    """Reads Thrift's compact protocol; ``IndexError`` or ``ValueError`` when it is not that."""

    data: bytes
    at: int = 0

    def encodings(self) -> Iterator[tuple[int, int]]:
        """Yield where the encodings of each column chunk are."""
        for _ in self._structs(_ROW_GROUPS):
            for _ in self._structs(_COLUMNS):
                for column, kind in self._fields():
                    if (column, kind) != (_META_DATA, _STRUCT):
                        self._skip(kind)
                        continue
                    for field, inner in self._fields():
                        if (field, inner) == (_ENCODINGS, _LIST):
                            yield self._bytes()
                        else:
                            self._skip(inner)

    def _structs(self, wanted: int) -> Iterator[None]:
        """Stop at each struct of a list that is a field of this struct; the caller reads it."""
        for field, kind in self._fields():
            if (field, kind) != (wanted, _LIST):
                self._skip(kind)
                continue
            count, element = self._list()
            if element != _STRUCT:
                raise ValueError("not a list of structs")
            for _ in range(count):
                yield

    def _bytes(self) -> tuple[int, int]:
        """Read a list of small numbers, one byte each."""
        count, element = self._list()
        first, last = self.at, self.at + count
        if element != _INT or last > len(self.data) or any(b > 127 for b in self.data[first:last]):  # noqa: PLR2004 - the bit that says that a number goes on
            raise ValueError("not a list of small numbers")
        self.at = last
        return first, last

    def _fields(self) -> Iterator[tuple[int, int]]:
        """Yield number and type of each field of a struct; the caller reads the value."""
        number = 0
        while head := self._byte():
            step, kind = head >> 4, head & 15
            number = number + step if step else self._zigzag()
            yield number, kind

    def _list(self) -> tuple[int, int]:
        head = self._byte()
        count = head >> 4
        return (self._varint() if count == _LONG_LIST else count), head & 15

    def _skip(self, kind: int, *, inside: bool = False) -> None:
        """Read over a value; a boolean has a byte of its own only inside a list or map."""
        if kind in _BOOLEANS:
            self._take(int(inside))
        elif kind in _NUMBERS:
            self._varint()
        elif kind in _FIXED:
            self._take(_FIXED[kind])
        elif kind == _BINARY:
            self._take(self._varint())
        else:
            self._skip_nested(kind)

    def _skip_nested(self, kind: int) -> None:
        kinds: tuple[int, ...] = ()
        if kind == _STRUCT:
            for _, each in self._fields():
                self._skip(each)
            return
        if kind == _MAP:
            count = self._varint()
            kinds = divmod(self._byte(), 16) if count else ()
        elif kind in {_LIST, _SET}:
            count, element = self._list()
            kinds = (element,)
        else:
            raise ValueError(f"no type {kind}")
        for _ in range(count):
            for each in kinds:
                self._skip(each, inside=True)

    def _byte(self) -> int:
        self._take(1)
        return self.data[self.at - 1]

    def _take(self, count: int) -> None:
        if self.at + count > len(self.data):
            raise IndexError(self.at)
        self.at += count

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:  # noqa: PLR2004 - as above
                return value
            shift += 7

    def _zigzag(self) -> int:
        value = self._varint()
        return value >> 1 ^ -(value & 1)
