"""Parts of a sorted listing: where to cut a range of keys whose number is unknown (X6).

Keys are ordered by code point, which is also the order of their UTF-8 bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

_BEYOND = 0x110000
_ASCII_END = 0x7F
_SURROGATES = range(0xD800, 0xE000)


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The keys after one, up to another and with it; None means to the end."""

    after: str = ""
    until: str | None = None

    def holds(self, key: str) -> bool:
        """Return whether a key is inside."""
        return key > self.after and (self.until is None or key <= self.until)

    def cut(self, at: str) -> tuple[KeyRange, KeyRange]:
        """Part it; together the two hold what it held, each key once."""
        return KeyRange(self.after, at), KeyRange(at, self.until)

    def narrowed(self, other: KeyRange) -> KeyRange | None:
        """Return what both hold, or None when that is nothing."""
        ends = [end for end in (self.until, other.until) if end is not None]
        both = KeyRange(max(self.after, other.after), min(ends, default=None))
        return both if both.until is None or both.until > both.after else None


EVERYTHING: Final = KeyRange()


def spans_of(cuts: Iterable[str], whole: KeyRange) -> Iterator[KeyRange]:
    """Yield the parts of a span between sorted cuts."""
    rest = whole
    for cut in cuts:
        first, rest = rest.cut(cut)
        yield first
    yield rest


def beyond(key: str, depth: int) -> str | None:
    """Return a text right after all that begin as a key does, ``depth`` characters long."""
    following = ord(key[depth - 1]) + 1
    if following in _SURROGATES:
        following = _SURROGATES.stop
    return None if following == _BEYOND else key[: depth - 1] + chr(following)


def middle(low: str, high: str | None) -> str | None:
    """Return a text between two others, near the middle of where keys are likely; None for none.

    ASCII is tried before the million characters behind it: nearly all keys are made of it.
    """
    same = 0
    while high is not None and same < min(len(low), len(high)) and low[same] == high[same]:
        same += 1
    head = low[:same]
    first = ord(low[same]) if same < len(low) else -1
    last = _BEYOND if high is None else ord(high[same]) if same < len(high) else -1
    if last <= first:
        return None
    if (between := _between(first, last)) is not None:
        return head + chr(between)
    if high is not None and len(high) > same + 1 and last > 0:
        return high[: same + 1]
    if first < 0:
        return None
    deeper = middle(low[same + 1 :], None)
    return None if deeper is None else low[: same + 1] + deeper


def _between(first: int, last: int) -> int | None:
    """Choose a character strictly between two; never NUL, never half a character."""
    if first < _ASCII_END < last - 1:
        return _ASCII_END
    return _valid((first + last) // 2, first, last)


def _valid(wanted: int, first: int, last: int = _BEYOND) -> int | None:
    found = max(wanted, 1)
    if found in _SURROGATES:
        found = _SURROGATES.stop if _SURROGATES.stop < last else _SURROGATES.start - 1
    return found if first < found < last else None
