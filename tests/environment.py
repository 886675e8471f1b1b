"""An environment for commands that tests run: without the settings of whoever runs the tests."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

FOREIGN: Final = ("PERAGO_", "LAKECTL_", "CONDUCTOR_", "PYTEST_", "OTEL_")
"""How the names of settings begin that would change what a command does."""


def clean_environment(*also: str) -> dict[str, str]:
    """Return this environment without settings, and with its own programs before all others.

    ``also`` are more beginnings of names to leave out.
    """
    left_out = (*FOREIGN, *also)
    clean = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    return clean | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{clean.get('PATH', '')}"}
