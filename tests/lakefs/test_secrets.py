"""No secret in an error, event, log, file or commit, whatever the server does (I7, V8)."""

from __future__ import annotations

import base64
import logging
import pickle
import traceback
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest

from perago.dev import LakeFSEndpoint
from perago.errors import PeragoError, RuntimeConfigError
from perago.protocol.values import Status
from perago.settings import LakeFSSettings
from perago.stores.lakefs.manifests import Manifests
from perago.stores.lakefs.store import LakeFSStore
from perago.testing import Lab
from perago.transfer.cache import ContentCache
from tests.faults.proxy import (
    Answer,
    Exchange,
    Fault,
    LoseAnswer,
    Proxy,
    ResetBefore,
    Rule,
    Say,
    Truncate,
)
from tests.lakefs import tasks
from tests.lakefs.bench import Bench
from tests.lakefs.tasks import GIVEN
from tests.lakefs_lab import ArrangedLakeFS

pytestmark = pytest.mark.usefixtures("impatient")
CANARY = "CANARY/secret+key=0123456789"


def disguises(key: str, secret: str) -> list[bytes]:
    """Spell a secret in every way it travels."""
    basic = base64.b64encode(f"{key}:{secret}".encode())
    return [secret.encode(), basic, quote(secret, safe="").encode(), secret.encode().hex().encode()]


@dataclass
class Watch:
    """Collects all that an attempt leaves behind."""

    place: Path
    secrets: list[bytes]
    records: pytest.LogCaptureFixture
    output: pytest.CaptureFixture[str]

    def assert_silent(self, *texts: object) -> None:
        out, err = self.output.readouterr()
        told = [*map(str, texts), *map(repr, texts), out, err, self.records.text]
        for text in told:
            self._look("what was told", text.encode())
        for path in self.place.rglob("*"):
            if path.is_file():
                self._look(path.name, path.read_bytes())
            self._look("a file name", str(path).encode())

    def _look(self, where: str, content: bytes) -> None:
        for secret in self.secrets:
            assert secret not in content, where


@pytest.fixture
def watch(
    lakefs_server: LakeFSEndpoint,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> Watch:
    caplog.set_level(logging.DEBUG)
    key = lakefs_server.access_key_id
    secrets = [*disguises(key, lakefs_server.secret), *disguises(key, CANARY)]
    return Watch(tmp_path, secrets, caplog, capsys)


class Echo:
    """Some gateways show the whole request on their error page."""

    def __init__(self, status: int, kind: str) -> None:
        self._status, self._kind = status, kind

    def meet(self, exchange: Exchange) -> None:
        headers = "\n".join(f"{key}: {value}" for key, value in exchange.seen.headers.items())
        text = f"request was {headers}"
        body = text.encode()
        if self._kind == "json":
            body = b'{"message": "%s"}' % text.replace("\n", " ").encode()
        exchange.reply(Answer(self._status, (("Content-Type", f"application/{self._kind}"),), body))


SPOILT: dict[str, tuple[Fault, str]] = {
    "401": (Say(401), ""),
    "403-stage": (Say(403), "/branches$"),
    "403-upload": (Say(403), r"/perago-staging[^/]*/objects\?path="),
    "500": (Say(500), ""),
    "reset": (ResetBefore(), ""),
    "merge-lost": (LoseAnswer(), "/merge/"),
    "merge-reset": (ResetBefore(), "/merge/"),
    "truncated": (Truncate(2), r"/objects\?path="),
    "echo-401": (Echo(401, "json"), ""),
    "echo-403": (Echo(403, "html"), "/commits"),
    "echo-500": (Echo(500, "json"), "/branches"),
    "echo-400-merge": (Echo(400, "json"), "/merge/"),
    "echo-404-object": (Echo(404, "xml"), r"/objects\?path="),
    "echo-403-object": (Echo(403, "xml"), r"/objects\?path="),
}


@pytest.mark.parametrize("name", SPOILT)
def test_v8_a_failing_attempt_tells_no_secret(bench: Bench, watch: Watch, name: str) -> None:
    bench.given(GIVEN)
    fault, path = SPOILT[name]
    before = 1 if path in {"", "/branches"} else 0  # The lab's own look at the head.
    run = bench.run(tasks.step, Rule(fault, "", path, skip=before, times=None))
    assert run.completed == (name == "merge-lost")
    commits = list(bench.truth.history(bench.repository, "main"))
    staged = [commit.metadata.get("perago.staging_commit", "") for commit in commits]
    commits += [bench.truth.commit(bench.repository, ref) for ref in staged if ref]
    watch.assert_silent(run.reason, run.outcome, bench.store, *commits)


def other_lab(
    bench: Bench, endpoint: LakeFSEndpoint, url: str, secret: str
) -> tuple[Lab, ArrangedLakeFS]:
    spoilt = LakeFSEndpoint(url, endpoint.access_key_id, secret)
    store = ArrangedLakeFS(spoilt, bench.place / "other")
    lab = Lab(bench.place / "other-lab", store=store, repository=bench.repository)
    return lab, store


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:9",
        "http://no-such-host.invalid",
        "https://127.0.0.1:9",
    ],
)
def test_v8_a_wrong_endpoint_is_an_error_without_secrets(
    bench: Bench, watch: Watch, lakefs_server: LakeFSEndpoint, url: str
) -> None:
    bench.given(GIVEN)
    good = bench.run(tasks.idle)
    lab, _ = other_lab(bench, lakefs_server, url, CANARY)
    run = lab._attempt(good.task, good.attempt, good.workspace, {}, ())  # noqa: SLF001
    assert run.status is Status.FAILED
    assert "input: StoreUnavailableError" in run.reason
    assert "check LAKECTL_SERVER_ENDPOINT_URL" in run.reason
    watch.assert_silent(run.reason, run.outcome)
    lab.close()


@pytest.mark.parametrize(
    "url",
    ["127.0.0.1:9", "no address", "ftp://127.0.0.1", "file:///etc", "http://", "http://[::1", ""],
)
def test_w7_an_endpoint_that_is_no_address_is_refused_at_once(url: str, tmp_path: Path) -> None:
    settings = LakeFSSettings(url, "key", CANARY)
    with pytest.raises(RuntimeConfigError, match="is not an address") as told:
        LakeFSStore(settings, ContentCache(tmp_path / "cache", 1), Manifests(tmp_path / "m.sqlite"))
    assert CANARY not in "".join(traceback.format_exception(told.value))


def test_v8_a_wrong_secret_is_an_error_without_secrets(
    bench: Bench, watch: Watch, lakefs_server: LakeFSEndpoint
) -> None:
    bench.given(GIVEN)
    good = bench.run(tasks.idle)
    lab, _ = other_lab(bench, lakefs_server, lakefs_server.endpoint, CANARY)
    run = lab._attempt(good.task, good.attempt, good.workspace, {}, ())  # noqa: SLF001
    assert "input: PermissionRefusedError" in run.reason
    assert "check the worker's lakeFS key" in run.reason
    watch.assert_silent(run.reason, run.outcome)
    lab.close()


def test_v8_settings_store_and_errors_show_no_secret(
    proxy: Proxy, watch: Watch, lakefs_server: LakeFSEndpoint, tmp_path: Path
) -> None:
    settings = LakeFSSettings(proxy.url, lakefs_server.access_key_id, lakefs_server.secret)
    store = LakeFSStore(
        settings, ContentCache(tmp_path / "c", 1000), Manifests(tmp_path / "m.sqlite")
    )
    proxy.add(Rule(Say(401), times=None))
    with pytest.raises(PeragoError) as told:
        store.head("some-repo", "main")
    error = told.value
    text = "".join(traceback.format_exception(error))
    watch.assert_silent(settings, store, store.client, error, text, pickle.dumps(error))
    store.close()


def test_i7_the_secret_travels_only_as_authorization(bench: Bench, watch: Watch) -> None:
    bench.given(GIVEN)
    with bench.proxy.during():
        assert bench.lab.run(tasks.step).completed
        sent = bench.proxy.matching()
    assert sent
    for seen in sent:
        others = {k: v for k, v in seen.headers.items() if k.lower() != "authorization"}
        for secret in watch.secrets:
            assert secret not in seen.path.encode()
            assert secret not in repr(others).encode()
            assert secret not in seen.body
        if not seen.path.startswith("/api/"):  # The gateway is sent a signature, never the key.
            assert not any(secret in repr(seen.headers).encode() for secret in watch.secrets)
