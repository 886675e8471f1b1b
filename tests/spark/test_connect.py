"""Spark Connect: a session for each attempt, no JVM of ours, told in a sentence (X3, X4)."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from perago.errors import RuntimeConfigError, TaskFailed
from perago.ports import Site
from perago.protocol.spark import SparkNeed
from perago.protocol.values import Status
from perago.settings import SparkSettings
from perago.spark import connect
from perago.spark.connect import CONNECT
from perago.spark.engine import SparkEngine
from perago.spark.errors import explained
from perago.spark.jvm import JVM
from perago.spark.session import AttemptSession
from perago.testing import Lab
from tests.patience import LIMIT
from tests.spark import cluster_tasks, tasks
from tests.spark.conftest import new_session

SECRET = "very-secret"  # noqa: S105 - and not one at all


class Wire:
    """Carries bytes to a server and back until it is cut."""

    def __init__(self, address: str) -> None:
        host, _, port = address.removeprefix("sc://").partition(":")
        self._to = (host, int(port))
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"sc://127.0.0.1:{self._server.getsockname()[1]}"
        self._ends: list[socket.socket] = [self._server]
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def cut(self) -> None:
        """End all connections and take no new ones."""
        for end in self._ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        for thread in self._threads:
            thread.join(LIMIT)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._server.accept()
                far = socket.create_connection(self._to)
                self._ends += [near, far]
                self._start(self._carry, near, far)
                self._start(self._carry, far, near)

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(65536):
                other.sendall(data)

    def _start(self, target: Callable[..., None], *arguments: socket.socket) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()


def _session(address: str, **conf: str) -> AttemptSession:
    named = {f"spark.sql.{key.replace('_', '.')}": value for key, value in conf.items()}
    return AttemptSession(SparkNeed(address, named), "x", SparkSettings())


def test_x3_views_and_settings_of_one_attempt_are_not_in_the_next(
    connect_server: str, tmp_path: Path
) -> None:
    lab, jvm = Lab(tmp_path, spark=SparkSettings(master=connect_server)), JVM.pid
    first, second = lab.run(tasks.views), lab.run(tasks.views)
    lab.close()
    assert first.completed, first.reason
    assert first.result == second.result == {"views": [], "partitions": "7", "zone": "UTC"}
    assert JVM.pid == jvm


def test_what_connect_does_not_have_is_told_in_a_sentence(
    connect_server: str, tmp_path: Path
) -> None:
    lab = Lab(tmp_path, spark=SparkSettings(master=connect_server))
    run = lab.run(cluster_tasks.context)
    lab.close()
    assert run.status is Status.FAILED
    assert "`sparkContext` is not supported in Spark Connect" in run.reason
    assert "\n" not in run.reason


def test_x4_a_setting_that_the_server_would_have_to_be_started_with_is_told(
    connect_server: str,
) -> None:
    session = _session(connect_server, extensions="a.Extension")
    with pytest.raises(RuntimeConfigError, match=r"server has spark\.sql\.extensions=''"):
        session.open()
    assert CONNECT.users == 0


@pytest.mark.usefixtures("jvm")
def test_x3_both_kinds_cannot_be_used_at_once_but_one_after_the_other(connect_server: str) -> None:
    remote, local = _session(connect_server), new_session("local")
    assert remote.open().range(5).count() == 5
    with pytest.raises(RuntimeConfigError, match="cannot be used at the same time"):
        local.open()
    remote.close()
    assert local.open().range(6).count() == 6
    with pytest.raises(RuntimeConfigError, match="cannot be used at the same time"):
        _session(connect_server).open()
    local.close()


def test_a_closed_session_is_gone_and_the_server_is_not(connect_server: str) -> None:
    first, second = _session(connect_server), _session(connect_server)
    lost = first.open().range(3)
    other = second.open().range(4)
    first.close()
    with pytest.raises(TaskFailed, match="NO_ACTIVE_SESSION"), explained():
        lost.count()
    assert other.count() == 4
    second.close()
    assert CONNECT.users == 0


def test_x4_a_server_that_is_not_there_is_told_without_its_token(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connect, "_ANSWER_SECONDS", 3.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(TaskFailed, match=f"answers at sc://127.0.0.1:{port};") as told:
            _session(f"sc://127.0.0.1:{port}/;token={SECRET}").open()
    assert SECRET not in str(told.value)
    with pytest.raises(TaskFailed, match=r"no Spark Connect server answers at sc://127\.0\.0\.1:9"):
        _session("sc://127.0.0.1:9").open()
    with pytest.raises(RuntimeConfigError, match=r"master 'sc://127\.0\.0\.1:9/path'") as wrong:
        _session(f"sc://127.0.0.1:9/path;token={SECRET}").open()
    assert SECRET not in str(wrong.value)
    assert CONNECT.users == 0


def test_x2_a_directory_of_this_machine_is_no_place_for_a_server(tmp_path: Path) -> None:
    need, site = SparkNeed(f"sc://elsewhere/;token={SECRET}"), Site("x", tmp_path)
    with pytest.raises(RuntimeConfigError, match="'sc://elsewhere' works on other mac") as told:
        SparkEngine(need, site, SparkSettings())
    assert SECRET not in str(told.value)


def test_x4_a_server_that_goes_away_is_told(
    connect_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect, "_RETRIES", {"max_retries": 3})
    wire = Wire(connect_server)
    session = _session(wire.address)
    try:
        assert session.open().range(5).count() == 5
        wire.cut()
        with pytest.raises(TaskFailed, match="the Spark Connect server is gone"), explained():
            session.open().range(5).count()
    finally:
        wire.cut()
        session.close()
    assert CONNECT.users == 0
