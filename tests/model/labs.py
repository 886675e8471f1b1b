"""A lab on either store, fenced where the fence wants it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from perago.stores.lakefs.installing import install_fence
from perago.testing import Lab
from tests.lakefs_lab import ArrangedLakeFS, new_name
from tests.model.tasks import GIVEN


@contextmanager
def lab_on(kind: str, fence: str, request: pytest.FixtureRequest, directory: Path) -> Iterator[Lab]:
    """Give a lab on the embedded store or on real lakeFS, with the files of the model in it."""
    store, name = None, "lab"
    if kind == "lakefs":
        store = ArrangedLakeFS(request.getfixturevalue("lakefs_server"), directory / "worker")
        name = new_name()
    lab = Lab(directory / "lab", store=store, repository=name)
    lab.commit(GIVEN)
    if store is not None and fence == "hard":
        install_fence(store, name, "main")
    yield lab
    lab.close()
