"""Ranges: the sorted keys of a commit, cut where the keys themselves say so. Pure.

A range ends after a key whose hash is a multiple of ``EVERY``, or when it is ``LONGEST`` keys
long. Cuts depend on the keys alone, so two versions of a tree share every range that the change
between them did not touch, however the versions came about.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b, sha256

from perago.protocol.values import Entry

ALGORITHM = "sha256"
EVERY = 512
LONGEST = 4 * EVERY

_SCHEME = f"{ALGORITHM}:"
_DIGEST_BYTES = 32
_COUNT = struct.Struct("<I")

Item = tuple[str, Entry]


@dataclass(frozen=True, slots=True)
class Range:
    """A run of neighbouring keys; ``id`` is the hash of its packed body."""

    id: str
    first: str
    last: str
    count: int

    def overlaps(self, root: str) -> bool:
        """Return whether a key that starts with ``root`` could be inside."""
        return self.last >= root and (self.first < root or self.first.startswith(root))


class RangeCutter:
    """Takes sorted items and gives back whole ranges; ``open`` is what has no end yet."""

    def __init__(self) -> None:
        self.open: list[Item] = []

    def feed(self, items: Iterable[Item]) -> Iterator[tuple[Range, bytes]]:
        """Yield each range that is completed by these items, with its body."""
        for item in items:
            self.open.append(item)
            if len(self.open) == LONGEST or ends_range(item[0]):
                yield self.close()

    def close(self) -> tuple[Range, bytes]:
        """End the open range here."""
        items, self.open = self.open, []
        body = pack(items)
        return Range(digest(body), items[0][0], items[-1][0], len(items)), body


def ends_range(key: str) -> bool:
    """Return whether a key is the last of its range wherever it appears."""
    hashed = blake2b(key.encode(), digest_size=4).digest()
    return int.from_bytes(hashed, "big") % EVERY == 0


def pack(items: Sequence[Item]) -> bytes:
    """Write items column by column: key lengths, sizes, digests, keys."""
    keys = [key.encode() for key, _ in items]
    count = len(items)
    return b"".join(
        (
            _COUNT.pack(count),
            struct.pack(f"<{count}H", *map(len, keys)),
            struct.pack(f"<{count}Q", *(entry.size for _, entry in items)),
            *(bytes.fromhex(hex_of(entry.checksum)) for _, entry in items),
            *keys,
        )
    )


def unpack(body: bytes) -> Iterator[Item]:
    """Read what :func:`pack` wrote."""
    (count,) = _COUNT.unpack_from(body)
    lengths = struct.unpack_from(f"<{count}H", body, at := _COUNT.size)
    sizes = struct.unpack_from(f"<{count}Q", body, at := at + 2 * count)
    start = (at := at + 8 * count) + _DIGEST_BYTES * count
    contents = body[at:start].hex(":", _DIGEST_BYTES).split(":")
    for length, size, content in zip(lengths, sizes, contents, strict=True):
        yield body[start : start + length].decode(), Entry(size, _SCHEME + content)
        start += length


def digest(body: bytes) -> str:
    """Name a body by its content."""
    return sha256(body).hexdigest()


def hex_of(checksum: str) -> str:
    """Take the digest out of an entry's checksum."""
    return checksum.removeprefix(_SCHEME)
