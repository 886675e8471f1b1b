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


def peak() -> int:
    """Return the most memory this program ever held.

    Not ``ru_maxrss``: on Linux it starts with what the parent held when it made this process.
    """
    if sys.platform != "linux":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


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
    sys.stdout.write(f"{peak()}\n")
