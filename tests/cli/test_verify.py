"""``perago verify``: objects read again (X6, D3)."""

from __future__ import annotations

from pathlib import Path

import pytest

from perago.dev import LakeFSEndpoint
from perago.stores.embedded import EmbeddedStore
from tests.cli.conftest import Perago
from tests.lakefs_lab import ArrangedLakeFS, new_name

FILES = {
    f"{directory}/{number}.bin": f"{directory}{number}".encode()
    for directory in "ab"
    for number in range(9)
}


@pytest.fixture
def store(project: Path) -> EmbeddedStore:
    store = EmbeddedStore(project / ".perago" / "store")
    store.create_repository("data")
    store.put_all("data", "main", FILES)
    store.commit_branch("data", "main", "files")
    return store


def object_of(store: EmbeddedStore, key: str) -> Path:
    (info,) = store.page("data", "main", key, "", 1)
    digest = info.checksum.partition(":")[2]
    return store.root / "objects" / digest[:2] / digest


def test_x6_all_as_stored(store: EmbeddedStore, inside: Perago) -> None:
    answer = inside("verify")
    assert answer.code == 0, answer
    assert "all as stored: 18 objects" in answer.out
    found = inside("verify", "data", "main", "--prefix", "a", "--json")
    assert found.code == 0
    assert found.json["objects"] == 9
    assert found.json["engine"] == "threads"
    assert found.json["commit"] == store.head("data", "main").id


def test_x6_what_is_missing_or_corrupt_is_named(store: EmbeddedStore, inside: Perago) -> None:
    object_of(store, "a/3.bin").unlink()
    for key in ("a/5.bin", "b/5.bin"):
        object_of(store, key).chmod(0o644)
        object_of(store, key).write_bytes(b"x5" if key[0] == "a" else b"longer than before")
    answer = inside("verify")
    assert answer.code == 1
    assert "1 missing, 2 corrupt of 18 objects" in answer.out
    assert "missing a/3.bin" in answer.out
    found = inside("verify", "--json").json
    assert [(each["key"], each["problem"]) for each in found["damaged"]] == [
        ("a/3.bin", "missing"),
        ("a/5.bin", "corrupt"),
        ("b/5.bin", "corrupt"),
    ]
    assert inside("verify", "data", "main", "--prefix", "b", "--json").json["corrupt"] == 1


def test_x6_without_java_threads_read_however_many_there_are(
    store: EmbeddedStore, inside: Perago, tmp_path: Path
) -> None:
    none = {"PERAGO_SPARK_FROM_OBJECTS": "1", "JAVA_HOME": str(tmp_path)}
    assert inside("verify", "--json", env=none).json["engine"] == "threads"
    asked = inside("verify", "--engine", "spark", env=none)
    assert asked.code == 3
    assert "Spark needs Java" in asked.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--engine", "abacus"), "no engine 'abacus'"),
        (("data", "nowhere"), "'nowhere'"),
        (("nothing",), "no repository 'nothing'"),
        (("--prefix", "../up"), "prefix '../up'"),
        (("--store", "lakefs"), "lakeFS is not configured"),
        (("--store", "lakefs", "data"), "lakeFS is not configured"),
    ],
)
def test_mistakes_get_one_sentence(
    store: EmbeddedStore, inside: Perago, arguments: tuple[str, ...], words: str
) -> None:
    answer = inside("verify", *arguments)
    assert answer.code in {2, 3, 4}
    assert words in answer.err
    assert answer.err.count("\n") == 1


def test_x6_blocks_of_a_real_lakefs_server(
    lakefs_server: LakeFSEndpoint,
    project: Path,
    inside: Perago,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    server = ArrangedLakeFS(lakefs_server, tmp_path_factory.mktemp("looker"))
    repository = new_name()
    server.create_repository(repository)
    for key, content in FILES.items():
        server.put(repository, "main", key, content)
    server.commit_branch(repository, "main", "files")
    (project / ".env").write_text(
        f"LAKECTL_SERVER_ENDPOINT_URL={lakefs_server.endpoint}\n"
        f"LAKECTL_CREDENTIALS_ACCESS_KEY_ID={lakefs_server.access_key_id}\n"
        f"LAKECTL_CREDENTIALS_SECRET_ACCESS_KEY={lakefs_server.secret}\n"
        f"PERAGO_CACHE_ROOT={project / 'cache'}\n"
    )
    well = inside("verify", repository, "main", "--store", "lakefs", "--json")
    assert well.code == 0, well
    assert (well.json["objects"], well.json["unchecked"]) == (18, 0)
    blocks = {path.read_bytes(): path for path in _blocks(tmp_path_factory, repository)}
    blocks[FILES["a/4.bin"]].unlink()
    blocks[FILES["b/4.bin"]].write_bytes(b"x4")
    ill = inside("verify", repository, "main", "--store", "lakefs", "--json")
    assert ill.code == 1, ill
    assert [(each["key"], each["problem"]) for each in ill.json["damaged"]] == [
        ("a/4.bin", "missing"),
        ("b/4.bin", "corrupt"),
    ]
    server.close()


def _blocks(factory: pytest.TempPathFactory, repository: str) -> list[Path]:
    found = [path for path in factory.getbasetemp().rglob(f"*{repository}*/**/*") if path.is_file()]
    assert found
    return found
