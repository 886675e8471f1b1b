"""Audit what Perago is built from: ``make audit``.

Every pin must have a hash: Python packages, the Go modules of the servers and of a benchmark, the
jars of direct workspaces and of Conductor, what the TypeScript package is built with. The
registries are asked whether each one is still there, still the same, and not taken back by its
authors. A registry that cannot be asked at all is a failure, not a good sign. Whether a pin has a
known vulnerability, only OSV says; where it cannot be reached that is left out, and it is said.
With ``--strict`` it is a failure.

Findings that do not concern us stand in ``ACCEPTED``, with reasons.
"""  # noqa: INP001 - run from the checkout, not shipped

from __future__ import annotations

import argparse
import base64
import functools
import hashlib
import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import urllib3

from perago.dev.recipes import CONDUCTOR

Fetch = Callable[[str], bytes | None]
"""Reads a path of a registry; None when it has no such thing."""

ROOT = Path(__file__).parents[1]
REQUIREMENTS = [
    *sorted(ROOT.glob("requirements/*.txt")),
    *sorted(ROOT.glob("src/perago/dev/pins/*.txt")),
]
MODULES = [*sorted(ROOT.glob("src/perago/dev/modules/*/go.mod")), ROOT / "bench/s5cmd/go.mod"]
JARS = ROOT / "src" / "perago" / "spark" / "direct-jars.txt"
NPM_LOCKS = [ROOT / "typescript" / "package-lock.json"]
OSV = "https://api.osv.dev/v1/querybatch"
GO_PROXY = "https://proxy.golang.org"
MAVEN = "https://repo1.maven.org/maven2"
NPM = "https://registry.npmjs.org"
ACCEPTED: Mapping[str, str] = {}
_SECONDS = 60.0
_TRIES = 3
_AT_ONCE = 500
_THREADS = 8
_FOUND = 200
_NOT_THERE = frozenset({403, 404, 410})
_PIN = re.compile(r"^(?P<name>[A-Za-z0-9][\w.-]*)==(?P<version>[^\s;\\]+)")
_YANKED = re.compile(r"`(?P<pin>[^`]+)` is yanked(?P<why>.*)")
_REQUIRED = re.compile(
    r"^(?:require\s+|\t)(?P<name>\S+) (?P<version>v\S+)(?:\s*//.*)?$", re.MULTILINE
)
_REPLACED = re.compile(
    r"^(?:replace\s+|\t)(?P<old>\S+)(?: v\S+)? => (?P<name>\S+) (?P<to>v\S+)", re.MULTILINE
)
_RETRACT = re.compile(r"^retract\s+(?:\((?P<block>[^)]*)\)|(?P<line>[^\n]*))", re.MULTILINE)
_VERSION = re.compile(r"v\d+\.\d+\.\d+")
_SPAN = re.compile(r"\[\s*(v[^\s,]+)\s*,\s*(v[^\s\]]+)\s*\]|(v[^\s\])]+)")


@dataclass(frozen=True, slots=True, order=True)
class Pin:
    """One package at one version, as OSV names it; ``digest`` is what it must be."""

    ecosystem: str
    name: str
    version: str
    hashed: bool = True
    digest: str = ""
    classifier: str = ""
    """What Maven calls the kind of a jar."""

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


@dataclass(slots=True)
class Looked:
    """What was asked, what was found, and what could not be seen."""

    told: list[str] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)


class UnansweredError(Exception):
    """A registry did not answer at all."""


# --- what is pinned -------------------------------------------------------------------------------


def python_pins(text: str) -> Iterator[Pin]:
    """Read a requirements file; its hashes stand on the lines that follow a pin."""
    for block in re.split(r"\n(?=\S)", text):
        if found := _PIN.match(block):
            yield Pin("PyPI", found["name"], found["version"], "--hash=sha256:" in block)


def go_pins(module: str, sums: str) -> Iterator[Pin]:
    """Read a ``go.mod``, which names all that is built, and the hashes of its ``go.sum``."""
    known = {(name, version): digest for name, version, digest in map(str.split, sums.splitlines())}
    required = dict(_REQUIRED.findall(module))
    for old, name, version in _REPLACED.findall(module):
        required.pop(old, None)
        required[name] = version
    for name, version in required.items():
        digest = known.get((name, f"{version}/go.mod"), "")
        # Without a hash of its content nothing of it is built; its go.mod is still read.
        yield Pin("Go", name, version, digest.startswith("h1:"), digest)


def jar_pins(text: str) -> Iterator[Pin]:
    """Read a list of ``group:artifact:version sha256``."""
    for line in text.splitlines():
        if line and not line.startswith("#"):
            coordinate, _, digest = line.partition(" ")
            group, artifact, version = coordinate.split(":")
            yield _jar(group, artifact, version, digest.strip())


def npm_pins(text: str) -> Iterator[Pin]:
    """Read a ``package-lock.json``; its first package is the one that it is the lock of."""
    for path, package in json.loads(text)["packages"].items():
        if not path or package.get("link"):
            continue
        name = str(package.get("name") or path.rpartition("node_modules/")[2])
        digest = str(package.get("integrity", ""))
        yield Pin("npm", name, str(package["version"]), digest.startswith("sha512-"), digest)


def conductor_pin() -> Pin:
    """Give the pin of the server that is fetched as one jar."""
    group, artifact, _, classifier, version = CONDUCTOR.coordinate.split(":")
    return _jar(group, artifact, version, CONDUCTOR.sha256, classifier)


def _jar(group: str, artifact: str, version: str, digest: str, classifier: str = "") -> Pin:
    whole = re.fullmatch(r"[0-9a-f]{64}", digest) is not None
    return Pin("Maven", f"{group}:{artifact}", version, whole, digest, classifier)


def unhashed(pins: Iterable[Pin]) -> Iterator[str]:
    """Find pins that anybody could replace."""
    return (f"{pin} has no hash" for pin in pins if not pin.hashed)


# --- what the registries say ----------------------------------------------------------------------


def yanked(words: str) -> Iterator[str]:
    """Read what uv says of versions that their authors took back."""
    return (f"{found['pin']} is yanked{found['why']}" for found in _YANKED.finditer(words))


def go_hash(module: bytes) -> str:
    """Hash a ``go.mod`` the way ``go.sum`` does."""
    line = f"{hashlib.sha256(module).hexdigest()}  go.mod\n"
    return f"h1:{base64.b64encode(hashlib.sha256(line.encode()).digest()).decode()}"


def go_path(name: str) -> str:
    """Write the name of a module as its proxies want it: they have no capital letters."""
    return re.sub(r"[A-Z]", lambda found: f"!{found[0].lower()}", name)


def retracted(version: str, module: str) -> bool:
    """Tell whether the newest ``go.mod`` of a module takes this version back."""
    for found in _RETRACT.finditer(module):
        text = re.sub(r"//[^\n]*", "", found["block"] or found["line"] or "")
        for first, last, only in _SPAN.findall(text):
            low, high = (only, only) if only else (first, last)
            if _ordered(low) <= _ordered(version) <= _ordered(high):
                return True
    return False


def _ordered(version: str) -> tuple[tuple[int, ...], bool, str]:
    """Order versions: by their numbers, a release behind what leads to it."""
    numbers, _, before = version.removeprefix("v").partition("+")[0].partition("-")
    return tuple(int(part) for part in numbers.split(".")), not before, before


def ask_go(pins: Sequence[Pin], fetch: Fetch) -> Looked:
    """Ask the proxy for each module, and for the newest one, which names what was retracted."""
    looked = Looked()
    with ThreadPoolExecutor(_THREADS) as pool:
        found = pool.map(lambda pin: fetch(f"{go_path(pin.name)}/@v/{pin.version}.mod"), pins)
        for pin, module in zip(pins, found, strict=True):
            if module is None:
                looked.findings.append(f"{pin} is not there any more")
            elif pin.hashed and go_hash(module) != pin.digest:
                looked.findings.append(f"{pin} is not what was pinned")
        newest = list(pool.map(lambda pin: _newest(pin, fetch), pins))
    for pin, module in zip(pins, newest, strict=True):
        if module is not None and retracted(pin.version, module.decode(errors="replace")):
            looked.findings.append(f"{pin} is retracted")
    unknown = newest.count(None)
    looked.told.append(f"Go: {len(pins)} modules are there, each as it was pinned")
    if unknown:
        looked.told.append(
            f"Go: of {unknown} modules the proxy does not say which version is the newest: "
            "whether ours were retracted was not looked up"
        )
    return looked


def _newest(pin: Pin, fetch: Fetch) -> bytes | None:
    """Read the newest ``go.mod``; some proxies say which it is, others list what they have."""
    if said := fetch(f"{go_path(pin.name)}/@latest"):
        version = str(json.loads(said)["Version"])
    elif listed := fetch(f"{go_path(pin.name)}/@v/list"):
        versions = [one for one in listed.decode().split() if _VERSION.match(one)]
        version = max(versions, key=lambda one: (_ordered(one)[1], _ordered(one)), default="")
    else:
        return None
    return fetch(f"{go_path(pin.name)}/@v/{version}.mod") if version else None


def ask_maven(pins: Sequence[Pin], fetch: Fetch) -> Looked:
    """Ask for what is published beside each jar: a checksum of it."""
    looked = Looked()

    def beside(pin: Pin) -> tuple[bytes | None, bytes | None]:
        group, _, artifact = pin.name.partition(":")
        kind = f"-{pin.classifier}" if pin.classifier else ""
        jar = f"{group.replace('.', '/')}/{artifact}/{pin.version}/{artifact}-{pin.version}{kind}"
        sha256 = fetch(f"{jar}.jar.sha256")
        return sha256, fetch(f"{jar}.jar.sha1") if sha256 is None else None

    with ThreadPoolExecutor(_THREADS) as pool:
        answers = list(pool.map(beside, pins))
    compared = 0
    for pin, (sha256, sha1) in zip(pins, answers, strict=True):
        if sha256 is None and sha1 is None:
            looked.findings.append(f"{pin} is not there any more")
        elif sha256 is not None:
            compared += 1
            if sha256.decode(errors="replace").split()[:1] != [pin.digest]:
                looked.findings.append(f"{pin} is not what was pinned")
    looked.told.append(
        f"Maven: {len(pins)} jars are there; {compared} have their SHA-256 published, and it is "
        "the pinned one; what is inside of Conductor's and of PySpark's was not looked at"
    )
    return looked


def ask_npm(pins: Sequence[Pin], fetch: Fetch) -> Looked:
    """Ask for each package: its hash, and whether its authors advise against it."""
    looked = Looked()
    with ThreadPoolExecutor(_THREADS) as pool:
        paths = [f"{pin.name.replace('/', '%2F')}/{pin.version}" for pin in pins]
        answers = list(pool.map(fetch, paths))
    for pin, answer in zip(pins, answers, strict=True):
        said = json.loads(answer) if answer is not None else {}
        if answer is None:
            looked.findings.append(f"{pin} is not there any more")
        elif said.get("dist", {}).get("integrity") != pin.digest:
            looked.findings.append(f"{pin} is not what was pinned")
        elif why := said.get("deprecated"):
            looked.findings.append(f"{pin} is deprecated: {' '.join(str(why).split())}")
    looked.told.append(f"npm: {len(pins)} packages are there, each as it was pinned")
    return looked


# --- what OSV says --------------------------------------------------------------------------------


def questions(pins: Sequence[Pin]) -> dict[str, Any]:
    """Ask about many pins at once."""
    return {
        "queries": [
            {
                "package": {"ecosystem": pin.ecosystem, "name": pin.name},
                "version": pin.version.removeprefix("v") if pin.ecosystem == "Go" else pin.version,
            }
            for pin in pins
        ]
    }


def vulnerable(pins: Sequence[Pin], answer: Mapping[str, Any]) -> Iterator[str]:
    """Read the answers, which come in the order of the questions."""
    for pin, result in zip(pins, answer["results"], strict=True):
        known = {str(found["id"]) for found in result.get("vulns", [])} - ACCEPTED.keys()
        if known:
            yield f"{pin} is vulnerable: {', '.join(sorted(known))}"


def ask_osv(pins: Sequence[Pin], *, strict: bool) -> Looked:
    """Look for known vulnerabilities of all pins."""
    looked = Looked()
    try:
        for start in range(0, len(pins), _AT_ONCE):
            some = pins[start : start + _AT_ONCE]
            looked.findings += vulnerable(some, json.loads(_post(OSV, questions(some))))
        looked.told.append(f"OSV: {len(pins)} pins have no known vulnerability")
    except UnansweredError as error:
        text = f"OSV: vulnerabilities were not looked up, it cannot be reached ({error})"
        (looked.findings if strict else looked.told).append(text)
    return looked


# --- all of it ------------------------------------------------------------------------------------


def main() -> int:
    """Look at every pin; exit 1 when something is wrong with one, or could not be seen."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--uv", default="uv", help="the uv to ask the package index with")
    parser.add_argument("--strict", action="store_true", help="fail when OSV cannot be reached")
    given = parser.parse_args()
    python, go, jars = sorted({*_python()}), sorted({*_go()}), sorted({*_jars()})
    npm = sorted({*_npm()})
    pins = [*python, *go, *jars, *npm]
    parts = [
        Looked([f"hashes: all of {len(pins)} pins were looked at"], [*unhashed(pins)]),
        _answered("PyPI", lambda: _ask_python(given.uv, python)),
        _answered("Go", lambda: ask_go(go, lambda path: _get(f"{_go_proxy()}/{path}"))),
        _answered("Maven", lambda: ask_maven(jars, lambda path: _get(f"{MAVEN}/{path}"))),
        _answered("npm", lambda: ask_npm(npm, lambda path: _get(f"{_npm_registry()}/{path}"))),
        ask_osv(pins, strict=given.strict),
    ]
    findings = sorted({one for part in parts for one in part.findings})
    told = [one for part in parts if not part.findings for one in part.told]
    sys.stdout.write("\n".join([*told, *findings]) + "\n")
    return 1 if findings else 0


def _answered(registry: str, ask: Callable[[], Looked]) -> Looked:
    """Make a failure of a registry that does not answer."""
    try:
        return ask()
    except UnansweredError as error:
        return Looked(findings=[f"{registry}: nothing was looked up, it cannot be asked ({error})"])


def _python() -> Iterator[Pin]:
    for path in REQUIREMENTS:
        yield from python_pins(path.read_text())


def _go() -> Iterator[Pin]:
    for path in MODULES:
        yield from go_pins(path.read_text(), path.with_name("go.sum").read_text())


def _jars() -> Iterator[Pin]:
    yield from jar_pins(JARS.read_text())
    yield conductor_pin()


def _npm() -> Iterator[Pin]:
    for path in NPM_LOCKS:
        yield from npm_pins(path.read_text())


def _ask_python(uv: str, pins: Sequence[Pin]) -> Looked:
    looked = Looked([f"PyPI: {len(pins)} packages are there, none yanked"])
    for path in REQUIREMENTS:
        looked.findings += yanked(_asked(uv, path))
    return looked


def _asked(uv: str, path: Path) -> str:
    command = [uv, "pip", "compile", "--no-deps", "--universal", str(path)]
    try:
        done = subprocess.run(  # noqa: S603 - our own command
            command, capture_output=True, text=True, timeout=600, check=False
        )
    except subprocess.TimeoutExpired:
        raise UnansweredError(f"no answer for {path.name}") from None
    if done.returncode:
        raise UnansweredError(f"uv on {path.name}: {' '.join(done.stderr.split())}")
    return done.stderr


def _go_proxy() -> str:
    """Take the first proxy that Go is told to use, as everybody's own settings name it."""
    named = re.split(r"[,|]", os.environ.get("GOPROXY", ""))
    return next((one.rstrip("/") for one in named if one.startswith("http")), GO_PROXY)


def _npm_registry() -> str:
    """Take the registry that npm is told to use, as everybody's own settings name it."""
    return os.environ.get("NPM_CONFIG_REGISTRY", "").rstrip("/") or NPM


def _get(address: str) -> bytes | None:
    """Read something; None when the registry says that it has no such thing."""
    why: object = ""
    for _ in range(_TRIES):
        try:
            answer = _web().request("GET", address)
        except urllib3.exceptions.HTTPError as error:
            why = _why(error)
            continue
        if answer.status == _FOUND:
            return answer.data
        if answer.status in _NOT_THERE:
            return None
        why = f"it answers {answer.status}"
    raise UnansweredError(why)


def _post(address: str, asked: Mapping[str, Any]) -> bytes:
    try:
        answer = _web().request("POST", address, json=asked)
    except urllib3.exceptions.HTTPError as error:
        raise UnansweredError(_why(error)) from error
    if answer.status != _FOUND:
        raise UnansweredError(f"it answers {answer.status}")
    return answer.data


@functools.cache
def _web() -> urllib3.PoolManager:
    """Keep connections, through the proxy of this machine if there is one."""
    given: dict[str, Any] = {"maxsize": _THREADS, "retries": False, "timeout": _SECONDS}
    proxy = urllib.request.getproxies().get("https")
    return urllib3.ProxyManager(proxy, **given) if proxy else urllib3.PoolManager(**given)


def _why(error: Exception) -> str:
    """Say it in few words: the last part of what such errors say is the cause."""
    return str(error).rpartition(": ")[2]


if __name__ == "__main__":
    raise SystemExit(main())
