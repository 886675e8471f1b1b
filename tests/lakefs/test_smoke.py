"""The smoke script of source 004, on a real server and on a spoilt one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from perago.dev import LakeFSEndpoint
from tests.environment import clean_environment
from tests.faults.proxy import Rule, Say
from tests.lakefs.bench import Bench
from tests.lakefs.tasks import GIVEN
from tests.patience import LIMIT

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "real_lakefs_publication_protocol_smoke.py"
RULES = ["P1", "P2", "P3", "N1", "N2", "N3", "P4", "P4"]


def smoke(
    bench: Bench, endpoint: LakeFSEndpoint, url: str, secret: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run it where a ``.env`` says which server."""
    directory = bench.place / "checkout"
    directory.mkdir()
    (directory / ".env").write_text(
        f"LAKECTL_SERVER_ENDPOINT_URL={url}\n"
        f"LAKECTL_CREDENTIALS_ACCESS_KEY_ID={endpoint.access_key_id}\n"
        f"LAKECTL_CREDENTIALS_SECRET_ACCESS_KEY={secret or endpoint.secret}\n"
    )
    env = clean_environment()
    env["PERAGO_CACHE_ROOT"] = str(directory / "cache")
    return subprocess.run(
        [sys.executable, str(SCRIPT), "--repo", bench.repository],
        cwd=directory,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
    )


def branches(bench: Bench) -> list[str]:
    return [branch.name for branch in bench.truth.branches(bench.repository, hidden=True)]


def test_004_every_path_of_the_publication_protocol(
    bench: Bench, lakefs_server: LakeFSEndpoint
) -> None:
    head = bench.given(GIVEN).id
    ran = smoke(bench, lakefs_server, lakefs_server.endpoint)
    lines = ran.stdout.splitlines()
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert [line.split()[:2] for line in lines[: len(RULES)]] == [
        ["ok", f"{rule}:"] for rule in RULES
    ]
    assert lines[-2].startswith("ok      cleanup")
    assert lines[-1] == "8 of 8 paths are as the protocol says"
    assert branches(bench) == ["main"]
    assert bench.head.id == head
    assert lakefs_server.secret not in ran.stdout + ran.stderr


def test_004_a_path_that_fails_is_told_and_cleaned_up(
    bench: Bench, lakefs_server: LakeFSEndpoint
) -> None:
    bench.given(GIVEN)
    with bench.proxy.during(Rule(Say(409), "POST", "/merge/", times=None)):
        ran = smoke(bench, lakefs_server, bench.proxy.url)
    assert ran.returncode == 1
    assert "failed  P1:" in ran.stdout
    assert "LostRaceError" in ran.stdout
    assert "ok      P3:" in ran.stdout
    assert branches(bench) == ["main"]


@pytest.mark.parametrize("fault", ["secret", "repository", "server", "unset"])
def test_004_what_keeps_it_from_starting_is_one_sentence(
    bench: Bench, lakefs_server: LakeFSEndpoint, fault: str
) -> None:
    if fault != "repository":
        bench.given(GIVEN)
    url = {"server": "http://127.0.0.1:9", "unset": ""}.get(fault, lakefs_server.endpoint)
    secret = "CANARY-SECRET" if fault == "secret" else ""
    ran = smoke(bench, lakefs_server, url, secret)
    assert ran.returncode == 1
    (line,) = ran.stdout.splitlines()
    assert line.startswith("failed  ")
    assert ran.stderr == ""
    assert "CANARY" not in ran.stdout
    assert lakefs_server.secret not in ran.stdout
