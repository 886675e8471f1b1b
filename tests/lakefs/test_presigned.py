"""Big objects by signed addresses, where lakeFS keeps its blocks in an S3 store (D3, S2, S3)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from perago.dev import LakeFSEndpoint
from perago.stores.lakefs.client import Ask
from perago.transfer.wire import path_of
from tests.faults.proxy import Answer, Exchange, Proxy, Rule, Say
from tests.lakefs import tasks
from tests.lakefs.bench import Bench
from tests.lakefs.tasks import MIB
from tests.lakefs.test_transfer import other_host, put_in_parts
from tests.lakefs_lab import ArrangedLakeFS, new_name

CONTENT = bytes(range(256)) * (3 * MIB // 256)
KEY = "ws/data 1.bin"


@pytest.fixture
def server(lakefs_s3_server: LakeFSEndpoint) -> LakeFSEndpoint:
    return lakefs_s3_server


@pytest.fixture
def bench(server: LakeFSEndpoint, tmp_path: Path) -> Iterator[Bench]:
    truth = ArrangedLakeFS(server, tmp_path / "truth")
    with Proxy(server.endpoint) as proxy:
        store = ArrangedLakeFS(server, tmp_path / "worker", url=proxy.url)
        bench = Bench(store, truth, proxy, new_name(), tmp_path)
        yield bench
        bench.close()
    truth.close()
    assert proxy.problems == []


class Lead:
    """Answers as lakeFS does, but leads to another address."""

    def __init__(self, url: str) -> None:
        self._url = url

    def meet(self, exchange: Exchange) -> None:
        said = json.loads(exchange.forward().body)
        for name in ("physical_address", "presigned_url"):
            if str(said.get(name, "")).startswith("http"):
                said[name] = self._url
        said.pop("presigned_urls", None)
        body = json.dumps(said).encode()
        exchange.reply(Answer(200, (("Content-Type", "application/json"),), body))


def bytes_through_lakefs(bench: Bench) -> list[str]:
    """List what brought bytes of big objects through the lakeFS server."""
    gets = bench.proxy.matching("GET", r"/objects\?path=.*bin")
    sent = [seen for seen in bench.proxy.matching() if len(seen.body) > MIB]
    return [f"{seen.method} {seen.path}" for seen in (*gets, *sent)]


def signed(bench: Bench, key: str) -> str:
    path = path_of("repositories", bench.repository, "refs", "main", "objects", "stat")
    ask = Ask("stat", "GET", path, query={"path": key, "presign": True})
    return str(bench.truth.client.ask(ask)["physical_address"])


def test_a_big_object_travels_past_lakefs_both_ways(bench: Bench) -> None:
    bench.given({KEY: CONTENT})
    with bench.proxy.during():
        run = bench.lab.run(tasks.double, {"name": "data 1.bin"})
        assert run.completed, run.reason
        assert bytes_through_lakefs(bench) == []
    with bench.proxy.during():
        assert bench.lab.run(tasks.blob, {"size": 2 * MIB}).completed
        assert len(bench.proxy.matching()) <= 12 + 2 * 1  # One file went up.
    assert bench.content("ws/data 1.bin.double") == CONTENT * 2
    (info,) = bench.truth.listing(bench.repository, bench.head.id, "ws/data 1.bin.double")
    digest = hashlib.md5(CONTENT * 2, usedforsecurity=False).hexdigest()
    assert info.checksum == f"md5:{digest}"
    assert "signed addresses" in bench.store.way(bench.repository)


def test_an_object_in_parts_travels_past_lakefs_both_ways(
    bench: Bench, server: LakeFSEndpoint
) -> None:
    bench.given({"ws/in.txt": "in"})
    with bench.proxy.during():
        run = bench.lab.run(tasks.big, {"how": "make"})
        assert run.completed, run.reason
        assert bytes_through_lakefs(bench) == []
    (info,) = bench.truth.listing(bench.repository, bench.head.id, "ws/big.bin")
    digest = hashlib.md5(tasks.big_content(), usedforsecurity=False).hexdigest()
    assert info.checksum == f"md5:{digest}"  # Of the content, not of its parts.
    other = other_host(bench, server)
    with bench.proxy.during():
        run = other.lab.run(tasks.big, {"how": "touch"})
        assert run.completed, run.reason
        assert bytes_through_lakefs(bench) == []
    assert bench.content("ws/big.bin") == tasks.big_content()
    other.close()


def test_d3_what_comes_from_the_block_store_is_verified(bench: Bench) -> None:
    wrong = CONTENT[:-1] + b"!"
    bench.given({KEY: CONTENT, "other/wrong.bin": wrong})
    lead = Lead(signed(bench, "other/wrong.bin"))
    run = bench.run(tasks.idle, Rule(lead, "GET", "/objects/stat", times=None))
    assert f"download: CorruptObjectError: object {KEY!a}" in run.reason
    assert bench.retry(run).completed


@pytest.mark.parametrize("where", ["http://127.0.0.1:1/blocks", "nonsense", "http://[bad"])
def test_a_block_store_that_does_not_answer_is_gone_around(bench: Bench, where: str) -> None:
    bench.given({KEY: CONTENT})
    lead = Lead(where)
    with bench.proxy.during(Rule(lead, "GET", "/objects/stat", times=None)):
        run = bench.lab.run(tasks.double, {"name": "data 1.bin"})
        assert run.completed, run.reason
        assert len(bytes_through_lakefs(bench)) == 2
    assert bench.content("ws/data 1.bin.double") == CONTENT * 2
    assert bench.store.way(bench.repository) == "the API"


def test_an_upload_finds_out_too(bench: Bench) -> None:
    bench.given({"ws/in.txt": "in"})
    lead = Lead("http://127.0.0.1:1/blocks")
    with bench.proxy.during(Rule(lead, "GET", "/staging/backing", times=None)):
        run = bench.lab.run(tasks.blob, {"size": 2 * MIB})
        assert run.completed, run.reason
        assert len(bytes_through_lakefs(bench)) == 1
    assert len(bench.content("ws/blob.bin")) == 2 * MIB


def test_p6_a_lost_answer_to_taking_it_in_is_asked_again(bench: Bench) -> None:
    bench.given({"ws/in.txt": "in"})
    run = bench.run(
        tasks.blob, Rule(Say(503, applied=True), "PUT", "/staging/backing"), size=MIB * 2
    )
    assert run.completed, run.reason
    run = bench.run(tasks.big, Rule(Say(503, applied=True), "PUT", "/staging/pmpu/"), how="make")
    assert run.completed, run.reason
    assert bench.content("ws/big.bin") == tasks.big_content()


def test_no_address_with_a_signature_and_no_key_is_told(bench: Bench) -> None:
    bench.given({KEY: CONTENT})
    address = signed(bench, KEY).replace("Signature=", "Signature=0")
    bench.store._transports.of(bench.repository, bench.head.id)  # noqa: SLF001 - as if it had answered
    transport = bench.store._transports.of(bench.repository, bench.head.id)  # noqa: SLF001
    assert transport.presigned is not None
    transport.presigned.answered = True
    run = bench.run(tasks.idle, Rule(Lead(address), "GET", "/objects/stat", times=None))
    assert "the block store of lakeFS could not be used (answered 403)" in run.reason
    assert "Signature" not in run.reason + json.dumps([str(event) for event in run.events])


@pytest.mark.parametrize("part", [7_340_033, 5 * MIB, 6_000_000], ids=["odd", "usual", "even"])
def test_d3_parts_of_any_length_are_not_taken_for_damage(
    bench: Bench, server: LakeFSEndpoint, part: int
) -> None:
    """The block store says that its tag is one of parts: then it is no checksum of the content."""
    bench.given({"ws/in.txt": "in"})
    content = bytes(range(251)) * (16 * MIB // 251)
    put_in_parts(bench, server, "ws/parts.bin", content, part)
    run = bench.run(tasks.idle)
    assert run.completed, run.reason
    assert bench.content("ws/parts.bin") == content
