"""Pass one big file in and out, and say the peak memory in bytes.

streamer.py ROOT SOURCE TARGET
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path

from perago.ports import Fetch, Put
from perago.protocol.values import Entry, Staging
from perago.stores.embedded import EmbeddedStore
from perago.transfer import copying


def entry_of(path: Path) -> Entry:
    with path.open("rb") as opened:
        return copying.stream(opened.fileno(), None, lambda _: None, "sha256")


if __name__ == "__main__":
    root, source, target = map(Path, sys.argv[1:])
    store = EmbeddedStore(root)
    staging = Staging("demo", "big")
    store.open_staging(staging, "main")
    entry = entry_of(source)
    store.write(staging, [Put("big", entry, source)], [], lambda _: None)
    sealed = store.seal(staging, "big", {})
    store.fetch("demo", sealed.commit, [Fetch("big", entry, target)], lambda _: None)
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sys.stdout.write(f"{kilobytes * (1 if sys.platform == 'darwin' else 1024)}\n")
