"""Executors import the modules of tasks, never the script that asked for the run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def main_left_alone() -> Iterator[None]:
    """Keep executor processes from importing ``__main__``.

    Python does that for every process it spawns, so a script without
    ``if __name__ == "__main__"`` would start its run again inside of each executor.
    """
    main = vars(sys.modules["__main__"])
    hidden: dict[str, Any] = {name: main[name] for name in ("__spec__", "__file__") if name in main}
    if hidden.get("__spec__") is not None:
        main["__spec__"] = None
    main.pop("__file__", None)
    try:
        yield
    finally:
        main.update(hidden)
