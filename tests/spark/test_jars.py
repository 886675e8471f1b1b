"""The jars of direct workspaces: pinned, fetched once, never taken on trust (X2)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from perago.errors import RuntimeConfigError
from perago.spark import jars
from perago.spark.jars import Pin

CONTENT = b"not really a jar"
ONE = Pin("org.example", "one", "1.0", hashlib.sha256(CONTENT).hexdigest())


def test_what_is_pinned_fits_this_pyspark_and_names_no_registry() -> None:
    import pyspark  # noqa: PLC0415 - slow

    found = {pin.artifact: pin for pin in jars.pins()}
    hadoop = next(Path(pyspark.__path__[0], "jars").glob("hadoop-client-api-*.jar"))
    assert hadoop.name == f"hadoop-client-api-{found['hadoop-aws'].version}.jar"
    assert "spark-hadoop-cloud_2.13" in found
    assert "bundle" not in found
    assert all(re.fullmatch(r"[0-9a-f]{64}", pin.sha256) for pin in found.values())
    for file in Path(jars.__file__).parent.iterdir():
        if file.is_file():
            assert b"://repo" not in file.read_bytes()


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Give the contents that the registry sends, one for each time it is asked."""
    sent: list[bytes] = []

    def fetch(directory: Path, wanted: Sequence[Pin]) -> None:
        content = sent.pop(0)
        for pin in wanted:
            (directory / pin.file).write_bytes(content)

    monkeypatch.setattr(jars, "_fetch", fetch)
    return sent


def test_jars_are_fetched_once_and_again_when_they_were_altered(
    tmp_path: Path, fetched: list[bytes]
) -> None:
    fetched += [CONTENT, CONTENT]
    (path,) = jars.provide(tmp_path, [ONE])
    assert jars.provide(tmp_path, [ONE]) == (path,)
    assert len(fetched) == 1
    path.write_bytes(b"altered")
    jars.provide(tmp_path, [ONE])
    assert path.read_bytes() == CONTENT
    assert [entry.name for entry in tmp_path.iterdir()] == [path.parent.name]


def test_a_jar_that_is_not_the_pinned_one_is_refused(tmp_path: Path, fetched: list[bytes]) -> None:
    fetched.append(b"something else")
    with pytest.raises(RuntimeConfigError, match=r"is not the pinned one: one-1\.0\.jar"):
        jars.provide(tmp_path, [ONE])
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_fetched_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(RuntimeConfigError, match=r"1 of 1 jars .* cannot be fetched"):
        jars.provide(tmp_path, [ONE])
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(
        RuntimeConfigError, match=r"the directory of Spark's jars .* cannot be used"
    ):
        jars.provide(tmp_path / "file" / "jars", [ONE])
