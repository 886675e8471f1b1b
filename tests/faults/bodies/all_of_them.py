"""Every hostile body; importing the modules registers them."""

from __future__ import annotations

from tests.faults.bodies import (
    content,
    links,
    mounts,
    names,
    patches,
    processes,
    rooms,
    words,
    writers,
)
from tests.faults.bodies.body import BODIES

MODULES = (rooms, links, mounts, content, names, writers, processes, words, patches)
__all__ = ["BODIES", "MODULES"]
