"""The author's code for executors elsewhere: what they cannot import, in one zip file (X4)."""

from __future__ import annotations

import hashlib
import io
import site
import sys
import sysconfig
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Final

# Of these, what executors need is theirs to have; nothing of it is the author's.
_NOT_SHIPPED: Final = frozenset({"__main__", "__mp_main__", "perago", "pyspark", "py4j"})
_LONG_AGO: Final = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Code:
    """A zip file of modules; the same modules have the same name."""

    name: str
    data: bytes


def collect() -> Code | None:
    """Pack the author's modules that this process has imported, or None when there are none.

    The author's are those that were not installed: an executor has the same packages as the
    worker, but not its current directory.
    """
    files = author_files(sys.modules.copy(), installed())
    return pack(files) if files else None


def installed() -> tuple[Path, ...]:
    """List where Python and packages are installed."""
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    paths = [sysconfig.get_path(name) for name in names]
    paths += [*site.getsitepackages(), site.getusersitepackages()]
    return tuple({Path(path).resolve() for path in paths})


def author_files(modules: Mapping[str, ModuleType], places: Iterable[Path]) -> dict[str, Path]:
    """Find the files to ship, by the name each has in the zip file.

    A package is taken whole, since a function may import more of it later; of a folder without
    ``__init__.py``, only what was imported.
    """
    places = tuple(places)
    found: dict[str, Path] = {}
    for name in sorted(modules):
        path = _source(name, modules[name])
        if path is None or any(path.is_relative_to(place) for place in places):
            continue
        package = _outermost_package(name, modules)
        if package is None:
            found[f"{name.replace('.', '/')}.py"] = path
        elif (base := package.replace(".", "/")) + "/__init__.py" not in found:
            folder = Path(modules[package].__file__ or "").resolve().parent
            found |= {f"{base}/{part}": folder / part for part in _python_files(folder)}
    return found


def pack(files: Mapping[str, Path]) -> Code:
    """Write the zip file; the same contents give the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as out:
        # Python finds a folder without __init__.py in a zip file only by an entry of its own.
        for folder in sorted({f"{parent}/" for name in files for parent in _parents(name)}):
            out.writestr(zipfile.ZipInfo(folder, _LONG_AGO), b"")
        for name in sorted(files):
            info = zipfile.ZipInfo(name, _LONG_AGO)
            info.compress_type = zipfile.ZIP_DEFLATED
            out.writestr(info, files[name].read_bytes())
    data = buffer.getvalue()
    return Code(f"perago-{hashlib.sha256(data).hexdigest()[:16]}.zip", data)


@contextmanager
def same_path() -> Iterator[None]:
    """Keep what is shipped out of this process: PySpark would import from it here too."""
    before = list(sys.path)
    try:
        yield
    finally:
        sys.path[:] = before


def _source(name: str, module: ModuleType) -> Path | None:
    """Return the file of a module that could be the author's."""
    if name.partition(".")[0] in _NOT_SHIPPED:
        return None
    file = getattr(module, "__file__", None)
    if not isinstance(file, str) or not file.endswith(".py"):
        return None
    path = Path(file).resolve()
    if path.stem not in {"__init__", name.rpartition(".")[2]}:
        return None  # registered under a name that no executor could import it by
    return path if path.is_file() else None


def _outermost_package(name: str, modules: Mapping[str, ModuleType]) -> str | None:
    """Name the whole package a module belongs to, itself included."""
    parts = name.split(".")
    for length in range(1, len(parts) + 1):
        package = ".".join(parts[:length])
        file = getattr(modules.get(package), "__file__", None)
        if isinstance(file, str) and Path(file).name == "__init__.py":
            return package
    return None


def _python_files(folder: Path) -> Iterator[str]:
    for path in folder.rglob("*.py"):
        relative = path.relative_to(folder)
        if path.is_file() and not any(part.startswith(".") for part in relative.parts):
            yield relative.as_posix()


def _parents(name: str) -> list[str]:
    parts = name.split("/")[:-1]
    return ["/".join(parts[: length + 1]) for length in range(len(parts))]
