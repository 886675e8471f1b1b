from __future__ import annotations

import pytest

from perago.testing import Lab
from tests.lifecycle.tasks import GIVEN


@pytest.fixture
def lab(perago_lab: Lab) -> Lab:
    """Give a lab with files on it."""
    perago_lab.commit(GIVEN)
    return perago_lab
