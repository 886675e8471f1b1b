"""The part of a copy that one Spark worker does: twins of it do not harm each other (X6)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from perago.ports import Fetch
from perago.protocol.paths import Selection
from perago.spark.copying import Copy
from perago.spark.origin import Origin
from perago.stores.embedded import EmbeddedStore
from perago.transfer.filling import filling, tree_of

NAMES = [f"d/{number}" for number in range(5)]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    store = EmbeddedStore(tmp_path / "home" / "store")
    store.create_repository("data")
    store.put_all("data", "main", {f"k/{name}": name.encode() for name in NAMES})
    store.commit_branch("data", "main", "first")
    yield tmp_path / "home"
    store.close()


def work(home: Path, draft: Path) -> tuple[Copy, pa.RecordBatch]:
    store = EmbeddedStore(home / "store")
    commit = store.head("data", "main").id
    rows = [
        {"key": info.key, "size": info.size, "checksum": info.checksum}
        for info in store.listing("data", commit, "k")
    ]
    store.close()
    copy = Copy(Origin(str(home), "/"), "data", commit, Selection("k"), str(draft))
    return copy, pa.RecordBatch.from_pylist(rows)


class Dying(EmbeddedStore):
    """A store whose worker is ended in the middle: Spark kills the slower twin."""

    def fetch(self, repository: str, ref: str, wanted: Any, advance: Any) -> None:
        whole, half = wanted[:2], wanted[2]
        super().fetch(repository, ref, whole, advance)
        assert isinstance(half, Fetch)
        half.to.write_bytes(b"hal")
        raise KeyboardInterrupt


def test_x6_a_twin_that_dies_leaves_the_files_of_the_winner(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with filling(tmp_path / "to") as draft:
        copy, part = work(home, draft)
        assert [row.to_pylist() for row in copy(iter([part]))] == [[{"files": 5, "bytes": 15}]]
        with monkeypatch.context() as context:
            context.setattr("perago.spark.origin.EmbeddedStore", Dying)
            with pytest.raises(KeyboardInterrupt):
                list(copy(iter([part])))
        assert read(tree_of(draft)) == {name: name.encode() for name in NAMES}
    assert read(tmp_path / "to") == {name: name.encode() for name in NAMES}


def test_x6_a_part_that_is_done_again_after_a_death_is_whole(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with filling(tmp_path / "to") as draft:
        copy, part = work(home, draft)
        with monkeypatch.context() as context:
            context.setattr("perago.spark.origin.EmbeddedStore", Dying)
            with pytest.raises(KeyboardInterrupt):
                list(copy(iter([part])))
        assert read(tree_of(draft)) == {}
        list(copy(iter([part])))
    assert read(tmp_path / "to") == {name: name.encode() for name in NAMES}


def read(directory: Path) -> dict[str, bytes]:
    files = [path for path in directory.rglob("*") if path.is_file()]
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in files}
