"""The commands that hand over to Spark above a threshold: X6, in the JVM of these tests."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perago.cli import main
from perago.cli.picture import draw
from perago.spark.jvm import Jvm
from perago.stores.embedded import EmbeddedStore
from perago.testing import Lab
from tests.lifecycle.tasks import GIVEN, touch, write
from tests.spark.tasks import STATIC

Answer = tuple[int, Any]


@pytest.fixture
def perago(jvm: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Answer]:
    """Run a command here, where a JVM is running already and goes on running."""
    conf = {**STATIC, "spark.sql.shuffle.partitions": "2"}
    monkeypatch.setenv("PERAGO_SPARK_CONF", ";".join(f"{k}={v}" for k, v in conf.items()))
    monkeypatch.setattr(Jvm, "stop", lambda self: None)
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> Answer:
        out = io.StringIO()
        with contextlib.redirect_stdout(out), pytest.raises(SystemExit) as end:
            main([*arguments, "--json"])
        return int(end.value.code or 0), json.loads(out.getvalue())

    return run


def test_x6_above_the_threshold_spark_reads_again(
    perago: Callable[..., Answer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = EmbeddedStore(tmp_path / ".perago" / "store")
    store.create_repository("data")
    entries = store.put_all("data", "main", {f"k/{n}": f"{n}".encode() for n in range(12)})
    store.commit_branch("data", "main", "files")
    monkeypatch.setenv("PERAGO_SPARK_FROM_OBJECTS", "12")
    code, found = perago("verify")
    assert (code, found["engine"], found["objects"]) == (0, "threads", 12)
    digest = entries[3].checksum.partition(":")[2]
    (store.root / "objects" / digest[:2] / digest).unlink()
    monkeypatch.setenv("PERAGO_SPARK_FROM_OBJECTS", "11")
    code, found = perago("verify")
    assert (code, found["engine"], found["objects"]) == (1, "spark", 12)
    assert [(each["key"], each["problem"]) for each in found["damaged"]] == [("k/3", "missing")]
    store.remove("data", "main", "k/3")
    store.put("data", "main", "k/deep/4", b"4")
    store.commit_branch("data", "main", "mended")
    code, copied = perago("checkout", "to", "--prefix", "k")
    assert (code, copied["files"]) == (0, 12)
    assert (tmp_path / "to" / "deep" / "4").read_bytes() == b"4"


def test_above_the_threshold_spark_counts_the_same(
    perago: Callable[..., Answer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = Lab(tmp_path / ".perago")
    lab.run(write, {"text": "one"}, files=GIVEN)
    lab.run(touch)
    monkeypatch.setenv("PERAGO_SPARK_FROM_OBJECTS", "1")
    chosen = ("--task", "write", "--since", "1h")
    _, by_spark = perago("report", *chosen, "--plot", str(tmp_path / "by_spark.svg"))
    _, by_python = perago("report", *chosen, "--engine", "python", "--plot", "by_python.svg")
    assert by_spark["tasks"] == by_python["tasks"]
    assert by_spark["tasks"][0]["merged"] == 1
    assert (tmp_path / "by_spark.svg").read_bytes().startswith(b"<?xml")


def test_a_picture_of_nothing_says_so(tmp_path: Path) -> None:
    draw([], tmp_path / "nothing.svg")
    assert (tmp_path / "nothing.svg").stat().st_size
