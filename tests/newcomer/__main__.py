"""Plays a newcomer: ``python -m tests.newcomer [pipe] [terminal] [wheel]``.

What is committed is cloned, and the tutorial is typed word by word: with the output in a pipe, and
in a terminal of 80 columns (tmux). A wheel, installed far from any checkout,
does the same. What the pages show is compared with what is shown.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.docs.pages import ROOT
from tests.docs.plays import clean_environment, play
from tests.docs.shell import Piped, Shell, Terminal

PAGES = ("docs/tutorial.md",)
EXTRAS = "spark"


def in_a_pipe(scratch: Path) -> None:
    """Follow the pages in a clone, with the output in a pipe."""
    _in_a_clone(scratch, Piped)


def in_a_terminal(scratch: Path) -> None:
    """Follow the pages in a clone, in a terminal of 80 columns."""
    _in_a_clone(scratch, Terminal)


def from_a_wheel(scratch: Path) -> None:
    """Install a wheel into an environment of its own, and follow the pages that need no clone."""
    uv = os.environ.get("UV", "uv")
    quiet = ("--quiet", "--python", sys.executable)
    made = str(scratch / "dist")
    _done(uv, "build", *quiet, "--no-build-isolation", "--wheel", "--out-dir", made, str(ROOT))
    (wheel,) = (scratch / "dist").glob("*.whl")
    _done(uv, "venv", *quiet, "--no-project", str(scratch / "venv"))
    programs = scratch / "venv" / "bin"
    into = ("--quiet", "--python", str(programs / "python"))
    _done(uv, "pip", "install", *into, f"{wheel}[{EXTRAS}]", "pytest")
    clean = clean_environment()
    environment = clean | {"PATH": f"{programs}:/usr/local/bin:/usr/bin:/bin"}
    for page in PAGES:
        _play(page, Piped, scratch, environment, whole=False)


HOW: dict[str, Callable[[Path], None]] = {
    "pipe": in_a_pipe,
    "terminal": in_a_terminal,
    "wheel": from_a_wheel,
}


def _in_a_clone(scratch: Path, kind: Callable[[Path, dict[str, str]], Shell]) -> None:
    clone = scratch / "perago"
    _done("git", "clone", "--quiet", str(ROOT), str(clone))
    environment = clean_environment()
    programs = environment["PATH"].split(":")
    without = [place for place in programs if not place.startswith(str(ROOT))]
    environment["PATH"] = ":".join(without)
    for page in PAGES:
        _play(page, kind, clone, environment, whole=True)


def _play(
    page: str,
    kind: Callable[[Path, dict[str, str]], Shell],
    directory: Path,
    environment: dict[str, str],
    *,
    whole: bool,
) -> None:
    with kind(directory, environment) as shell:
        play(page, shell, directory, whole=whole)
    _say(f"  {page}")


def _done(*words: str) -> None:
    subprocess.run(words, check=True)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    """Exit 1 with the first difference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "how", nargs="*", choices=[*HOW, []], metavar="HOW", help="all of them unless named"
    )
    for name in parser.parse_args().how or HOW:
        _say(name)
        with tempfile.TemporaryDirectory(prefix="newcomer-") as scratch:
            try:
                HOW[name](Path(scratch))
            except AssertionError as error:
                _say(str(error))
                return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
