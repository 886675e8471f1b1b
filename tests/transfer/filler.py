"""A process that fills a cache, and may be killed at it: ``python -m tests.transfer.filler``.

Arguments: directory of the cache, first number, how many, contents between two looks at the disk.
"""

from __future__ import annotations

import sys
from pathlib import Path

from perago.transfer.cache import ContentCache
from perago.transfer.copying import entry_of

SIZE = 3000


def content(number: int) -> bytes:
    return (f"{number:08}" * (SIZE // 8 + 1))[:SIZE].encode()


def main() -> None:
    root, first, count, settle = sys.argv[1], *map(int, sys.argv[2:5])
    cache = ContentCache(Path(root), 1 << 30)
    for number in range(first, first + count):
        cache.put(entry_of(content(number), "md5"), content(number))
        if number % settle == 0:
            cache.settle()
            sys.stdout.write(f"{number}\n")
            sys.stdout.flush()
    cache.close()


if __name__ == "__main__":
    main()
