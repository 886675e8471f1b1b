"""Opens a SQLite file that several processes may make and use at once."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

_STEP_SECONDS: Final = 0.02


def opened(
    path: Path, wait_seconds: float, prepare: Callable[[sqlite3.Connection], None]
) -> sqlite3.Connection:
    """Open the file with a write-ahead log and see to its tables.

    SQLite does not wait when several turn a new file to WAL at once: it says "locked".
    """
    deadline = time.monotonic() + wait_seconds
    while True:
        connection = sqlite3.connect(path, timeout=wait_seconds, isolation_level=None)
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            prepare(connection)
        except sqlite3.OperationalError as error:
            connection.close()
            if "locked" not in str(error) or time.monotonic() >= deadline:
                raise
            time.sleep(_STEP_SECONDS)
        except BaseException:
            connection.close()
            raise
        else:
            return connection
