"""V8 in earnest, without servers: a body finds the worker's keys, says them, and nobody hears."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import canary

KEY, PASSWORD = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYCANARYKEY1", "conductor+Secret/of=tests1"
ROOT = Path(__file__).parents[2]


def perago(directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environ = {
        **{name: text for name, text in os.environ.items() if not name.startswith("PERAGO_")},
        "PYTHONPATH": str(ROOT),
        "LAKECTL_SERVER_ENDPOINT_URL": "http://127.0.0.1:9",
        "LAKECTL_CREDENTIALS_ACCESS_KEY_ID": "AKIAIOSFODNN7CANARY1",
        "LAKECTL_CREDENTIALS_SECRET_ACCESS_KEY": KEY,
        "CONDUCTOR_SERVER_URL": "http://127.0.0.1:9/api",
        "CONDUCTOR_AUTH_KEY": "conductor-key-1",
        "CONDUCTOR_AUTH_SECRET": PASSWORD,
        "OTEL_EXPORTER_OTLP_HEADERS": "api-key=canary-header-1",
        "PERAGO_LEDGER": f"sqlite://{directory}/ledger.sqlite",
        "PERAGO_FAILURE_REASON_MAX_LENGTH": "60",
    }
    command = [sys.executable, "-m", "perago", *words]
    return subprocess.run(
        command, cwd=directory, env=environ, text=True, capture_output=True, check=False
    )


@pytest.mark.parametrize("mode", ["process", "thread"])
def test_v8_a_key_that_a_body_says_is_nowhere(tmp_path: Path, mode: str) -> None:
    """Reason, result, chained errors, metrics, event log, ledger, run records, commits, console."""
    task = ("run", "tests.redaction.leaky_tasks:leaky", "--execution-mode", mode)
    good = perago(tmp_path, *task, "--json")
    assert good.returncode == 0, good.stderr
    result = json.loads(good.stdout[good.stdout.index('{\n  "run"') :])["output"]["result"]
    assert result["keys"] == 2
    assert "[hidden]" in result["text"]
    bad = perago(tmp_path, *task, "--params", '{"how": "error"}')
    assert bad.returncode == 1
    assert "ValueError: [hidden]" in bad.stdout
    # What a body prints in thread mode, it prints itself: nobody is between it and the screen.
    runs = (good, bad) if mode == "process" else ()
    said = [canary.told("the console", done.stdout, done.stderr) for done in runs]
    looked = [perago(tmp_path, *words) for words in (("log", "--json"), ("runs", "--json"))]
    looked += [perago(tmp_path, "inspect", json.loads(looked[1].stdout)[0]["run"])]
    looked += [perago(tmp_path, "ledger", "show", "--json")]
    assert [done.returncode for done in looked] == [0, 0, 0, 0]
    assert "[hidden]" in looked[2].stdout
    for key in (KEY, PASSWORD):
        canary.assert_absent(
            key, said, [canary.told("a command", d.stdout, d.stderr) for d in looked]
        )
        canary.assert_absent(key, canary.files(tmp_path))


@pytest.mark.parametrize("mode", ["process", "thread"])
def test_v8_a_body_and_its_children_have_no_key_in_their_environment(
    tmp_path: Path, mode: str
) -> None:
    params = json.dumps({"how": mode})
    task = ("run", "tests.redaction.leaky_tasks:curious", "--execution-mode", mode)
    done = perago(tmp_path, *task, "--params", params, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["output"]["result"]["inherited"] == []
