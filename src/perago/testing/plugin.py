"""The pytest plugin: one fixture, loaded by its entry point."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from perago.testing.lab import Lab


@pytest.fixture
def perago_lab(tmp_path: Path) -> Iterator[Lab]:
    """Return a lab of its own to each test."""
    from perago.testing.lab import Lab  # noqa: PLC0415 - not every test run needs it

    lab = Lab(tmp_path / "perago-lab")
    yield lab
    lab.close()
