"""Every object of a commit read again and compared with its listing (X6, D3)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Final

from perago.ports import Damage
from perago.protocol.values import ObjectInfo
from perago.stores.key_ranges import STEP, Listed
from perago.transfer import parallel

MOST_NAMED: Final = 1000
Seen = Callable[[int, int], None]
"""Called with how many objects and bytes were just read."""


@dataclass(slots=True)
class Verified:
    """What was found; all of it is counted, the first of what is damaged is named.

    ``unchecked`` had the right size, and the store says nothing more of them.
    """

    objects: int = 0
    bytes: int = 0
    unchecked: int = 0
    missing: int = 0
    corrupt: int = 0
    named: list[Damage] = field(default_factory=list)

    @property
    def damaged(self) -> int:
        """Count what is not as it was stored."""
        return self.missing + self.corrupt

    def add(self, other: Verified) -> None:
        """Take in what was found elsewhere."""
        self.objects += other.objects
        self.bytes += other.bytes
        self.unchecked += other.unchecked
        self.missing += other.missing
        self.corrupt += other.corrupt
        self.named += other.named[: MOST_NAMED - len(self.named)]


def verify(listed: Listed, scratch: Path, seen: Seen = lambda _objects, _bytes: None) -> Verified:
    """Check what a listing holds, a page at a time, with threads."""
    total = Verified()
    for page in _pages(listed):
        found = check(listed, page, scratch)
        seen(found.objects, found.bytes)
        total.add(found)
    total.named.sort(key=lambda damage: damage.key)
    return total


def check(listed: Listed, infos: Sequence[ObjectInfo], scratch: Path) -> Verified:
    """Check some objects of a commit at once."""
    wanted = [info for info in infos if info.kind == "object"]
    listing = listed.listing
    found = parallel.each(
        wanted,
        lambda info, _: listing.check(listed.repository, listed.commit, info, scratch),
        lambda _: None,
        threads=listing.readers,
    )
    damages = [damage for damage in found if damage is not None]
    return Verified(
        objects=len(wanted),
        bytes=sum(info.size for info in wanted),
        unchecked=sum(not _is_checkable(info) for info in wanted),
        missing=sum(damage.problem == "missing" for damage in damages),
        corrupt=sum(damage.problem != "missing" for damage in damages),
        named=damages[:MOST_NAMED],
    )


def _pages(listed: Listed) -> Iterator[list[ObjectInfo]]:
    walked = listed.walk()
    while page := list(islice(walked, STEP)):
        yield page


def _is_checkable(info: ObjectInfo) -> bool:
    return info.checksum.partition(":")[0] in hashlib.algorithms_guaranteed
