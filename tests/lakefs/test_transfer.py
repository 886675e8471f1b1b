"""Bytes on their way: broken off, dripping, altered, many, big; and the cache (D3, S2, S3)."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import obstore
import pytest
from obstore.store import S3Store

from perago.dev import LakeFSEndpoint
from perago.errors import PeragoError, PermissionRefusedError
from perago.ports import Fetch
from perago.protocol.values import Entry, Status
from perago.settings import LakeFSSettings
from perago.stores.lakefs.client import Ask
from perago.stores.lakefs.errors import Call
from perago.stores.lakefs.manifests import Manifests
from perago.stores.lakefs.store import LakeFSStore
from perago.testing import MoveHeadAt, Run
from perago.transfer.cache import ContentCache
from perago.transfer.wire import path_of
from tests.faults.proxy import (
    Alter,
    AlterRequest,
    Answer,
    Drip,
    Exchange,
    Fault,
    Rule,
    Say,
    Truncate,
)
from tests.lakefs import tasks
from tests.lakefs.bench import Bench
from tests.lakefs.tasks import GIVEN, MIB, after
from tests.lakefs_lab import ArrangedLakeFS
from tests.patience import LIMIT, until

pytestmark = pytest.mark.usefixtures("impatient")

NAMES = {"plain": "ws/data.bin", "unusual": "ws/data 1.bin"}
OBJECT = r"/objects\?path="
DATA = OBJECT + ".*data"
CONTENT = bytes(range(256)) * 1200


@pytest.fixture(params=NAMES)
def key(request: pytest.FixtureRequest, bench: Bench) -> str:
    key = NAMES[request.param]
    bench.given({**GIVEN, key: CONTENT})
    return key


def other_host(bench: Bench, endpoint: LakeFSEndpoint, name: str = "host-2") -> Bench:
    """Look at the same repository from a machine with a cache of its own."""
    store = ArrangedLakeFS(endpoint, bench.place / name, url=bench.proxy.url)
    other = Bench(store, bench.truth, bench.proxy, bench.repository, bench.place / f"{name}-lab")
    other.lab._made = True  # noqa: SLF001 - the repository is there
    return other


# --- download -------------------------------------------------------------------------------------


@pytest.mark.parametrize("keep", [0, 1, 1000, len(CONTENT) - 1])
def test_d3_a_body_that_breaks_off_is_asked_for_again(bench: Bench, key: str, keep: int) -> None:
    run = bench.run(tasks.step, Rule(Truncate(keep), "GET", DATA))
    assert run.completed, run.reason
    assert bench.files() == after() | {key: CONTENT}


def test_d3_a_body_that_always_breaks_off_fails_and_leaves_nothing(bench: Bench, key: str) -> None:
    head = bench.head.id
    run = bench.run(tasks.step, Rule(Truncate(1000), "GET", DATA, times=None))
    assert run.status is Status.FAILED
    assert "download: StoreUnavailableError" in run.reason
    assert ascii(key) in run.reason
    assert bench.attempt_dirs() == []
    assert bench.head.id == head
    assert bench.retry(run).completed


@pytest.mark.parametrize(
    "fault", [Truncate(1000, honest=True), Alter(0), Alter(-1)], ids=["short", "first", "last"]
)
def test_d3_a_body_that_is_not_what_was_listed_is_refused_by_name(
    bench: Bench, key: str, fault: Fault
) -> None:
    run = bench.run(tasks.step, Rule(fault, "GET", DATA, times=None))
    assert run.status is Status.FAILED
    assert f"download: CorruptObjectError: object {key!a}" in run.reason
    assert "before body" not in run.events
    retried = bench.retry(run)  # Nothing wrong was kept in the cache.
    assert retried.completed, retried.reason
    assert bench.content(key) == CONTENT


def test_d3_a_body_in_drops_arrives_whole(bench: Bench, key: str) -> None:
    run = bench.run(tasks.step, Rule(Drip(len(CONTENT) // 20, 0.01), "GET", DATA))
    assert run.completed, run.reason
    assert bench.content(key) == CONTENT


def test_d3_every_byte_is_counted_once_however_often_it_was_asked_for(
    bench: Bench, key: str
) -> None:
    moved: list[int] = []
    listed = {info.key: info for info in bench.truth.listing(bench.repository, "main", "ws/")}
    with bench.proxy.during(Rule(Truncate(500), "GET", DATA)):
        bench.store.fetch(
            bench.repository,
            bench.head.id,
            [fetch(listed[key].key, Entry(listed[key].size, listed[key].checksum), bench.place)],
            moved.append,
        )
    assert sum(moved) == len(CONTENT)


def fetch(key: str, entry: Entry, place: Path) -> Fetch:
    return Fetch(key, entry, place / "fetched" / key)


def test_d3_a_listed_object_that_is_gone_is_named(bench: Bench, key: str) -> None:
    run = bench.run(tasks.step, Rule(Say(404), "GET", DATA, times=None))
    assert "download: NotFoundError" in run.reason
    assert ascii(key) in run.reason


# --- upload ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [0, -1], ids=["first", "last"])
@pytest.mark.parametrize("name", ["data.bin", "data 1.bin"], ids=list(NAMES))
def test_s2_what_arrived_changed_at_the_store_is_refused_and_not_published(
    bench: Bench, name: str, at: int
) -> None:
    a = bench.given(GIVEN).id
    run = bench.run(tasks.save, Rule(AlterRequest(at), "", DATA, times=None), name=name)
    assert "stage: CorruptObjectError" in run.reason
    assert name in run.reason
    assert bench.head.id == a
    assert bench.staging_branches() == []
    assert bench.retry(run).completed
    assert bench.content(f"ws/{name}") == b"saved"


class Page:
    """Something on the way answers in the server's place, and is content."""

    def meet(self, exchange: Exchange) -> None:
        exchange.reply(Answer(200, (("Content-Type", "text/html"),), b"<html>Welcome</html>"))


@pytest.mark.parametrize("size", [5, 2 * MIB], ids=["whole", "streamed"])
def test_s2_a_page_that_is_not_of_lakefs_is_not_taken_for_an_upload(
    bench: Bench, size: int
) -> None:
    a = bench.given(GIVEN).id
    run = bench.run(tasks.blob, Rule(Page(), "POST", OBJECT, times=None), size=size)
    assert "stage: StoreUnavailableError" in run.reason
    assert "what came is not JSON" in run.reason
    assert bench.head.id == a
    assert bench.retry(run).completed
    assert len(bench.content("ws/blob.bin")) == size


class WriteAt:
    """Something still writes to a file of the attempt when it should be quiet."""

    def __init__(self, bench: Bench, point: str, name: str, write: Callable[[Path], None]) -> None:
        self._act = (bench, point, name, write)

    def at(self, point: str, scene: object) -> None:
        bench, mine, name, write = self._act
        if point == mine:
            (file,) = bench.lab.attempt_dirs.rglob(name)
            write(file)

    def around(self, call: str, action: Callable[[], object]) -> object:
        return action()


CHANGES = ("longer", "shorter", "other", "gone", "link", "fifo", "directory")


def change_to(kind: str, file: Path) -> None:
    """Make something else of a file, in place where that is possible."""
    if kind in {"longer", "shorter", "other"}:
        file.write_bytes({"longer": b"saved!", "shorter": b"s", "other": b"SAVED"}[kind])
        return
    file.unlink()
    if kind == "link":
        file.symlink_to("/etc/passwd")
    elif kind == "fifo":
        os.mkfifo(file)
    elif kind == "directory":
        file.mkdir()


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", ["data.bin", "data 1.bin"], ids=list(NAMES))
def test_s3_a_file_that_changes_between_diff_and_upload_is_refused(
    bench: Bench, name: str, change: str
) -> None:
    a = bench.given(GIVEN).id
    fault = WriteAt(bench, "branch created", name, lambda file: change_to(change, file))
    run = bench.lab.run(tasks.save, {"name": name}, faults=[fault])
    assert "stage: UnpublishableFileError" in run.reason
    assert bench.head.id == a
    assert bench.staging_branches() == []
    assert bench.attempt_dirs() == []


# --- many -----------------------------------------------------------------------------------------


def test_s2_more_than_a_page_of_objects_and_of_deletes(
    bench: Bench, lakefs_server: LakeFSEndpoint
) -> None:
    bench.given({"ws/in.txt": "in", "other.txt": "other"})
    filled = bench.run(tasks.fill)
    assert filled.completed, filled.reason
    other = other_host(bench, lakefs_server)
    with bench.proxy.during():
        cleared = other.lab.run(tasks.clear)
        pages = bench.proxy.matching("GET", "/objects/ls")
        deletes = bench.proxy.matching("POST", "/objects/delete")
    assert cleared.completed, cleared.reason
    assert cleared.result == {"files": 1051}
    # Told apart, because a slow one may be asked for again.
    assert len({seen.path for seen in pages}) == 2
    assert len({seen.body for seen in deletes}) == 2
    assert bench.files() == {"ws/left": b"left", "other.txt": b"other"}
    other.close()


def test_p6_a_page_or_a_bulk_delete_that_is_lost_in_the_middle_is_asked_for_again(
    bench: Bench, lakefs_server: LakeFSEndpoint
) -> None:
    bench.given({"ws/in.txt": "in"})
    assert bench.run(tasks.fill).completed
    other = other_host(bench, lakefs_server)
    run = other.run(
        tasks.clear,
        Rule(Say(503), "GET", "/objects/ls", skip=1),
        Rule(Say(500, applied=True), "POST", "/objects/delete", skip=1),
    )
    assert run.completed, run.reason
    assert bench.files() == {"ws/left": b"left"}
    other.close()


def test_s2_a_delete_the_server_refuses_in_part_is_an_error_by_name(bench: Bench) -> None:
    a = bench.given(GIVEN).id
    run = bench.run(tasks.step, Rule(Refusing(), "POST", "/objects/delete$"))
    assert "object 'ws/old.txt' cannot be deleted: not yours" in run.reason
    assert bench.head.id == a


class Refusing:
    """Answers a bulk delete as the server does when one key of it is refused."""

    def meet(self, exchange: Exchange) -> None:
        body = b'{"errors":[{"status_code":403,"message":"not yours","path":"ws/old.txt"}]}'
        exchange.reply(Answer(200, (("Content-Type", "application/json"),), body))


def test_t6_include_and_exclude_limit_what_is_fetched_and_never_delete_the_rest(
    bench: Bench, lakefs_server: LakeFSEndpoint
) -> None:
    given = {"ws/raw/a.csv": "a", "ws/raw/b.tmp": "b", "ws/docs/c.md": "c", "d.txt": "d"}
    bench.given(given)
    with bench.proxy.during():
        run = bench.lab.run(tasks.narrow)
        fetched = bench.proxy.matching("GET", OBJECT)
    assert run.completed, run.reason
    assert run.result == {"files": 1}
    assert [seen.path.rpartition("/")[2] for seen in fetched] == ["a.csv"]
    assert bench.files() == {
        "ws/raw/new.csv": b"new",
        "ws/raw/b.tmp": b"b",
        "ws/docs/c.md": b"c",
        "d.txt": b"d",
    }


# --- big ------------------------------------------------------------------------------------------


def parts_sent(bench: Bench) -> int:
    return len(bench.proxy.matching("PUT", "partNumber="))


def test_d3_s2_an_object_in_parts_up_and_down_and_not_again(
    bench: Bench, lakefs_server: LakeFSEndpoint
) -> None:
    bench.given({"ws/in.txt": "in"})
    with bench.proxy.during():
        assert bench.lab.run(tasks.big, {"how": "make"}).completed
        assert parts_sent(bench) == 5
    (info,) = bench.truth.listing(bench.repository, bench.head.id, "ws/big.bin")
    digest = hashlib.md5(tasks.big_content(), usedforsecurity=False).hexdigest()
    assert info.checksum == f"md5:{digest}"  # Of the content, not of its parts.
    other = other_host(bench, lakefs_server)
    for how in ("leave", "touch"):
        with bench.proxy.during():
            run = other.lab.run(tasks.big, {"how": how})
            assert run.completed, run.reason
            assert parts_sent(bench) == 0
    with bench.proxy.during():
        run = other.lab.run(tasks.big, {"how": "append"})
        assert run.completed, run.reason
        assert parts_sent(bench) == 5
    assert bench.content("ws/big.bin") == tasks.big_content() + b"more"
    other.close()


def test_s2_a_part_that_arrived_changed_is_refused(bench: Bench) -> None:
    a = bench.given({"ws/in.txt": "in"}).id
    run = bench.run(tasks.big, Rule(AlterRequest(7), "PUT", "partNumber=3"), how="make")
    assert "stage: CorruptObjectError: object 'ws/big.bin' arrived at the store" in run.reason
    assert bench.head.id == a


def test_p6_a_part_whose_answer_is_lost_is_sent_again(bench: Bench) -> None:
    bench.given({"ws/in.txt": "in"})
    run = bench.run(tasks.big, Rule(Say(503, applied=True), "PUT", "partNumber=2"), how="make")
    assert run.completed, run.reason
    assert bench.content("ws/big.bin") == tasks.big_content()


def put_in_parts(
    bench: Bench, endpoint: LakeFSEndpoint, key: str, content: bytes, part: int
) -> None:
    """Upload as other tools do, Spark's committers among them."""
    store = S3Store(
        bench.repository,
        endpoint=endpoint.endpoint,
        access_key_id=endpoint.access_key_id,
        secret_access_key=endpoint.secret,
        region="us-east-1",
        virtual_hosted_style_request=False,
        client_options={"allow_http": True},
    )
    pieces = [content[at : at + part] for at in range(0, len(content), part)]
    obstore.put(store, f"main/{key}", iter(pieces), use_multipart=True, chunk_size=part)
    bench.truth.commit_branch(bench.repository, "main", "in parts")


@pytest.mark.parametrize(
    ("size", "part"),
    [
        (5, 5 * MIB),
        (700_000, 5 * MIB),
        (6 * MIB, 8 * MIB),
        (11 * MIB, 5 * MIB),
        (17 * MIB, 8 * MIB),
    ],
    ids=["tiny", "small", "one-part", "three-parts", "three-parts-of-8"],
)
def test_d3_what_others_uploaded_in_parts_is_verified_by_its_parts(
    bench: Bench, lakefs_server: LakeFSEndpoint, size: int, part: int
) -> None:
    """lakeFS lists the hash of the parts' hashes as if it were that of the content."""
    bench.given(GIVEN)
    content = (b"in parts " * (size // 9 + 1))[:size]
    put_in_parts(bench, lakefs_server, "ws/data.bin", content, part)
    bad = bench.run(tasks.step, Rule(Alter(1), "GET", DATA, times=None))
    assert "CorruptObjectError: object 'ws/data.bin'" in bad.reason
    run = bench.retry(bad)
    assert run.completed, run.reason
    with bench.proxy.during():
        assert bench.lab.run(tasks.idle).completed
        assert bench.proxy.matching("POST", DATA) == []
        assert bench.proxy.matching("GET", DATA) == []  # Kept under the listed tag.
    assert bench.content("ws/data.bin") == content


def stage_with_tag(bench: Bench, key: str, content: bytes, tag: str) -> None:
    """Have an object whose checksum is no MD5, as imports from other stores have."""
    bench.truth.put(bench.repository, "main", key, content)
    where = path_of("repositories", bench.repository, "refs", "main", "objects", "stat")
    found = bench.truth.client.ask(Ask("stat", "GET", where, query={"path": key}))
    path = path_of("repositories", bench.repository, "branches", "main", "objects")
    body = {
        "physical_address": found["physical_address"],
        "checksum": tag,
        "size_bytes": len(content),
    }
    bench.truth.client.ask(Ask("stage", "PUT", path, Call.PRIVATE, query={"path": key}, body=body))
    bench.truth.commit_branch(bench.repository, "main", "another tag")


def test_d3_a_tag_that_is_no_md5_is_not_verified_and_untouched_is_not_uploaded(
    bench: Bench,
) -> None:
    bench.given(GIVEN)
    stage_with_tag(bench, "ws/data.bin", CONTENT, "d41d8cd98f00b204e9800998ecf8427e-7")
    (info,) = bench.truth.listing(bench.repository, bench.head.id, "ws/data.bin")
    assert info.checksum == "etag:d41d8cd98f00b204e9800998ecf8427e-7"
    with bench.proxy.during():
        run = bench.lab.run(tasks.step)
        assert run.completed, run.reason
        assert bench.proxy.matching("POST", DATA) == []
    short = bench.run(tasks.idle, Rule(Truncate(10, honest=True), "GET", DATA, times=None))
    assert "CorruptObjectError" in short.reason  # Its size is known.


def test_s2_a_file_with_a_tag_that_is_no_md5_can_be_changed(bench: Bench) -> None:
    bench.given(GIVEN)
    stage_with_tag(bench, "ws/data.bin", CONTENT, "0x8DD4F6C3D0A1B2C")
    run = bench.run(tasks.save, name="data.bin")
    assert run.completed, run.reason
    assert bench.content("ws/data.bin") == b"saved"


# --- what is refused, in words --------------------------------------------------------------------


def test_p9_a_protected_branch_names_the_permission(bench: Bench) -> None:
    bench.given(GIVEN)
    first = bench.run(tasks.step)
    path = path_of("repositories", bench.repository, "settings", "branch_protection")
    bench.truth.client.ask(Ask("protect", "PUT", path, Call.PRIVATE, body=[{"pattern": "main"}]))
    before = bench.head.id
    wait_until_protected(bench)
    run = bench.retry(first)
    assert run.status is Status.FAILED
    assert "publish: PermissionRefusedError: hard-reset branch main" in run.reason
    assert "permit the worker's key to hard-reset, or unprotect the branch" in run.reason
    assert bench.head.id == before
    assert bench.staging_branches() == []


def wait_until_protected(bench: Bench) -> None:
    """The server keeps settings for a few seconds; a reset to the head itself changes nothing."""
    path = path_of("repositories", bench.repository, "branches", "main", "hard_reset")
    reset = Ask("reset", "PUT", path, Call.PUBLISH, query={"ref": bench.head.id})

    def is_protected() -> bool:
        try:
            bench.truth.client.ask(reset)
        except PermissionRefusedError:
            return True
        return False

    until(is_protected, "a protected branch", every=0.2)


def test_p9_a_merge_that_is_not_permitted_names_the_permission(bench: Bench) -> None:
    a = bench.given(GIVEN).id
    run = bench.run(tasks.step, Rule(Say(403), "POST", "/merge/"))
    assert "permit the worker's key to merge" in run.reason
    assert bench.head.id == a


def again(bench: Bench, run: Run, **changed: str) -> Run:
    """Run with a workspace input that no caller can make otherwise."""
    assert run.workspace is not None
    workspace = replace(run.workspace, **changed)  # type: ignore[arg-type]
    attempt = replace(run.attempt, task_id="another")
    return bench.lab._attempt(run.task, attempt, workspace, {}, ())  # noqa: SLF001


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"repository": "no-such-repo"}, "read commit {ref} of no-such-repo: lakeFS answered 404"),
        ({"ref": "f" * 64}, "read commit " + "f" * 64),
        ({"branch": "no-such-branch"}, "read branch no-such-branch of {repo}: lakeFS answered 404"),
    ],
    ids=["repository", "ref", "branch"],
)
def test_what_is_missing_is_named(bench: Bench, changed: dict[str, str], sentence: str) -> None:
    bench.given(GIVEN)
    run = bench.run(tasks.idle)
    failed = again(bench, run, **changed)
    assert failed.status is Status.FAILED
    ref = run.workspace.ref if run.workspace else ""
    assert sentence.format(ref=ref, repo=bench.repository) in failed.reason
    assert "check the repository, branch and ref" in failed.reason


def test_a_server_that_is_no_lakefs_is_told_in_a_sentence(
    bench: Bench, lakefs_server: LakeFSEndpoint
) -> None:
    """The web page of any server answers 200 to anything."""
    store = LakeFSStore(
        LakeFSSettings(f"{lakefs_server.endpoint}/wrong", "key", "secret"),
        ContentCache(bench.place / "c", 1),
        Manifests(bench.place / "m.sqlite"),
    )
    with pytest.raises(PeragoError, match=r"no answer from lakeFS|answered") as told:
        store.head("some-repo", "main")
    assert "check LAKECTL_SERVER_ENDPOINT_URL" in str(told.value)
    store.close()


# --- what this machine remembers ------------------------------------------------------------------


def cached(bench: Bench) -> list[Path]:
    """Find the files that contents of the cache stand in, small and big."""
    cache = bench.place / "worker/cache"
    return [*cache.glob("packs/*.pack"), *cache.glob("md5/*/*")]


def fetched(bench: Bench, task: Callable[..., object] = tasks.idle) -> list[str]:
    """Run a task and return the names of the objects that travelled for it."""
    with bench.proxy.during():
        run = bench.lab.run(task)
        assert run.completed, run.reason
        return sorted(seen.path.rpartition("/")[2] for seen in bench.proxy.matching("GET", OBJECT))


def test_the_second_attempt_on_a_host_fetches_nothing(bench: Bench) -> None:
    bench.given(GIVEN)
    assert fetched(bench) == ["in.txt", "old.txt"]
    assert fetched(bench) == []


@pytest.mark.parametrize("size", [5000, 200_000], ids=["packed", "alone"])
@pytest.mark.parametrize("damage", ["flip", "empty", "link"])
def test_a_damaged_cache_is_repaired(bench: Bench, damage: str, size: int) -> None:
    bench.given({"ws/in.txt": "x" * size})
    fetched(bench)
    bench.store._cache.close()  # noqa: SLF001 - what is copied behind is there
    (place,) = cached(bench)
    content = place.read_bytes()
    place.chmod(0o600)
    match damage:
        case "flip":
            place.write_bytes(content[:100] + b"y" + content[101:])
        case "empty":
            place.write_bytes(b"")
        case "link":
            place.unlink()
            place.symlink_to("/etc/passwd")
    assert fetched(bench) == ["in.txt"]
    assert bench.run(tasks.save, name="other.txt").completed
    assert bench.content("ws/in.txt") == b"x" * size
    if damage != "link" or size == 5000:
        assert fetched(bench) == []


def test_a_damaged_listing_is_asked_for_again(bench: Bench) -> None:
    bench.given(GIVEN)
    fetched(bench)
    with sqlite3.connect(bench.place / "worker/manifests.sqlite") as database:
        changed = database.execute("UPDATE listings SET body = x'0102'").rowcount
        database.execute("UPDATE deltas SET body = x'789c'")
    database.close()
    assert changed
    with bench.proxy.during():
        assert bench.lab.run(tasks.step).completed
        assert len(bench.proxy.matching("GET", "/objects/ls")) == 1


def test_a_file_that_is_no_database_costs_requests_only(bench: Bench) -> None:
    bench.given(GIVEN)
    bench.store._manifests.close()  # noqa: SLF001 - to break what is beneath it
    (bench.place / "worker").mkdir(exist_ok=True)
    for path in (bench.place / "worker").glob("manifests*"):
        path.unlink()
    (bench.place / "worker/manifests.sqlite").write_bytes(b"no database at all" * 100)
    assert bench.run(tasks.step).completed
    assert bench.files() == after()


def test_a_merge_that_met_foreign_changes_is_not_remembered_as_ours(bench: Bench) -> None:
    """The window of a soft fence: what landed holds more than was staged."""
    bench.given(GIVEN)
    assert bench.run(tasks.idle).completed
    between = MoveHeadAt("after second attempt fence", {"ws/foreign.txt": "foreign"})
    assert "cannot be verified" in bench.lab.run(tasks.step, faults=[between]).reason
    run = bench.run(tasks.idle)  # P9's remedy: start from the current head.
    assert run.result == {"files": 3}  # in, out and foreign


@pytest.mark.parametrize("cache_bytes", [1 << 30, 200_000], ids=["roomy", "always-trimming"])
def test_processes_that_share_a_cache_all_read_what_is_right(
    bench: Bench, lakefs_server: LakeFSEndpoint, cache_bytes: int
) -> None:
    bench.given({f"ws/f{number}": f"{number}" * 3000 for number in range(60)})
    wanted = hashlib.sha256()
    files = bench.files()
    for key in sorted(files):
        wanted.update(key.removeprefix("ws/").encode() + b"\0" + files[key])
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.lakefs.sharer"],
            env={
                **os.environ,
                "ENDPOINT": lakefs_server.endpoint,
                "KEY": lakefs_server.access_key_id,
                "SECRET": lakefs_server.secret,
                "REPOSITORY": bench.repository,
                "REF": bench.head.id,
                "CACHE": str(bench.place / "shared"),
                "CACHE_BYTES": str(cache_bytes),
                "ROOM": str(bench.place / f"room-{number}"),
                "ROUNDS": "6",
            },
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(3)
    ]
    for process in running:
        told, _ = process.communicate(timeout=LIMIT)
        assert process.returncode == 0
        assert told.split() == [wanted.hexdigest()] * 6
