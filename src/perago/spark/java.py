"""The Java that Spark needs: found the way Spark finds it, and asked before Spark is."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from perago.errors import RuntimeConfigError

OLDEST: Final = 17
# Spark starts every JVM with it; a JRE cut down for another purpose may lack it.
_MODULE: Final = "jdk.incubator.vector"
_SECONDS: Final = 30.0
_REMEDY: Final = "install a JDK 17 or newer and have it on PATH, or name it with JAVA_HOME"


def installed() -> bool:
    """Return whether PySpark is there at all."""
    return importlib.util.find_spec("pyspark") is not None


def usable(environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether Spark could be started here."""
    try:
        check(environ)
    except RuntimeConfigError:
        return False
    return True


def check(environ: Mapping[str, str] = os.environ) -> str:
    """Describe the Java that Spark would use, or say what is wrong with it."""
    if not installed():
        raise RuntimeConfigError(
            "Spark tasks need the package 'pyspark'", remedy="install 'perago[spark]'"
        )
    java = find(environ)
    if java is None:
        given = environ.get("JAVA_HOME")
        where = f"JAVA_HOME is {given!r}, which holds no java" if given else "no java on PATH"
        raise RuntimeConfigError(f"Spark needs Java, and there is none: {where}", remedy=_REMEDY)
    code, said = _run(java, f"--add-modules={_MODULE}", "-XshowSettings:properties", "-version")
    if code:
        _, said = _run(java, "-version")
    version = _version(said)
    if version is None:
        raise RuntimeConfigError(f"{java} does not tell its version", remedy=_REMEDY)
    if version < OLDEST:
        raise RuntimeConfigError(
            f"Spark needs Java {OLDEST} or newer, {java} is Java {version}", remedy=_REMEDY
        )
    if code:
        raise RuntimeConfigError(
            f"{java} is Java {version} without the module {_MODULE}, which Spark needs",
            remedy="use a full JDK or JRE, named with JAVA_HOME",
        )
    return f"Java {version} at {java}"


def find(environ: Mapping[str, str]) -> Path | None:
    """Find the program as spark-submit does: JAVA_HOME first, and only there when it is set."""
    if home := environ.get("JAVA_HOME"):
        java = Path(home) / "bin" / "java"
        return java if os.access(java, os.X_OK) else None
    found = shutil.which("java", path=environ.get("PATH"))
    return Path(found) if found else None


def run(java: Path, *arguments: str, seconds: float) -> subprocess.CompletedProcess[str]:
    """Run a JVM to its end; ``OSError`` or ``TimeoutExpired`` when it cannot be."""
    return subprocess.run(  # noqa: S603 - the program that Spark is about to run itself
        [java, *arguments],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=seconds,
        check=False,
    )


def _run(java: Path, *arguments: str) -> tuple[int, str]:
    try:
        done = run(java, *arguments, seconds=_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RuntimeConfigError(f"{java} cannot be run: {error}", remedy=_REMEDY) from None
    return done.returncode, done.stdout + done.stderr


def _version(said: str) -> int | None:
    """Read 17 from ``17.0.15``, and 8 from ``1.8.0_402``."""
    found = re.search(r'java\.specification\.version = (?:1\.)?(\d+)|version "(?:1\.)?(\d+)', said)
    return int(found[1] or found[2]) if found else None
