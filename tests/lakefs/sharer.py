"""One of several processes that use one cache: ``python -m tests.lakefs.sharer``.

Environment: ENDPOINT, KEY, SECRET, REPOSITORY, REF, CACHE, ROOM, ROUNDS. Prints what it read.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from pathlib import Path

from perago.ports import Fetch
from perago.protocol.paths import Selection, plan_download
from perago.settings import LakeFSSettings
from perago.stores.lakefs import LakeFSStore
from perago.stores.lakefs.manifests import Manifests
from perago.transfer.cache import ContentCache


def main() -> None:
    said = os.environ
    cache = Path(said["CACHE"])
    store = LakeFSStore(
        LakeFSSettings(said["ENDPOINT"], said["KEY"], said["SECRET"]),
        ContentCache(cache, int(said["CACHE_BYTES"])),
        Manifests(cache / "manifests.sqlite"),
    )
    attempt_dir = Path(said["ROOM"])
    repository, ref = said["REPOSITORY"], said["REF"]
    for _ in range(int(said["ROUNDS"])):
        plan = plan_download(Selection("ws"), store.listing(repository, ref, "ws/"))
        wanted = [Fetch(f"ws/{path}", entry, attempt_dir / path) for path, entry in plan.items()]
        store.fetch(repository, ref, wanted, lambda _: None)
        digest = hashlib.sha256()
        for path in sorted(plan):
            digest.update(path.encode() + b"\0" + (attempt_dir / path).read_bytes())
        sys.stdout.write(f"{digest.hexdigest()}\n")
        shutil.rmtree(attempt_dir)
    store.close()


if __name__ == "__main__":
    main()
