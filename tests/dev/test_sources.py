"""A program is taken from where a person said, then from PATH, and only then made."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from perago.dev.builds import Builder
from perago.dev.cache import Cache
from perago.dev.commands import CommandLine
from perago.dev.errors import BuildFailedError
from perago.dev.progress import NoProgress
from perago.dev.recipes import Recipe
from perago.dev.sources import Sources
from perago.dev.tools import Tools, version_in
from perago.errors import RuntimeConfigError


def program(folder: Path, name: str, says: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note what would be made, and make something small instead."""
    names: list[str] = []

    def make(_: Builder, recipe: Recipe, directory: Path) -> None:
        names.append(recipe.name)
        for name in recipe.programs:
            (directory / name).write_text(name)

    monkeypatch.setattr(Builder, "make", make)
    return names


def test_a_variable_wins(tmp_path: Path, built: list[str]) -> None:
    mine = program(tmp_path / "mine", "my-lakefs", "anything")
    program(tmp_path / "path", "lakefs", "lakeFS version: 1.84.0")
    environ = {"PERAGO_DEV_LAKEFS_BINARY": str(mine), "PATH": str(tmp_path / "path")}
    sources = Sources({**environ, "PERAGO_DEV_CACHE": str(tmp_path / "cache")})
    assert sources.program("lakefs") == mine
    assert sources.version("lakefs") == "given"
    assert built == []


def test_a_variable_that_names_nothing_is_refused(tmp_path: Path) -> None:
    sources = Sources({"PERAGO_DEV_CONDUCTOR_JAR": str(tmp_path / "gone.jar")})
    with pytest.raises(RuntimeConfigError, match="no file; name the program itself"):
        sources.program("conductor")


def test_the_right_version_on_the_path_is_used(tmp_path: Path, built: list[str]) -> None:
    found = program(tmp_path / "path", "lakefs", "lakeFS version: 1.84.0")
    sources = Sources({"PATH": str(tmp_path / "path"), "PERAGO_DEV_CACHE": str(tmp_path / "c")})
    assert sources.program("lakefs") == found
    assert built == []


@pytest.mark.parametrize("says", ["lakeFS version: 1.84.01", "1.184.0", "11.84.0", "dev", ""])
def test_another_version_on_the_path_is_not(tmp_path: Path, built: list[str], says: str) -> None:
    program(tmp_path / "path", "lakefs", says)
    sources = Sources({"PATH": str(tmp_path / "path"), "PERAGO_DEV_CACHE": str(tmp_path / "c")})
    assert sources.program("lakefs").parent.parent == tmp_path / "c"
    assert built == ["lakefs"]


def test_one_build_gives_both_programs_of_lakefs(tmp_path: Path, built: list[str]) -> None:
    sources = Sources({"PATH": "", "PERAGO_DEV_CACHE": str(tmp_path / "c")})
    assert sources.program("lakefs").read_text() == "lakefs"
    assert sources.program("lakectl").read_text() == "lakectl"
    assert built == ["lakefs"]


def test_versions_are_compared_as_numbers() -> None:
    assert version_in("go version go1.26.10 linux/amd64", r"go([\d.]+)") >= (1, 26, 4)
    assert version_in("go version go1.9 linux/amd64", r"go([\d.]+)") < (1, 26, 4)
    assert version_in('openjdk version "25" 2025-09', r'version "([\d.]+)') >= (21,)
    assert version_in("no such thing", r"go([\d.]+)") == ()


def test_java_home_goes_before_the_path(tmp_path: Path) -> None:
    home = program(tmp_path / "home" / "bin", "java", 'openjdk version "25.0.1"')
    path = program(tmp_path / "path", "java", 'openjdk version "21.0.1"')
    environ = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(path.parent)}
    cache = Cache(tmp_path / "cache")
    assert Tools(cache, NoProgress(), environ).java() == home
    program(tmp_path / "home" / "bin", "java", 'openjdk version "17.0.1"')
    assert Tools(cache, NoProgress(), environ).java() == path


def test_a_failing_build_says_its_last_words_and_where_the_log_is(tmp_path: Path) -> None:
    log = tmp_path / "build.log"
    script = "print('all well'); raise SystemExit('disk full')"
    command = CommandLine([sys.executable, "-c", script], tmp_path, os.environ)
    with pytest.raises(BuildFailedError, match=r"exit code 1: disk full; read .*build\.log"):
        command.run(log, NoProgress())
    assert log.read_text() == "all well\ndisk full\n"
