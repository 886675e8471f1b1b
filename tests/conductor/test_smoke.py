"""The happy-path smoke script, on real servers that a ``.env`` names."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from perago.brokers.conductor.client import Ask, ConductorClient
from perago.dev import ConductorEndpoint, LakeFSEndpoint
from tests.environment import clean_environment
from tests.lakefs_lab import ArrangedLakeFS, new_name
from tests.patience import LIMIT

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "real_conductor_lakefs_smoke.py"
STEPS = ["Reach", "W1:", "W2:", "G1:", "V2:", "W6:", "V7:", "cleanup:"]


def smoke(directory: Path, repository: str, dotenv: str) -> subprocess.CompletedProcess[str]:
    """Run it where a ``.env`` says which servers."""
    place = directory / "checkout"
    place.mkdir()
    (place / ".env").write_text(dotenv)
    return subprocess.run(
        [sys.executable, str(SCRIPT), "--repo", repository],
        cwd=place,
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
    )


def dotenv_of(lakefs: LakeFSEndpoint, conductor_url: str) -> str:
    return (
        f"LAKECTL_SERVER_ENDPOINT_URL={lakefs.endpoint}\n"
        f"LAKECTL_CREDENTIALS_ACCESS_KEY_ID={lakefs.access_key_id}\n"
        f"LAKECTL_CREDENTIALS_SECRET_ACCESS_KEY={lakefs.secret}\n"
        f"CONDUCTOR_SERVER_URL={conductor_url}\n"
    )


@pytest.fixture
def repository(lakefs_server: LakeFSEndpoint, tmp_path: Path) -> str:
    store = ArrangedLakeFS(lakefs_server, tmp_path / "truth")
    name = new_name()
    store.create_repository(name)
    store.close()
    return name


def test_the_whole_way_from_register_to_sigterm(
    tmp_path: Path,
    repository: str,
    lakefs_server: LakeFSEndpoint,
    conductor_server: ConductorEndpoint,
    truth: ConductorClient,
) -> None:
    ran = smoke(tmp_path, repository, dotenv_of(lakefs_server, conductor_server.url))
    lines = ran.stdout.splitlines()
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert [line.split()[:2] for line in lines[:-1]] == [["ok", name] for name in STEPS]
    assert lines[-1] == "7 of 7 steps are well"
    assert lakefs_server.secret not in ran.stdout + ran.stderr
    found = truth.ask(Ask("look", "GET", "/metadata/taskdefs"))
    assert [task["name"] for task in found if task["name"].startswith("perago-smoke")] == []


@pytest.mark.parametrize("fault", ["conductor", "no conductor", "repository"])
def test_what_keeps_it_from_starting_is_one_sentence(
    fault: str,
    tmp_path: Path,
    repository: str,
    lakefs_server: LakeFSEndpoint,
    conductor_server: ConductorEndpoint,
) -> None:
    url = {"conductor": "http://127.0.0.1:9", "no conductor": ""}.get(fault, conductor_server.url)
    name = "no-such-repository" if fault == "repository" else repository
    ran = smoke(tmp_path, name, dotenv_of(lakefs_server, url))
    assert ran.returncode == 1
    assert "failed  " in ran.stdout
    assert ran.stderr == ""
