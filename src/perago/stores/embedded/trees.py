"""Trees: what a commit holds, as a list of ranges. Pure: bodies come in through ``load``.

Editing k of n keys rewrites only the ranges those keys fall into; comparing two trees skips the
ranges they share; listing a prefix reads only the ranges it overlaps.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from perago.protocol.values import Entry
from perago.stores.embedded.ranges import Item, Range, RangeCutter, digest, unpack

Tree = tuple[Range, ...]
Load = Callable[[str], bytes]
"""Gives the packed body of a range id."""

Edit = tuple[str, Entry | None]
"""A key and its new content; None deletes it."""

Piece = tuple[Range, bytes | None]
"""A range of an edited tree; the body is None when the range was there before."""


@dataclass(frozen=True, slots=True)
class KeyChange:
    """One key that differs between two trees; None where it does not exist."""

    key: str
    before: Entry | None
    after: Entry | None


def edit(tree: Tree, load: Load, edits: Iterable[Edit]) -> Iterator[Piece]:
    """Yield the ranges of the tree with ``edits`` (sorted, each key once) applied.

    Once a new cut falls on an old one, everything behind it is as before.
    """
    waiting = _Waiting(edits)
    cutter = RangeCutter()
    for position, old in enumerate(tree):
        last = position == len(tree) - 1
        if not cutter.open and not waiting.has(upto=None if last else old.last):
            yield old, None
            continue
        mine = waiting.take(upto=None if last else old.last)
        yield from cutter.feed(_overlay(unpack(load(old.id)), mine))
    if not tree:
        yield from cutter.feed(_overlay((), waiting.take(upto=None)))
    if cutter.open:
        yield cutter.close()


def scan(tree: Tree, load: Load, root: str) -> Iterator[Item]:
    """Yield the items whose key starts with ``root``, sorted."""
    for each in tree:
        if each.overlaps(root):
            for key, entry in unpack(load(each.id)):
                if key.startswith(root):
                    yield key, entry


def find(tree: Tree, load: Load, keys: Iterable[str]) -> dict[str, Entry]:
    """Look keys up; what is not in the tree is not in the answer."""
    wanted = sorted(set(keys))
    found: dict[str, Entry] = {}
    at = 0
    for each in tree:
        while at < len(wanted) and wanted[at] < each.first:
            at += 1
        if at == len(wanted):
            break
        if wanted[at] <= each.last:
            items = dict(unpack(load(each.id)))
            while at < len(wanted) and wanted[at] <= each.last:
                if (entry := items.get(wanted[at])) is not None:
                    found[wanted[at]] = entry
                at += 1
    return found


def diff(left: Tree, right: Tree, load: Load, root: str = "") -> Iterator[KeyChange]:
    """Yield the keys that differ, sorted. Equal ranges hold equal keys and are never read."""
    shared = {each.id for each in left} & {each.id for each in right}
    before = scan(tuple(each for each in left if each.id not in shared), load, root)
    after = scan(tuple(each for each in right if each.id not in shared), load, root)
    old, new = next(before, None), next(after, None)
    while old or new:
        if old and (not new or old[0] < new[0]):
            yield KeyChange(old[0], old[1], None)
            old = next(before, None)
        elif new and (not old or new[0] < old[0]):
            yield KeyChange(new[0], None, new[1])
            new = next(after, None)
        elif old and new:
            if old[1] != new[1]:
                yield KeyChange(old[0], old[1], new[1])
            old, new = next(before, None), next(after, None)


def encode(tree: Tree) -> bytes:
    """Write a tree down; equal trees give equal bytes."""
    rows = [(each.id, each.first, each.last, each.count) for each in tree]
    return json.dumps(rows, separators=(",", ":")).encode()


def decode(body: bytes) -> Tree:
    """Read what :func:`encode` wrote."""
    return tuple(Range(*row) for row in json.loads(body))


def tree_id(tree: Tree) -> str:
    """Name a tree: the same content has the same id, whatever led to it."""
    return digest(encode(tree))


class _Waiting:
    """Sorted edits that have not met their range yet."""

    def __init__(self, edits: Iterable[Edit]) -> None:
        self._edits = iter(edits)
        self._next = next(self._edits, None)

    def has(self, upto: str | None) -> bool:
        return self._next is not None and (upto is None or self._next[0] <= upto)

    def take(self, upto: str | None) -> Iterator[Edit]:
        while (edit := self._next) is not None and self.has(upto):
            self._next = next(self._edits, None)
            yield edit


def _overlay(items: Iterable[Item], edits: Iterator[Edit]) -> Iterator[Item]:
    """Merge two sorted streams; an edit wins over an item of the same key."""
    edited = next(edits, None)
    for key, entry in items:
        while edited is not None and edited[0] < key:
            if edited[1] is not None:
                yield edited[0], edited[1]
            edited = next(edits, None)
        if edited is not None and edited[0] == key:
            if edited[1] is not None:
                yield key, edited[1]
            edited = next(edits, None)
        else:
            yield key, entry
    while edited is not None:
        if edited[1] is not None:
            yield edited[0], edited[1]
        edited = next(edits, None)
