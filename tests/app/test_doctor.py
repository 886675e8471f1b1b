"""What ``perago doctor`` says of this machine before it asks any server."""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path

import pytest

from perago.app.doctor import Finding, Health, examine
from perago.settings import load_settings


def findings(directory: Path, **environ: str) -> dict[str, Finding]:
    settings = load_settings({"HOME": str(directory), **environ}, directory)
    local = takewhile(lambda found: found.what != "embedded store", examine(settings, None))
    return {found.what: found for found in local}


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_it_says_which_file_was_read(directory: Path) -> None:
    found = findings(directory)["configuration"]
    assert (found.health, f"no .env in {directory}" in found.detail) == (Health.GOOD, True)
    (directory / ".env").write_text("PERAGO_INSTANCE_ID=one\n")
    (directory / ".env").chmod(0o600)
    found = findings(directory)["configuration"]
    assert (found.health, str(directory / ".env") in found.detail) == (Health.GOOD, True)


def test_it_says_that_others_can_read_that_file(directory: Path) -> None:
    (directory / ".env").write_text("PERAGO_INSTANCE_ID=one\n")
    (directory / ".env").chmod(0o644)
    found = findings(directory)["configuration"]
    assert (found.health, found.remedy) == (Health.DOUBTFUL, f"chmod 600 {directory / '.env'}")


@pytest.mark.parametrize(
    "variable", ["PERAGO_HOME", "PERAGO_WORKSPACE_ROOT", "PERAGO_LOG_ROOT", "PERAGO_CACHE_ROOT"]
)
def test_it_says_which_root_is_not_safe_and_makes_nothing(directory: Path, variable: str) -> None:
    (directory / "open").mkdir()
    (directory / "open").chmod(0o777)
    bad = [
        found
        for found in findings(directory, **{variable: str(directory / "open" / "root")}).values()
        if found.health is Health.BAD
    ]
    assert len(bad) == 1
    assert variable in bad[0].remedy
    assert [path.name for path in directory.rglob("*")] == ["open"]
