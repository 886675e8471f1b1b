"""A process that does everything a store can do, until it is killed.

    restless.py ROOT

Publishes generations: each commit of ``main`` rewrites all of its files to the same number. Says
the number only after the publication returned.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

from perago.ports import Publication, Put
from perago.protocol.publication import Merge, Replace
from perago.protocol.values import Staging
from perago.stores.embedded import EmbeddedStore
from perago.transfer import copying

FILES = 6


def publish(store: EmbeddedStore, place: Path, number: int) -> None:
    """Stage and publish one generation; every third replaces an abandoned one."""
    a = store.head("demo", "main")
    staging = Staging("demo", f"perago-staging-{number}")
    store.drop(staging)
    content = b"%d" % number * 1000
    source = place / "content"
    source.write_bytes(content)
    entry = copying.entry_of(content)
    store.open_staging(staging, a.id)
    puts = [Put(f"f/{n}", entry, source) for n in range(FILES)]
    store.write(staging, puts, [f"old/{number - 1}"], lambda _: None)
    store.put("demo", staging.branch, f"old/{number}", b"only here: %d" % number)
    staged = store.seal(staging, f"generation {number}", {"number": str(number)})
    head = a.id
    if number % 3 == 0:
        merge = Merge(head, staged.commit)
        said = {"number": str(number)}
        head = store.apply(Publication("demo", "main", merge, "hard", "abandoned", said, 10)).ref
        decision: Merge | Replace = Replace(head, staged.commit)
    else:
        decision = Merge(head, staged.commit)
    said = {"number": str(number)}
    store.apply(Publication("demo", "main", decision, "hard", "published", said, 10))
    store.drop(staging)
    if number % 4 == 0:
        store.collect(0)


if __name__ == "__main__":
    root = Path(sys.argv[1])
    opened = EmbeddedStore(root)
    start = int(opened.head("demo", "main").metadata.get("number", "0")) + 1
    for turn in itertools.count(start):
        publish(opened, root.parent, turn)
        sys.stdout.write(f"{turn}\n")
        sys.stdout.flush()
