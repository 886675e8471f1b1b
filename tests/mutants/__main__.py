"""Breaks named rules one by one; each must turn a test red: ``python -m tests.mutants [WORD...]``.

The checkout is never changed: each mutant is a copy of ``src`` of its own, put before it on the
path. What the tests say without a mutant is asked first; they must be green.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.mutants.table import MUTANTS, Mutant
from tests.patience import scaled

ROOT = Path(__file__).parents[2]
FAILED = 1
"""What pytest ends with when tests have failed, and not something else."""
LIMIT_SECONDS = scaled(300)
"""A mutant whose tests take longer hangs, which is noticed too."""


def mutated(mutant: Mutant, source: Path) -> str:
    """Return the file with the rule broken; the old text must be there exactly once."""
    text = (source / mutant.file).read_text()
    found = text.count(mutant.old)
    if found != 1:
        raise LookupError(f"{mutant.name}: the old text is {found} times in {mutant.file}")
    return text.replace(mutant.old, mutant.new)


def tested(tests: Sequence[str], source: Path) -> subprocess.CompletedProcess[str] | None:
    """Run tests with the sources of a directory; None when they did not come to an end."""
    words = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", *tests]
    environment = os.environ | {"PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        return subprocess.run(
            words,
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return None


def survives(mutant: Mutant) -> str:
    """Say why a mutant lives; empty when a test has noticed it."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as scratch:
        copied = Path(scratch)
        shutil.copytree(ROOT / "src", copied / "src", ignore=shutil.ignore_patterns("__pycache__"))
        try:
            text = mutated(mutant, copied)
        except LookupError as error:
            return str(error)
        (copied / mutant.file).write_text(text)
        done = tested(shlex.split(mutant.tests), copied / "src")
    if done is None or done.returncode == FAILED:
        return ""
    if done.returncode == 0:
        return f"{mutant.name}: no test of {mutant.tests} noticed"
    return f"{mutant.name}: {mutant.tests} could not be run:\n{done.stdout}{done.stderr}"


def unbroken(mutants: Sequence[Mutant], jobs: int) -> list[str]:
    """Run the same tests on what is not broken; what is red there would prove nothing."""
    selections = sorted({mutant.tests for mutant in mutants})

    def red(tests: str) -> str:
        done = tested(shlex.split(tests), ROOT / "src")
        if done is not None and done.returncode == 0:
            return ""
        return f"{tests} is not green without a mutant:\n{done.stdout if done else 'it hangs'}"

    with ThreadPoolExecutor(jobs) as pool:
        return [found for found in pool.map(red, selections) if found]


def main() -> int:
    """Exit 1 when a mutant survives, cannot be made, or its tests are red without it."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("words", nargs="*", help="only mutants whose name has one of these")
    parser.add_argument("--jobs", type=int, default=2, help="how many run side by side")
    given = parser.parse_args()
    chosen = [
        mutant
        for mutant in MUTANTS
        if not given.words or any(word in mutant.name for word in given.words)
    ]
    began = time.monotonic()
    problems = unbroken(chosen, given.jobs)
    with ThreadPoolExecutor(given.jobs) as pool:
        for mutant, problem in zip(chosen, pool.map(survives, chosen), strict=True):
            _say(f"{'SURVIVES' if problem else 'noticed '}  {mutant.name}")
            problems += [problem] if problem else []
    for problem in problems:
        _say(problem)
    seconds = time.monotonic() - began
    _say(f"{len(chosen)} rules broken, {len(problems)} problems, {seconds:.0f} seconds")
    return 1 if problems else 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
