"""What was made once for this user: kept outside any checkout, checked at each use.

One directory per recipe and version. It is filled beside its place and renamed into it, so a
build that was interrupted leaves nothing that looks finished.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ValidationError

from perago.dev.errors import BuildFailedError
from perago.dev.progress import ProgressReporter
from perago.dev.recipes import JarRecipe, Recipe
from perago.filesystem import defaults, roots
from perago.process.lock import FileLock

_WAIT_SECONDS = 3600.0
_ENTRY = "entry.json"


class CacheRecord(BaseModel, frozen=True):
    """What a directory of the cache says about itself."""

    fingerprint: str
    seconds: float
    sha256: dict[str, str]


@dataclass(frozen=True, slots=True)
class Cache:
    """The directory that all checkouts of one user share."""

    root: Path

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Cache:
        """Find it: ``PERAGO_DEV_CACHE``, or the user's cache directory."""
        given = environ.get("PERAGO_DEV_CACHE", "").strip()
        if given:
            return cls(Path(given).expanduser().absolute())
        return cls(defaults.cache(environ) / "servers")

    def log(self, key: str) -> Path:
        """Name the log of the last build."""
        path = self.root / "logs" / f"{key}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def place(self, recipe: Recipe) -> Path:
        """Name the directory of a recipe, made or not."""
        return self.root / recipe.key

    def provide(
        self, recipe: Recipe, make: Callable[[Path], None], narrator: ProgressReporter
    ) -> Path:
        """Return the directory of a recipe: the one that is there if it is right, or a new one.

        Of several processes that ask at once, one makes it and the others wait.
        """
        roots.check(self.root, roots.SERVERS)  # What is in it will be run.
        with self.locked(recipe.key, narrator):
            place = self.place(recipe)
            problem = flaw(place, recipe)
            if not problem:
                return place
            if place.exists():
                narrator.note(f"{recipe.key} in the cache {problem}: making it again")
            began = time.monotonic()
            with self.filling(place) as directory:
                make(directory)
                made = CacheRecord(
                    fingerprint=recipe.fingerprint,
                    seconds=round(time.monotonic() - began, 1),
                    sha256={name: sha256(directory / name) for name in recipe.programs},
                )
                (directory / _ENTRY).write_text(made.model_dump_json(indent=2) + "\n")
            return place

    @contextmanager
    def locked(self, key: str, narrator: ProgressReporter) -> Iterator[None]:
        """Be the only process that makes this thing."""
        with FileLock(self.root / "locks" / f"{key}.lock") as lock:
            if not lock.acquire():
                narrator.note(f"another process is making {key}: waiting for it")
                if not lock.acquire(_WAIT_SECONDS):
                    raise BuildFailedError(
                        f"another process has been making {key} for an hour",
                        remedy=f"look at {self.log(key)}, end that process and try again",
                    )
            yield

    @contextmanager
    def filling(self, place: Path) -> Iterator[Path]:
        """Fill a directory out of sight; it takes its place only when the block ends well."""
        self.root.mkdir(parents=True, exist_ok=True)
        directory = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=self.root))
        try:
            yield directory
            if place.exists():
                _refuse_strange(place)
                place.rename(directory / ".replaced")
            directory.rename(place)
            shutil.rmtree(place / ".replaced", ignore_errors=True)
        finally:
            shutil.rmtree(directory, ignore_errors=True)


def _refuse_strange(place: Path) -> None:
    """Refuse to replace a directory that we did not make, whatever made it have this name."""
    if not place.is_symlink() and ((place / _ENTRY).exists() or not any(place.iterdir())):
        return
    raise BuildFailedError(
        f"{place} is in the way: Perago did not make it",
        remedy="remove it if it is not needed, or set PERAGO_DEV_CACHE to another directory",
    )


def flaw(place: Path, recipe: Recipe) -> str:
    """Return what is wrong with a directory of the cache; empty when it can be used."""
    try:
        made = CacheRecord.model_validate_json((place / _ENTRY).read_bytes())
    except (OSError, ValidationError):
        return "is not complete"
    if made.fingerprint != recipe.fingerprint:
        return "was made by another recipe"
    for name in recipe.programs:
        # What everybody gets the same is held to the pin; a build, to what it was when made.
        right = recipe.unpacked_sha256 if isinstance(recipe, JarRecipe) else made.sha256.get(name)
        if not (place / name).exists() or sha256(place / name) != right:
            return f"holds a {name} with another SHA-256 than it should have"
    return ""


def sha256(path: Path) -> str:
    """Digest a file, or a directory by the names and digests of its files."""
    if path.is_dir():
        whole = hashlib.sha256()
        for file in sorted(file for file in path.rglob("*") if not file.is_dir()):
            name = file.relative_to(path).as_posix()
            whole.update(f"{sha256(file)}  {name}\n".encode())
        return whole.hexdigest()
    with path.open("rb") as reader:
        return hashlib.file_digest(reader, "sha256").hexdigest()
