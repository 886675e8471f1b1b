"""Audit what Perago is built from: ``make audit``.

Every pin must have a hash, none may have been yanked by its authors (the package index says so),
and none may have a known vulnerability (OSV says so, for Python packages and for the jars of direct
workspaces). Where OSV cannot be reached that last part is left out, and it is said; with
``--strict`` it is a failure. Findings that do not concern us stand in ``ACCEPTED``, with reasons.
"""  # noqa: INP001 - run from the checkout, not shipped

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
REQUIREMENTS = [
    *sorted(ROOT.glob("requirements/*.txt")),
    *sorted(ROOT.glob("src/perago/dev/pins/*.txt")),
]
JARS = ROOT / "src" / "perago" / "spark" / "direct-jars.txt"
OSV = "https://api.osv.dev/v1/querybatch"
ACCEPTED: Mapping[str, str] = {}
_SECONDS = 30.0
_AT_ONCE = 500
_PIN = re.compile(r"^(?P<name>[A-Za-z0-9][\w.-]*)==(?P<version>[^\s;\\]+)")
_YANKED = re.compile(r"`(?P<pin>[^`]+)` is yanked(?P<why>.*)")


@dataclass(frozen=True, slots=True, order=True)
class Pin:
    """One package at one version, as OSV names it."""

    ecosystem: str
    name: str
    version: str
    hashed: bool = True

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


def python_pins(text: str) -> Iterator[Pin]:
    """Read a requirements file; its hashes stand on the lines that follow a pin."""
    for block in re.split(r"\n(?=\S)", text):
        if found := _PIN.match(block):
            yield Pin("PyPI", found["name"], found["version"], "--hash=sha256:" in block)


def jar_pins(text: str) -> Iterator[Pin]:
    """Read a list of ``group:artifact:version sha256``."""
    for line in text.splitlines():
        if line and not line.startswith("#"):
            coordinate, _, digest = line.partition(" ")
            group, artifact, version = coordinate.split(":")
            whole = re.fullmatch(r"[0-9a-f]{64}", digest.strip()) is not None
            yield Pin("Maven", f"{group}:{artifact}", version, whole)


def questions(pins: Sequence[Pin]) -> dict[str, Any]:
    """Ask about many pins at once."""
    return {
        "queries": [
            {"package": {"ecosystem": pin.ecosystem, "name": pin.name}, "version": pin.version}
            for pin in pins
        ]
    }


def vulnerable(pins: Sequence[Pin], answer: Mapping[str, Any]) -> Iterator[str]:
    """Read the answers, which come in the order of the questions."""
    for pin, result in zip(pins, answer["results"], strict=True):
        known = {str(found["id"]) for found in result.get("vulns", [])} - ACCEPTED.keys()
        if known:
            yield f"{pin} is vulnerable: {', '.join(sorted(known))}"


def unhashed(pins: Iterable[Pin]) -> Iterator[str]:
    """Find pins that anybody could replace."""
    return (f"{pin} has no hash" for pin in pins if not pin.hashed)


def yanked(words: str) -> Iterator[str]:
    """Read what uv says of versions that their authors took back."""
    return (f"{found['pin']} is yanked{found['why']}" for found in _YANKED.finditer(words))


def main() -> int:
    """Look at every pin; exit 1 when something is wrong with one."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--uv", default="uv", help="the uv to ask the package index with")
    parser.add_argument("--strict", action="store_true", help="fail when OSV cannot be reached")
    given = parser.parse_args()
    pins = sorted({*_python(), *jar_pins(JARS.read_text())})
    findings = [*unhashed(pins)]
    for path in REQUIREMENTS:
        findings += yanked(_asked(given.uv, path))
    told = f"{len(pins)} pins: hashes looked at, none yanked"
    try:
        for start in range(0, len(pins), _AT_ONCE):
            some = pins[start : start + _AT_ONCE]
            findings += vulnerable(some, _osv(questions(some)))
        told += ", no known vulnerability"
    except (urllib.error.URLError, TimeoutError) as error:
        text = f"vulnerabilities were not looked up: OSV cannot be reached ({_why(error)})"
        findings += [text] if given.strict else []
        told += f"; {text}"
    sys.stdout.write("\n".join(sorted(set(findings)) or [told]) + "\n")
    return 1 if findings else 0


def _why(error: Exception) -> object:
    return getattr(error, "reason", error)


def _python() -> Iterator[Pin]:
    for path in REQUIREMENTS:
        yield from python_pins(path.read_text())


def _asked(uv: str, path: Path) -> str:
    command = [uv, "pip", "compile", "--no-deps", "--universal", str(path)]
    done = subprocess.run(  # noqa: S603 - our own command
        command, capture_output=True, text=True, timeout=300, check=False
    )
    if done.returncode:
        raise SystemExit(f"uv cannot read {path.name}: {done.stderr.strip()}")
    return done.stderr


def _osv(asked: Mapping[str, Any]) -> Any:
    request = urllib.request.Request(
        OSV, json.dumps(asked).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=_SECONDS) as answer:  # noqa: S310 - the address is above
        return json.load(answer)


if __name__ == "__main__":
    raise SystemExit(main())
