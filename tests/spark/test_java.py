"""A missing or wrong Java is said in one sentence with a remedy (X1)."""

from __future__ import annotations

from pathlib import Path

import pytest

from perago.errors import RuntimeConfigError
from perago.spark import java


def _fake(home: Path, script: str) -> dict[str, str]:
    program = home / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return {"JAVA_HOME": str(home)}


def test_the_java_of_this_machine_will_do() -> None:
    assert java.check().startswith("Java ")


def test_no_java() -> None:
    with pytest.raises(RuntimeConfigError, match="no java on PATH; install a JDK 17"):
        java.check({"PATH": "/nonexistent"})
    with pytest.raises(RuntimeConfigError, match="JAVA_HOME is '/nonexistent', which holds no"):
        java.check({"JAVA_HOME": "/nonexistent", "PATH": "/usr/bin"})


def test_an_old_java(tmp_path: Path) -> None:
    said = _fake(tmp_path, 'echo \'openjdk version "1.8.0_402"\' >&2; [ "$1" = -version ]')
    with pytest.raises(RuntimeConfigError, match=r"needs Java 17 or newer, .* is Java 8; install"):
        java.check(said)


def test_a_java_that_was_cut_down(tmp_path: Path) -> None:
    said = _fake(tmp_path, 'echo \'openjdk version "25.0.2"\' >&2; [ "$1" = -version ]')
    with pytest.raises(RuntimeConfigError, match=r"is Java 25 without the module jdk\.incubator"):
        java.check(said)


def test_a_program_that_is_no_java(tmp_path: Path) -> None:
    with pytest.raises(RuntimeConfigError, match="does not tell its version"):
        java.check(_fake(tmp_path, "exit 0"))
