"""A process that replaces a head under fence ``hard``, told on standard input; to be killed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from perago.ports import Publication
from perago.protocol.publication import Replace
from perago.settings import LakeFSSettings
from perago.stores.lakefs.manifests import Manifests
from perago.stores.lakefs.store import LakeFSStore
from perago.transfer.cache import ContentCache


def main() -> None:
    said = json.load(sys.stdin)
    place = Path(said["place"])
    store = LakeFSStore(
        LakeFSSettings(said["url"], said["key"], said["secret"]),
        ContentCache(place / "cache", 1 << 20),
        Manifests(place / "manifests.sqlite"),
    )
    decision = Replace(said["head"], said["source"])
    where = said["repository"], "main"
    store.apply(Publication(*where, decision, "hard", "replaced", said["metadata"], 60.0))


if __name__ == "__main__":
    main()
