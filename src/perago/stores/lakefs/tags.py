"""What the checksum of a listing is a checksum of.

lakeFS gives 32 digits for every object and does not say of what. Where the content came in one
piece they are its MD5. Where it came in parts, as all that Spark's committers write does, they are
the MD5 of the MD5s of the parts; how long the parts were is not kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from hashlib import md5
from pathlib import Path

CONTENT_MD5 = "perago-md5"
"""The user metadata in which our own uploads in parts say what their content is."""
LISTED_AS = f"X-Amz-Meta-{CONTENT_MD5}"
CHUNK = 1 << 20
_MD5_DIGITS = 32
# What uploaders in use cut at, the usual ones first.
_MIB = (
    8,
    16,
    64,
    5,
    32,
    100,
    128,
    10,
    15,
    20,
    50,
    256,
    512,
    6,
    7,
    12,
    24,
    25,
    40,
    48,
    96,
    200,
    1024,
)
_PART_BYTES = (*(n * CHUNK for n in _MIB), *(n * 1_000_000 for n in (5, 8, 10, 16, 64, 100)))


def checksum_of(tag: str, metadata: object) -> str:
    """Write down a listed checksum: verifiable as ``md5``, or only good for comparing."""
    said = metadata.get(LISTED_AS) if isinstance(metadata, dict) else None
    tag = str(said or tag)
    return f"{'md5' if len(tag) == _MD5_DIGITS else 'etag'}:{tag}" if tag else ""


def parts_of(tag: str, listed: str) -> int:
    """Return of how many parts a block store says an object was made; 0 when it does not say."""
    digest, _, count = tag.partition("-")
    return int(count) if digest == listed.partition("-")[0] and count.isdecimal() else 0


def is_tag_of_parts(
    checksum: str, content_md5: bytes, file: Path | None = None, count: int = 0
) -> bool:
    """Return whether a checksum that is not that of the content is that of its parts.

    Without a file only one part is thought of. ``count`` is how many there were, 0 for unknown.
    """
    scheme, _, tag = checksum.partition(":")
    if scheme != "md5":
        return False
    if _md5(content_md5).hexdigest() == tag:
        return True
    if file is None:
        return False
    return any(_in_parts(file, part) == tag for part in _layouts(file.stat().st_size, count))


def _layouts(size: int, count: int) -> Iterator[int]:
    """Yield the lengths of parts worth trying: each costs a pass over the file."""
    for part in _PART_BYTES:
        if part < size and count in {0, -(-size // part)}:
            yield part
    if count > 1:
        even = -(-size // count)
        yield even
        yield -(-even // CHUNK) * CHUNK


def _in_parts(file: Path, part_bytes: int) -> str:
    tag, part, left = _md5(), _md5(), part_bytes
    with file.open("rb", buffering=0) as opened:
        while chunk := opened.read(min(CHUNK, left)):
            part.update(chunk)
            left -= len(chunk)
            if not left:
                tag.update(part.digest())
                part, left = _md5(), part_bytes
    if left != part_bytes:
        tag.update(part.digest())
    return tag.hexdigest()


def _md5(content: bytes = b"") -> hashlib._Hash:
    return md5(content, usedforsecurity=False)
