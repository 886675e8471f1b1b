"""The jars with which Spark reaches lakeFS: fetched once per user, checked by hash at each use.

PySpark brings a resolver (Ivy) but not Hadoop's S3 client. What is fetched is pinned, file by
file; the resolver itself knows where packages are published.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from xml.sax.saxutils import quoteattr

from perago.errors import RuntimeConfigError
from perago.filesystem import roots
from perago.spark import java

if TYPE_CHECKING:
    from collections.abc import Iterator

_PINS: Final = Path(__file__).with_name("direct-jars.txt")
_SECONDS: Final = 600.0
_SETTINGS: Final = """\
<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true" usepoms="false"/></resolvers>
</ivysettings>
"""
_REMEDY: Final = (
    "let this machine reach the Maven repository once, or copy the directory from one that did"
)


@dataclass(frozen=True, slots=True)
class Pin:
    """One jar: where it is published, and what it must be."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def file(self) -> str:
        """Name the file."""
        return f"{self.artifact}-{self.version}.jar"


def pins(text: str | None = None) -> tuple[Pin, ...]:
    """Read what is pinned."""
    found = []
    for line in (_PINS.read_text() if text is None else text).splitlines():
        if line and not line.startswith("#"):
            name, digest = line.split()
            group, artifact, version = name.split(":")
            found.append(Pin(group, artifact, version, digest))
    return tuple(found)


def provide(cache: Path, wanted: Sequence[Pin] | None = None) -> tuple[Path, ...]:
    """Return the jars, fetching those that are missing or not what they should be."""
    wanted = pins() if wanted is None else wanted
    version = hashlib.sha256("".join(pin.sha256 for pin in wanted).encode()).hexdigest()[:12]
    place = cache / version
    roots.secure(cache, roots.JARS)
    if _flaw(place, wanted):
        with _beside(place) as directory:
            _fetch(directory, wanted)
            if problem := _flaw(directory, wanted):
                raise RuntimeConfigError(
                    f"a jar for direct workspaces {problem}",
                    remedy="something between here and the repository changes what it sends",
                )
    return tuple(place / pin.file for pin in wanted)


def _flaw(place: Path, wanted: Sequence[Pin]) -> str | None:
    for pin in wanted:
        try:
            content = (place / pin.file).read_bytes()
        except OSError:
            return f"is missing: {pin.file}"
        if hashlib.sha256(content).hexdigest() != pin.sha256:
            return f"is not the pinned one: {pin.file}"
    return None


@contextmanager
def _beside(place: Path) -> Iterator[Path]:
    """Fill a directory beside its place, then put the files there; several may do it at once."""
    try:
        draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=place.parent))
    except OSError as error:
        raise RuntimeConfigError(
            f"there is no place for Spark's jars at {place.parent}: {error.strerror or error}",
            remedy="check its permissions, or set XDG_CACHE_HOME",
        ) from error
    try:
        yield draft
        for file in draft.iterdir():
            # File by file: somebody may be using those that were right already.
            place.mkdir(mode=0o700, exist_ok=True)
            file.replace(place / file.name)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _fetch(directory: Path, wanted: Sequence[Pin]) -> None:
    with tempfile.TemporaryDirectory(prefix="perago-ivy-") as scratch:
        settings, module = Path(scratch, "settings.xml"), Path(scratch, "ivy.xml")
        settings.write_text(_SETTINGS)
        module.write_text(_module(wanted))
        command = [
            *(f"-Divy.default.ivy.user.dir={scratch}", "-jar", str(_ivy())),
            *("-settings", str(settings), "-cache", f"{scratch}/cache", "-ivy", str(module)),
            *("-retrieve", f"{directory}/[artifact]-[revision].[ext]", "-warn"),
        ]
        try:
            done = java.run(_java(), *command, seconds=_SECONDS)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise RuntimeConfigError(
                f"the jars for direct workspaces cannot be fetched: {error}", remedy=_REMEDY
            ) from None
    missing = [pin.file for pin in wanted if not (directory / pin.file).is_file()]
    if missing:
        told = [line.strip(":\t ") for line in done.stdout.splitlines() if "unresolved" in line]
        why = told[0] if told else (done.stdout + done.stderr).strip()[-200:]
        raise RuntimeConfigError(
            f"{len(missing)} of {len(wanted)} jars for direct workspaces cannot be fetched: {why}",
            remedy=_REMEDY,
        )


def _module(wanted: Sequence[Pin]) -> str:
    lines = [
        f"<dependency org={quoteattr(pin.group)} name={quoteattr(pin.artifact)}"
        f' rev={quoteattr(pin.version)} transitive="false" conf="default->default"/>'
        for pin in wanted
    ]
    return (
        '<ivy-module version="2.0"><info organisation="perago" module="direct"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{''.join(lines)}</dependencies></ivy-module>"
    )


def _java() -> Path:
    java.check()
    found = java.find(os.environ)
    if found is None:
        raise AssertionError("it was there a moment ago")
    return found


def _ivy() -> Path:
    spec = importlib.util.find_spec("pyspark")
    homes = spec.submodule_search_locations if spec else None
    for home in homes or ():
        for jar in sorted(Path(home, "jars").glob("ivy-*.jar")):
            return jar
    raise RuntimeConfigError(
        "this PySpark holds no Ivy to fetch jars with", remedy="install 'perago[spark]'"
    )
