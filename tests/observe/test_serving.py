"""The endpoint of a worker, asked over real sockets."""

from __future__ import annotations

import http.client
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field

import pytest

from perago.errors import RuntimeConfigError
from perago.worker import serving
from perago.worker.serving import Endpoint
from tests.patience import LIMIT, scaled, until


@dataclass
class Worker:
    healthy: bool = True
    ready: bool = False
    page: bytes = b"perago_attempts_total 1\n"
    broken: bool = False
    endpoint: Endpoint = field(init=False)

    def __post_init__(self) -> None:
        self.endpoint = Endpoint(
            "127.0.0.1:0",
            lambda: (self.healthy, "alive" if self.healthy else "poller is stuck"),
            lambda: (self.ready, "ready" if self.ready else "draining"),
            self._metrics,
        )

    def _metrics(self) -> tuple[str, bytes]:
        if self.broken:
            raise ValueError("canary")
        return "text/plain; version=1.0.0", self.page

    def ask(self, path: str, method: str = "GET") -> tuple[int, str, bytes]:
        host, _, port = self.endpoint.address.rpartition(":")
        with closing(http.client.HTTPConnection(host, int(port), timeout=LIMIT)) as connection:
            connection.request(method, path)
            answer = connection.getresponse()
            return answer.status, answer.headers["Content-Type"], answer.read()


@pytest.fixture
def worker() -> Iterator[Worker]:
    found = Worker()
    with found.endpoint:
        yield found


def test_health_and_readiness_say_why(worker: Worker) -> None:
    assert worker.ask("/healthz")[::2] == (200, b"alive\n")
    assert worker.ask("/readyz")[::2] == (503, b"draining\n")
    worker.healthy, worker.ready = False, True
    assert worker.ask("/healthz")[::2] == (503, b"poller is stuck\n")
    assert worker.ask("/readyz?verbose")[::2] == (200, b"ready\n")


def test_metrics_come_with_their_type(worker: Worker) -> None:
    assert worker.ask("/metrics") == (200, "text/plain; version=1.0.0", worker.page)
    assert worker.ask("/metrics", "HEAD")[::2] == (200, b"")


@pytest.mark.parametrize("path", ["/", "/healthz/", "/../etc/passwd", "/METRICS"])
def test_anything_else_is_not_found(worker: Worker, path: str) -> None:
    assert worker.ask(path)[0] == 404


def test_other_methods_are_refused(worker: Worker) -> None:
    assert worker.ask("/healthz", "POST")[0] == 501


def test_v8_a_page_that_breaks_says_only_that(worker: Worker) -> None:
    worker.broken = True
    status, _, body = worker.ask("/metrics")
    assert (status, body) == (500, b"ValueError\n")
    assert worker.ask("/healthz")[0] == 200


def test_silent_clients_are_dropped_and_do_not_keep_others_waiting(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vars(serving)["_Handler"], "timeout", scaled(1))
    host, _, port = worker.endpoint.address.rpartition(":")
    with closing(socket.create_connection((host, int(port)), timeout=LIMIT)) as silent:
        silent.sendall(b"GET /hea")
        assert worker.ask("/healthz")[0] == 200
        assert silent.recv(100) == b""


def test_a_crowd_is_turned_away_not_stored(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vars(serving)["_Handler"], "timeout", LIMIT)  # None of them leaves,
    monkeypatch.setattr(serving, "REQUEST_SECONDS", LIMIT)  # and none is ended for its slowness.
    host, _, port = worker.endpoint.address.rpartition(":")
    crowd = [socket.create_connection((host, int(port)), timeout=LIMIT) for _ in range(40)]
    try:
        until(lambda: len(select.select(crowd, [], [], 0)[0]) >= 40 - 16, "the end of the others")
        until(lambda: 0 < _handlers() <= 16, "sixteen at most")
    finally:
        for each in crowd:
            each.close()


@pytest.mark.parametrize("begun", [b"", b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: "])
def test_a_probe_is_answered_however_many_are_silent(worker: Worker, begun: bytes) -> None:
    """The longest silent one makes room: nobody who asks waits for one who does not."""
    host, _, port = worker.endpoint.address.rpartition(":")
    crowd: list[socket.socket] = []
    try:
        for _ in range(5):
            for _ in range(24):
                crowd.append(socket.create_connection((host, int(port)), timeout=LIMIT))
                crowd[-1].sendall(begun)
            assert worker.ask("/healthz")[::2] == (200, b"alive\n")
    finally:
        for each in crowd:
            each.close()


def test_a_connection_that_drips_is_ended(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte used to give it all of its time anew."""
    monkeypatch.setattr(serving, "REQUEST_SECONDS", 0.5)
    host, _, port = worker.endpoint.address.rpartition(":")
    with closing(socket.create_connection((host, int(port)), timeout=0.05)) as dripping:
        dripping.sendall(b"GET /healthz HTTP/1.1\r\n")
        for _ in range(2000):
            try:
                dripping.sendall(b"x")
                if not dripping.recv(1):
                    return
            except TimeoutError:
                continue
            except OSError:
                return
    raise AssertionError("it was never ended")


def _handlers() -> int:
    return sum("process_request_thread" in thread.name for thread in threading.enumerate())


@pytest.mark.parametrize("address", ["", "9464", ":9464", "host:", "host:http", "127.0.0.1:99999"])
def test_a_bad_address_is_one_sentence(address: str) -> None:
    with pytest.raises(RuntimeConfigError, match=r"^PERAGO_HTTP is .*; "):
        Endpoint(address, lambda: (True, ""), lambda: (True, ""), lambda: ("", b""))


def test_a_taken_port_is_one_sentence(worker: Worker) -> None:
    with pytest.raises(RuntimeConfigError, match="nothing can listen: Address already in use"):
        Endpoint(worker.endpoint.address, lambda: (True, ""), lambda: (True, ""), lambda: ("", b""))


def test_ipv6() -> None:
    with Endpoint("[::1]:0", lambda: (True, ""), lambda: (True, ""), lambda: ("", b"")) as found:
        assert found.address.startswith("[::1]:")


def test_close_ends_the_thread_and_frees_the_port(worker: Worker) -> None:
    address = worker.endpoint.address
    worker.endpoint.close()
    worker.endpoint.close()
    assert not any(thread.name == "perago-http" for thread in threading.enumerate())
    Endpoint(address, lambda: (True, ""), lambda: (True, ""), lambda: ("", b"")).close()
