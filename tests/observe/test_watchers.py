"""All watchers opened at once, as a worker does, and told of the same attempts."""

from __future__ import annotations

import io
from pathlib import Path

from perago.clock import SystemClock
from perago.observe.watchers import open_watchers
from perago.tasks.spec import MetricSpec
from tests.observe import told
from tests.observe.test_tasklog import Server


def test_v8_one_call_opens_them_and_none_lets_a_secret_out(tmp_path: Path) -> None:
    server, screen = Server(), io.StringIO()
    found = open_watchers(
        told.settings(tmp_path), {"double": MetricSpec()}, 2, server, SystemClock(), screen
    )
    for watcher in found.watchers:
        told.completed(watcher, told.claim())
        told.failed(watcher, told.claim())
    _, page = found.metrics.page()
    for watcher in found.watchers:
        watcher.close(30)
    texts = [found.log.path.read_text(), screen.getvalue(), str(server.entries), page.decode()]
    assert all(texts)
    for text in texts:
        assert not [secret for secret in (*told.SECRETS, "canary-param") if secret in text]
