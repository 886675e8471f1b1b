"""Words for Docker; no engine runs here, so no container is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from perago.dev.servers import KINDS
from perago.dev.sources import Sources
from perago.errors import RuntimeConfigError


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "docker"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    return path


def test_an_image_of_the_pinned_version_takes_the_place_of_a_build(
    engine: Path, tmp_path: Path
) -> None:
    words = KINDS["lakefs"].prepare(Sources(docker=tmp_path))
    assert words[:2] == [str(engine), "run"]
    assert f"{tmp_path}:{tmp_path}" in words
    assert words[-1] == "treeverse/lakefs:1.84.0"


def test_keys_are_named_and_never_on_the_command_line(engine: Path, tmp_path: Path) -> None:
    words = KINDS["s3"].prepare(Sources(docker=tmp_path))
    assert words[words.index("ROOT_SECRET_KEY") - 1 :][:2] == ["--env", "ROOT_SECRET_KEY"]
    assert not any("=" in word for word in words)


def test_without_docker_the_way_out_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeConfigError, match="no docker on PATH"):
        KINDS["lakefs"].prepare(Sources(docker=tmp_path))
