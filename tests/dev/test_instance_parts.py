"""Ports, records and processes of an instance, without any server."""

from __future__ import annotations

import os
import socket
import stat
import sys
from pathlib import Path

import pytest

from perago.dev import Instance, instances, start
from perago.dev.addresses import HOST, is_free, reserved_port
from perago.dev.endpoints import variables
from perago.dev.errors import NotRunningError, ServerNotStartedError
from perago.dev.logs import lines
from perago.dev.processes import detach
from perago.dev.record import InstanceRecord, ServerRecord, load, save
from perago.dev.sources import Sources
from perago.errors import UsageError
from tests.patience import LIMIT, until


def test_a_reserved_port_is_nobody_elses(tmp_path: Path) -> None:
    with reserved_port(tmp_path) as first, reserved_port(tmp_path, preferred=first) as second:
        assert first != second
        assert is_free(first)
    with reserved_port(tmp_path, preferred=first) as again:
        assert again == first
    assert list(tmp_path.iterdir()) == []


def test_a_port_in_use_is_not_chosen(tmp_path: Path) -> None:
    with socket.socket() as server:
        server.bind((HOST, 0))
        server.listen()
        port = server.getsockname()[1]
        assert not is_free(port)
        with reserved_port(tmp_path, preferred=port) as chosen:
            assert chosen != port


def test_a_record_is_private_and_its_keys_are_its_own(tmp_path: Path) -> None:
    path = tmp_path / "instance.json"
    record = InstanceRecord(name="one")
    save(path, record)
    assert load(path) == record
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    keys = {record.lakefs, record.s3, InstanceRecord(name="two").lakefs}
    assert len({key.secret_access_key for key in keys}) == 3
    assert record.lakefs.secret_access_key not in repr(record)
    assert record.signing_key not in repr(record)


def test_a_broken_record_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "instance.json"
    path.write_text("{")
    with pytest.raises(UsageError, match="cannot be read as an instance"):
        load(path)
    assert load(tmp_path / "none.json") is None


def test_the_environment_has_the_names_a_worker_reads() -> None:
    """W7."""
    record = InstanceRecord(name="one").having("lakefs", ServerRecord(port=1, version="x"))
    assert set(variables(record)) == {
        "LAKECTL_SERVER_ENDPOINT_URL",
        "LAKECTL_CREDENTIALS_ACCESS_KEY_ID",
        "LAKECTL_CREDENTIALS_SECRET_ACCESS_KEY",
    }
    both = record.having("conductor", ServerRecord(port=2, version="x"))
    assert variables(both)["CONDUCTOR_SERVER_URL"] == f"http://{HOST}:2/api"


@pytest.mark.parametrize("name", ["", "../x", "A", "a/b", "-a", "x" * 42])
def test_a_name_that_is_no_directory_is_refused(home: Path, name: str) -> None:
    with pytest.raises(UsageError, match="cannot name an instance"):
        Instance(name, home)


def test_an_instance_that_is_not_there_says_how_to_have_one(home: Path) -> None:
    with pytest.raises(NotRunningError, match="perago dev up"):
        Instance("default", home).status()
    assert instances(home) == []


def test_a_detached_process_has_a_log_and_can_be_stopped(tmp_path: Path) -> None:
    script = "import time; print('here', flush=True); time.sleep(60)"
    process = detach([sys.executable, "-c", script], tmp_path, os.environ, tmp_path / "log")
    assert process.alive
    assert process.memory() > 0
    assert process.stop(LIMIT)
    assert not process.alive


def test_one_that_ignores_sigterm_is_killed_after_the_grace(tmp_path: Path) -> None:
    ready = tmp_path / "log"
    script = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        "print('deaf', flush=True); time.sleep(60)"
    )
    process = detach([sys.executable, "-c", script], tmp_path, os.environ, ready)
    until(ready.read_text, "its first word")
    assert not process.stop(0.3)
    assert not process.alive


def test_a_server_that_ends_at_once_is_reported_with_its_last_words(
    home: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "lakefs"
    broken.write_text("#!/bin/sh\necho 'no such configuration' >&2\nexit 3\n")
    broken.chmod(0o755)
    sources = Sources({**os.environ, "PERAGO_DEV_LAKEFS_BINARY": str(broken)})
    with pytest.raises(ServerNotStartedError, match=r"no such configuration; read .*lakefs\.log"):
        start("default", home, ["lakefs"], sources=sources)
    instance = Instance("default", home)
    assert [each.state for each in instance.status()] == ["dead"]
    instance.purge()
    assert instances(home) == []


def test_logs_give_the_last_lines_and_then_what_is_added(tmp_path: Path) -> None:
    log = tmp_path / "lakefs.log"
    log.write_text("one\ntwo\nthree\n")
    assert list(lines({"lakefs": log, "s3": tmp_path / "none"}, 2)) == [
        ("lakefs", "two"),
        ("lakefs", "three"),
    ]
    following = lines({"lakefs": log}, 1, follow=True)
    assert next(following) == ("lakefs", "three")
    with log.open("a") as file:
        file.write("four\nfi")
    assert next(following) == ("lakefs", "four")
    with log.open("a") as file:
        file.write("ve\n")
    assert next(following) == ("lakefs", "five")


def test_a_new_home_is_private_from_the_first_moment(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """No note that others could look into it: it was made just now."""
    home = tmp_path / "home"
    Instance("default", home).up([])
    assert home.stat().st_mode & 0o077 == 0
    assert caplog.messages == []
