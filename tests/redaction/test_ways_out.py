"""V8: each way out hides keys by itself, also what did not come by way of an attempt."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from perago.brokers.conductor.client import ConductorClient
from perago.clock import SystemClock
from perago.history.event_log import AttemptJournal, EventLog
from perago.ledger.sql import SqlLedger
from perago.ledger.sqlite import SqliteDatabase
from perago.protocol.adoption import Posting, Terms
from perago.protocol.events import Traceback, UnknownEvent
from perago.protocol.values import Attempt, Claim
from perago.protocol.worker_events import WorkerEvent
from perago.redaction import keep_secret
from perago.settings import ConductorSettings, LakeFSSettings
from perago.stores.embedded import EmbeddedStore
from perago.stores.lakefs.client import Ask, LakeFSClient
from perago.stores.lakefs.errors import Call
from perago.worker.event_fanout import EventFanout
from perago.worker.state import StateFile
from tests import canary
from tests.patience import LIMIT

KEY = "w4ys/Out+Of=a/Process/0123456789"
SAID = canary.chatter(KEY)
CLAIM = Claim(Attempt("workflow", "task", 0, "step", "step"), {}, "execution")


@pytest.fixture(autouse=True)
def known() -> None:
    keep_secret(KEY)


class Server(HTTPServer):
    """Keeps what it is sent."""

    def __init__(self) -> None:
        self.kept: list[bytes] = []
        super().__init__(("127.0.0.1", 0), Keeper)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Keeper(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        self.server.kept.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class says so
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as found:
        thread = threading.Thread(target=found.serve_forever, daemon=True)
        thread.start()
        yield found
        found.shutdown()
        thread.join(LIMIT)


def test_v8_the_event_log_and_whoever_listens(tmp_path: Path) -> None:
    heard: list[dict[str, object]] = []
    log = EventLog(tmp_path / "events.sqlite")
    journal = AttemptJournal(log, CLAIM, SystemClock(), heard.append)
    said = {"text": SAID, "more": [SAID, {SAID: SAID}], "other": Path(SAID[:200])}
    journal.event(UnknownEvent("something", said))
    journal.event(Traceback(SAID))
    log.close()
    canary.assert_absent(KEY, canary.files(tmp_path))
    del heard[0]["other"]  # A path travels as what it is; it is hidden where it is written.
    canary.assert_absent(KEY, canary.told("what was heard", *heard))


def test_v8_commits_of_the_embedded_store(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path)
    store.create_repository("one", "main")
    store.put("one", "main", "data.txt", b"x")
    made = store.commit_branch("one", "main", SAID, {"words": SAID, SAID: "x"})
    canary.assert_absent(KEY, canary.commits(store, "one"), canary.told("the commit", made))
    store.close()
    canary.assert_absent(KEY, canary.files(tmp_path))


def test_v8_commits_on_lakefs(server: Server) -> None:
    client = LakeFSClient(LakeFSSettings(server.url, "key", "secret"))
    body = {"message": SAID, "metadata": {"words": SAID}, "squash_merge": True}
    client.ask(Ask("merge", "POST", "/repositories/one/merge", Call.CREATE, body=body))
    client.close()
    canary.assert_absent(KEY, canary.told("the request", server.kept[0].decode()))
    assert json.loads(server.kept[0])["squash_merge"] is True


def test_v8_results_and_the_task_log_at_conductor(server: Server) -> None:
    client = ConductorClient(ConductorSettings(f"{server.url}/api"))
    place = {"repository": "one", "branch": "main", "ref": "c"}
    output = {"workspace": place, "result": {"text": SAID}}
    client.update({"taskId": "t", "outputData": output, "reasonForIncompletion": SAID})
    client.log("t", SAID)
    client.close()
    sent = [content.decode() for content in server.kept]
    assert len(sent) == 2
    canary.assert_absent(KEY, canary.told("the requests", *sent))
    assert json.loads(sent[0])["outputData"]["workspace"] == place


def test_v8_the_ledger(tmp_path: Path) -> None:
    ledger = SqlLedger(SqliteDatabase(tmp_path / "ledger.sqlite"))
    terms = Terms("key", "one", "main", "a", "digest", "task", "", "head", "code")
    posting = Posting("execution", CLAIM.attempt, terms, "merge", "h", None, {}, 1.0)
    ledger.post(replace(posting, output={"result": {"text": SAID, SAID: [SAID]}}))
    ledger.close()
    canary.assert_absent(KEY, canary.files(tmp_path))


def test_v8_the_supervisor_s_state_and_its_watchers(tmp_path: Path) -> None:
    heard: list[object] = []

    class Watcher:
        def event(self, *said: object) -> None:
            heard.append(said)

        output = worker = event

        def close(self, timeout_seconds: float) -> None:
            pass

    fanout = EventFanout([Watcher()], SystemClock())
    fanout.worker(WorkerEvent.START_FAILED, {"why": SAID, "detail": SAID})
    fanout.output(None, "w-0001", "stdout", SAID)
    StateFile(tmp_path, 0.0, 0.0).write({"problems": [SAID]}, 1.0, at_once=True)
    canary.assert_absent(KEY, canary.told("watchers", *heard), canary.files(tmp_path))
    canary.assert_absent(KEY, canary.told("problems", list(fanout.problems)))
