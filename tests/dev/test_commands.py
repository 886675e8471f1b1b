"""``perago dev`` as a person uses it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from perago.cli.dev import app
from perago.dev import Instance
from perago.errors import PeragoError
from tests.dev.http import LakeFS
from tests.patience import LIMIT, TEST_SECONDS

# The servers may have to be built first.
pytestmark = pytest.mark.timeout(3 * TEST_SECONDS)

Dev = Callable[..., str]


@pytest.fixture
def dev(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dev:
    """Run a command in a directory of its own; a mistake is raised."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PERAGO_HOME", raising=False)
    runner = CliRunner()

    def run(*words: str) -> str:
        done = runner.invoke(app, words, catch_exceptions=True)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        assert done.exit_code == 0, done.output
        return done.stdout

    return run


def described(text: str) -> Any:
    return json.loads(text)


def test_up_status_logs_down(dev: Dev, tmp_path: Path) -> None:
    shown = dev("up", "--lakefs")
    file = tmp_path / ".perago/dev/default/env"
    assert f"set -a; . {file}" in shown.replace("\n", "")
    assert "LAKECTL_SERVER_ENDPOINT_URL=http://127.0.0.1:" in file.read_text()

    (found,) = described(dev("status", "--json"))
    (lakefs,) = found["servers"]
    assert lakefs["state"] == "running"
    instance = Instance("default", tmp_path / ".perago")
    assert instance.lakefs.secret not in dev("status", "--json")
    assert LakeFS(instance.lakefs).repositories() == []
    assert "1.84.0" in dev("logs", "lakefs")
    assert {each["server"] for each in described(dev("logs", "--json"))} == {"lakefs"}

    os.kill(lakefs["pid"], signal.SIGKILL)
    instance.record.servers["lakefs"].process.wait(LIMIT)
    assert "dead" in dev("status")

    dev("down")
    assert "stopped" in dev("status")
    assert file.parent.joinpath("logs/lakefs.log").exists()
    dev("down", "--purge")
    assert not file.parent.exists()
    assert "no instance here" in dev("status")


def test_a_shell_has_lakectl_and_the_keys(dev: Dev, tmp_path: Path) -> None:
    found = described(dev("up", "--lakefs", "--json"))
    lakectl = Path(found["tools"]["lakectl"])
    assert lakectl.parent == tmp_path / ".perago/dev/default/bin"
    assert str(lakectl) in dev("status").replace("\n", "")
    assert described(dev("status", "--json"))[0]["tools"] == {"lakectl": str(lakectl)}

    made = in_shell("lakectl", "repo", "create", "lakefs://words-of-mine", "local://words")
    assert made.returncode == 0, made.stderr
    assert "words-of-mine" in in_shell("lakectl", "repo", "list").stdout
    opened = in_shell(text="lakectl repo list; command -v lakectl; exit 7\n")
    assert opened.returncode == 7
    assert "words-of-mine" in opened.stdout
    assert opened.stdout.splitlines()[-1] == str(lakectl)
    assert "leave it with: exit" in opened.stderr

    for word in ("no-such-command", str(tmp_path)):
        refused = in_shell(word)
        assert refused.returncode == 2
        assert "there is no command" in refused.stderr
    dev("down")
    stopped = in_shell("lakectl", "repo", "list")
    assert "perago dev up --name default --lakefs" in stopped.stderr
    assert stopped.stderr.count("\n") == 1


def test_without_lakectl_a_shell_says_how_to_get_it(
    dev: Dev, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lakefs = Path(described(dev("fetch", "--json"))["lakefs"])
    monkeypatch.setenv("PERAGO_DEV_LAKEFS_BINARY", str(lakefs))
    monkeypatch.setenv("PERAGO_DEV_CACHE", str(tmp_path / "empty"))
    try:
        assert described(dev("up", "--lakefs", "--json"))["tools"] == {}
        assert "perago dev fetch" in in_shell("lakectl", "repo", "list").stderr
    finally:
        dev("down")


def in_shell(*words: str, text: str = "") -> subprocess.CompletedProcess[str]:
    """Run ``perago dev shell`` as a process: it becomes what it runs."""
    program = [sys.executable, "-m", "perago", "dev", "shell", "--", *words]
    environment = {**os.environ, "SHELL": "/bin/sh"}
    return subprocess.run(
        program,
        env=environment,
        input=text,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )


def test_up_for_machines(dev: Dev) -> None:
    found = described(dev("up", "--name", "other", "--lakefs", "--blocks", "s3", "--json"))
    assert [each["server"] for each in found["servers"]] == ["s3", "lakefs"]
    assert found["environment"]["LAKECTL_CREDENTIALS_SECRET_ACCESS_KEY"]
    assert found["s3"]["bucket"] == "blocks"
    again = described(dev("up", "--name", "other", "--lakefs", "--blocks", "s3", "--json"))
    assert [each["pid"] for each in again["servers"]] == [each["pid"] for each in found["servers"]]
    assert described(dev("down", "--all", "--json")) == {"stopped": ["other"], "purged": False}


@pytest.mark.parametrize("words", [("down",), ("logs",), ("status", "--name", "other")])
def test_without_an_instance_the_remedy_is_named(dev: Dev, words: tuple[str, ...]) -> None:
    with pytest.raises(PeragoError, match=r"there is no instance .*; start one with"):
        dev(*words)
    assert not Path(".perago").exists()
