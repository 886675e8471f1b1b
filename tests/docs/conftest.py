"""Commands for the examples of the pages, free of this machine's own settings."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.environment import clean_environment
from tests.patience import LIMIT

Run = Callable[..., str]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run ``python -m ...`` in the test's directory; show what it said when it fails."""
    clean = clean_environment()

    def python(*arguments: str, fails: bool = False, **environment: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", *arguments],
            cwd=tmp_path,
            env=clean | environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT,
        )
        assert bool(done.returncode) == fails, done.stdout + done.stderr
        return done.stdout + done.stderr

    return python
