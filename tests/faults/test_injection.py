"""A case whose fault did not happen fails, whoever injects it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from perago.errors import UsageError
from perago.testing import FailAt, Lab
from tests import injection
from tests.faults.proxy import Alter, Proxy, Rule, Say, Truncate
from tests.lifecycle import tasks
from tests.patience import LIMIT

ROOT = Path(__file__).parents[2]
KILLED = "killed_while_it_adopts_the_next_retry_adopts_again"
ANYWHERE = "test_v1_v2_v5_killed_anywhere_the_retry_completes"
AGAIN = "test_p6_reads_and_private_writes_are_sent_again"
SAMPLE = (
    f"tests/ledger/test_attempt.py::test_k5_{KILLED}[claimed]",
    "tests/broker/test_kill_and_resume.py::test_killed_at_a_random_moment_and_resumed[0]",
    f"tests/lifecycle/test_attempt.py::{ANYWHERE}[embedded-write-claimed]",
    f"tests/lakefs/test_lost_answers.py::{AGAIN}[get-object-503]",
    "tests/lakefs/test_transfer.py::test_d3_a_body_that_breaks_off_is_asked_for_again[plain-1]",
    "tests/lakefs/test_transfer.py::test_d3_a_body_in_drops_arrives_whole[plain]",
)


def test_without_injection_every_case_fails() -> None:
    """Some of these would complete undisturbed; they are cases of a fault, so they may not."""
    words = [sys.executable, "-m", "pytest", *SAMPLE, "-rA", "-p", "no:cacheprovider"]
    done = subprocess.run(
        words,
        cwd=ROOT,
        env=os.environ | {"PERAGO_INJECTION": "off"},
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
    )
    ends = [line for line in done.stdout.splitlines() if line.startswith(("PASSED", "FAILED"))]
    assert len(ends) == len(SAMPLE), done.stdout
    assert [line for line in ends if line.startswith("PASSED")] == []
    assert done.stdout.count("these faults never happened") >= 4


# --- the injectors --------------------------------------------------------------------------------


class Plain(BaseHTTPRequestHandler):
    """Answers everything with four bytes, or with none below ``/empty``."""

    def do_GET(self) -> None:
        body = b"" if self.path.startswith("/empty") else b"good"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Say nothing."""


@pytest.fixture
def plain() -> Iterator[Proxy]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Plain) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        with Proxy(f"http://127.0.0.1:{server.server_port}") as proxy:
            yield proxy
        server.shutdown()


def get(proxy: Proxy, path: str) -> int:
    connection = HTTPConnection(proxy.url.removeprefix("http://"), timeout=LIMIT)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()


def test_a_rule_counts_the_requests_its_own_fault_has_met(plain: Proxy) -> None:
    first, second = Rule(Say(503), path="/a"), Rule(Say(500), path="/a")
    with injection.case() as case:
        plain.add(first)
        plain.add(second)
        assert len(case.missing) == 2
        assert get(plain, "/a") == 503
        assert [what for what in case.missing if "/a" in what] == [*case.expected][1:]
    with pytest.raises(AssertionError, match="Say of any request /a"):
        injection.check(case, wanted=False)


@pytest.mark.parametrize("fault", [Truncate(0, honest=True), Alter()], ids=repr)
def test_a_fault_that_finds_nothing_to_spoil_does_not_count(
    plain: Proxy, fault: Truncate | Alter
) -> None:
    rule = Rule(fault, path="/empty", times=None)
    with injection.case():
        plain.add(rule)
    with suppress(OSError):
        get(plain, "/empty")
    assert (rule.met, rule.acted) == (1, 0)


def test_an_answer_without_a_body_breaks_off_in_its_head(plain: Proxy) -> None:
    rule = Rule(Truncate(2), path="/empty")
    with injection.case():
        plain.add(rule)
    with pytest.raises((HTTPException, OSError)):
        get(plain, "/empty")
    assert rule.acted == 1


def test_a_case_of_the_rig_without_any_fault_fails() -> None:
    with injection.case() as case:
        pass
    injection.check(case, wanted=False)
    with pytest.raises(AssertionError, match="no fault was injected"):
        injection.check(case, wanted=True)


def test_the_faults_of_a_workflow_are_those_of_whoever_looks_at_it() -> None:
    with injection.case() as test:
        with injection.case() as ahead:
            injection.expect("a kill", lambda: 0)
        assert test.missing == []
    assert ahead.missing == ["a kill"]


def test_a_fault_of_a_lab_that_never_happens_is_an_error(perago_lab: Lab) -> None:
    with injection.case() as case, pytest.raises(UsageError, match="FailAt never happened"):
        perago_lab.run(tasks.touch, files=tasks.GIVEN, faults=[FailAt("branch created")])
    assert case.missing == ["FailAt"]
