"""Where the files of a benchmark are: apart from those that the last round removed.

ext4 looks at all inodes that were freed in the last minutes before it takes one. In the place of
thousands of removed files half the time of a round would be the last one's, for every contender.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

from perago.workspace.spreading import spread


def apart(parent: Path) -> Path:
    """Name a directory that is not there yet, below one that keeps its directories apart."""
    parent.mkdir(exist_ok=True)
    spread(parent)
    return parent / uuid.uuid4().hex


@contextmanager
def temporary() -> Iterator[Path]:
    """Make a directory for one comparison."""
    home = apart(Path(gettempdir(), "perago-bench")).parent
    with TemporaryDirectory(dir=home) as made:
        yield Path(made)
