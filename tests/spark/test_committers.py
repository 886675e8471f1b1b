"""Which committer a direct workspace gets, and what it is told (X2)."""

from __future__ import annotations

from pathlib import Path

import pytest

from perago.spark.direct import ANYWHERE, NAME, ON_THIS_MACHINE, committer

SCRATCH = Path("/rooms/attempt")


@pytest.mark.parametrize(
    "master", ["local", "local[*]", "local[2]", "local[4,3]", "local-cluster[2,1,1024]"]
)
def test_on_one_machine_what_is_pending_stays_in_the_attempt_directory(master: str) -> None:
    found = committer(master, SCRATCH)
    assert found[NAME] == ON_THIS_MACHINE
    assert found["fs.s3a.committer.staging.tmp.path"] == "file:///rooms/attempt/pending"
    assert found["fs.s3a.buffer.dir"] == "/rooms/attempt/buffer"


@pytest.mark.parametrize("master", ["spark://host:7077", "yarn", "k8s://https://host"])
def test_executors_elsewhere_find_it_in_the_store(master: str) -> None:
    assert committer(master, SCRATCH) == {NAME: ANYWHERE}


def test_the_operator_may_choose() -> None:
    assert committer("local[*]", SCRATCH, ANYWHERE) == {NAME: ANYWHERE}
    assert committer("yarn", SCRATCH, ON_THIS_MACHINE)[NAME] == ON_THIS_MACHINE
