"""A listing of many objects that exist only as names: what a huge prefix is simulated with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from perago.errors import NotFoundError
from perago.ports import Damage
from perago.protocol.values import Commit, ObjectInfo

COUNT = 60_000
OLD, NEW = "a" * 64, "b" * 64
_EVERY_ADDED, _EVERY_CHANGED, _EVERY_REMOVED = 1_000, 500, 3_000


class Crowd:
    """Two commits of ``count`` keys and more: computed page by page, never held."""

    readers = 1

    def __init__(self, count: int = COUNT) -> None:
        self.count = count

    def commit(self, repository: str, ref: str) -> Commit:  # noqa: ARG002 - a port
        """Resolve one of the two."""
        if ref not in {OLD, NEW}:
            raise NotFoundError(f"no {ref}")
        return Commit(ref, ())

    def page(
        self,
        repository: str,  # noqa: ARG002 - a port
        ref: str,
        root: str,
        after: str,
        limit: int,
    ) -> Sequence[ObjectInfo]:
        """Compute a page."""
        number = _after(after, self.count)
        found: list[ObjectInfo] = []
        while number < self.count and len(found) < limit:
            info = self._info(ref, number)
            if info is not None and info.key > after and info.key.startswith(root):
                found.append(info)
            number += 1
        return found

    def check(
        self,
        repository: str,  # noqa: ARG002 - a port
        ref: str,  # noqa: ARG002 - a port
        info: ObjectInfo,
        scratch: Path,  # noqa: ARG002 - a port
    ) -> Damage | None:
        """Find some of them damaged."""
        bad = info.key.endswith("777.parquet")
        return Damage(info.key, "corrupt", "it is another") if bad else None

    def _info(self, ref: str, number: int) -> ObjectInfo | None:
        key, version = key_of(number), 0
        if ref == OLD and number % _EVERY_ADDED == 0:
            return None
        if ref == NEW:
            if number % _EVERY_REMOVED == 1:
                return None
            version = int(number % _EVERY_CHANGED == 2)
        return ObjectInfo(key, 100 + version, f"md5:{number:031x}{version}")

    @property
    def kinds(self) -> dict[str, int]:
        """Count what the two commits differ in."""
        numbers = range(self.count)
        return {
            "added": sum(n % _EVERY_ADDED == 0 for n in numbers),
            "changed": sum(n % _EVERY_CHANGED == 2 for n in numbers),
            "removed": sum(n % _EVERY_REMOVED == 1 for n in numbers),
        }


def key_of(number: int) -> str:
    """Name an object; numbers and names are in the same order, most of them in one directory."""
    return f"lake/{'a' if number < COUNT // 50 else 'z'}/{number:09}.parquet"


def _after(key: str, count: int) -> int:
    """Return the first number whose name can be after a key: names are sorted, so halve."""
    low, high = 0, count
    while low < high:
        half = (low + high) // 2
        low, high = (half + 1, high) if key_of(half) <= key else (low, half)
    return low


def crowd() -> Crowd:
    """Open the one of the tests."""
    return Crowd()


def million() -> Crowd:
    """Open the one of the comparison."""
    return Crowd(1_000_000)
