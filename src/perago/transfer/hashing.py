"""Checksums of contents on their way; of big ones beside it, for MD5 is slower than most ways."""

from __future__ import annotations

import functools
import os
from concurrent.futures import Future, ThreadPoolExecutor
from hashlib import new as new_hash

BIG_BYTES = 64 << 20
"""From here on; below it there are other files to do at the same time."""


class Hashing:
    """The checksum of a content that comes part by part."""

    def __init__(self, algorithm: str, size: int) -> None:
        """Begin; ``size`` is how much is expected."""
        self._algorithm = algorithm
        self._hash = new_hash(algorithm, usedforsecurity=False)
        self._big = size >= BIG_BYTES
        self._last: Future[None] | None = None

    def update(self, part: bytes | memoryview) -> None:
        """Add the next part, which nobody may change before the next call returns."""
        if not self._big:
            self._hash.update(part)
            return
        self._wait()
        self._last = _helpers().submit(self._hash.update, part)

    def digest(self) -> bytes:
        """Return the checksum of all parts."""
        self._wait()
        return self._hash.digest()

    @property
    def checksum(self) -> str:
        """Write it as a manifest does."""
        return f"{self._algorithm}:{self.digest().hex()}"

    def _wait(self) -> None:
        if self._last is not None:
            self._last.result()
            self._last = None


@functools.cache
def _helpers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="perago-hash")


# The child of a fork has the object, but none of its threads.
os.register_at_fork(after_in_child=_helpers.cache_clear)
