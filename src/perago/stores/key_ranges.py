"""A huge listing in parts: cut without counting it, walked without holding it (X6)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from perago.ports import PagedListing
from perago.protocol.key_ranges import EVERYTHING, KeyRange, beyond, middle
from perago.protocol.values import ObjectInfo

STEP: Final = 1000
"""So many keys are asked for at once: what a lakeFS server gives in one answer."""
_TRIES: Final = 64
_JOINED: Final = 8
_PROBES_FOR_A_PART: Final = 48


@dataclass(frozen=True, slots=True)
class Listed:
    """One commit's keys below a root, on some store."""

    listing: PagedListing
    repository: str
    commit: str
    root: str = ""

    def walk(self, span: KeyRange = EVERYTHING, step: int = STEP) -> Iterator[ObjectInfo]:
        """Yield what a span holds, sorted; one page in memory."""
        after = span.after
        while True:
            page = self._page(after, step)
            for info in page:
                if span.until is not None and info.key > span.until:
                    return
                yield info
            if len(page) < step:
                return
            after = page[-1].key

    def more_than(self, count: int) -> bool:
        """Return whether there are more keys than that; reads no further."""
        return any(True for number, _ in enumerate(self.walk()) if number == count)

    def split(self, parts: int, whole: KeyRange = EVERYTHING) -> list[KeyRange]:
        """Cut a span into about so many parts with more than a page each, and the rest.

        The parts hold every key once wherever the cuts fall: probing only decides how even they
        are. What fits on a page is not cut any further; what does not is halved by its keys, so a
        crowded directory is cut as often as it needs, and empty parts of the alphabet are not.
        """
        cutting = _Cutting(self, parts)
        cutting.run(whole)
        return sorted(cutting.spans(), key=lambda span: span.after)

    def _page(self, after: str, limit: int) -> list[ObjectInfo]:
        return list(self.listing.page(self.repository, self.commit, self.root, after, limit))

    def first_after(self, key: str) -> str | None:
        """Return the next key, or None at the end."""
        page = self._page(key, 1)
        return page[0].key if page else None

    def last_of_page(self, span: KeyRange) -> str | None:
        """Return the last key of the first page, or None when the span ends on it."""
        page = self._page(span.after, STEP)
        crowded = len(page) == STEP and span.holds(page[-1].key)
        return page[-1].key if crowded else None


class _Cutting:
    """Breadth first: the oldest crowded part is cut next."""

    def __init__(self, listed: Listed, parts: int) -> None:
        self._listed = listed
        self._parts = parts
        self._probes_left = _PROBES_FOR_A_PART * parts
        self._crowded: deque[tuple[KeyRange, str | None]] = deque()
        self._done: list[KeyRange] = []

    def run(self, whole: KeyRange) -> None:
        self._add(whole, whole.until)
        while self._crowded and len(self._crowded) < self._parts and self._probes_left > 0:
            span, ceiling = self._crowded.popleft()
            found = self._cut(span, ceiling)
            if found is None:
                self._done.append(span)
                self._parts -= 1
                continue
            cut, ceiling = found
            left, right = span.cut(cut)
            self._add(left, cut)
            self._add(right, ceiling)

    def spans(self) -> list[KeyRange]:
        """Return all parts; light neighbours were joined as far as they touch."""
        return _joined(self._done, {span for span, _ in self._crowded})

    def _add(self, span: KeyRange, ceiling: str | None) -> None:
        self._probes_left -= 1
        if self._listed.last_of_page(span) is None:
            self._done.append(span)
        else:
            self._crowded.append((span, ceiling))

    def _cut(self, span: KeyRange, ceiling: str | None) -> tuple[str, str | None] | None:
        """Find a place with keys on both sides: more than a page before it, one behind it."""
        low = self._listed.last_of_page(span) or span.after
        ceiling = self._lowered(low, ceiling)
        for _ in range(_TRIES):
            cut = middle(low, ceiling)
            if cut is None:
                return None
            if self._any(cut, ceiling):
                return cut, ceiling
            ceiling = cut  # Nothing is behind it: look further down.
        return None

    def _lowered(self, low: str, ceiling: str | None) -> str | None:
        """Find how much of a key all the following ones have in common: the cut is behind that."""
        common, differs = 0, len(low) + 1
        while differs - common > 1:
            depth = (common + differs) // 2
            edge = beyond(low, depth)
            if edge is not None and (ceiling is None or edge < ceiling):
                if self._any(edge, ceiling):
                    differs = depth
                    continue
                ceiling = edge
            common = depth
        return ceiling

    def _any(self, after: str, ceiling: str | None) -> bool:
        self._probes_left -= 1
        found = self._listed.first_after(after)
        return found is not None and (ceiling is None or found <= ceiling)


def _joined(light: list[KeyRange], crowded: set[KeyRange]) -> list[KeyRange]:
    """Join parts of a page and less with the one before them, a few pages at most."""
    found: list[KeyRange] = []
    joined = 0
    for span in sorted((*light, *crowded), key=lambda each: each.after):
        previous = found[-1] if found else None
        if (
            previous is not None
            and span not in crowded
            and previous not in crowded
            and previous.until == span.after
            and joined < _JOINED
        ):
            found[-1] = KeyRange(previous.after, span.until)
            joined += 1
        else:
            found.append(span)
            joined = 0
    return found
