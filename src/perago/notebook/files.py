"""The files of one version: their names at once, their contents when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

from perago.app.local import Home
from perago.errors import UsageError
from perago.notebook import shown
from perago.ports import Fetch, Store
from perago.protocol.paths import Selection, plan_download
from perago.protocol.values import Entry

Opened = Callable[[], AbstractContextManager[tuple[Home, Store]]]


@dataclass(frozen=True, slots=True)
class RepositoryVersion:
    """One version of a repository, and the branch it is on."""

    repository: str
    branch: str
    ref: str


class PublishedFiles(Mapping[str, bytes]):
    """Paths and contents, as of a dict: ``files["counts.csv"]`` are its bytes."""

    def __init__(self, place: RepositoryVersion, opened: Opened) -> None:
        self.place = place
        self._opened = opened

    @cached_property
    def _entries(self) -> Mapping[str, Entry]:
        with self._opened() as (_, store):
            listing = store.listing(self.place.repository, self.place.ref, "")
            return dict(sorted(plan_download(Selection(), listing).items()))

    @property
    def sizes(self) -> dict[str, int]:
        """Return the sizes in bytes."""
        return {path: entry.size for path, entry in self._entries.items()}

    def copy(self, path: str, directory: Path) -> None:
        """Copy a file, or all files below a path, into a directory, by their whole paths."""
        wanted = path.strip("/")
        chosen = [
            name
            for name in self._entries
            if name == wanted or not wanted or name.startswith(f"{wanted}/")
        ]
        if not chosen:
            raise UsageError(f"there is no file {path!r} in this version", remedy=self._near(path))
        with self._opened() as (_, store):
            wanted_files = []
            for name in chosen:
                (directory / name).parent.mkdir(parents=True, exist_ok=True)
                wanted_files.append(Fetch(name, self._entries[name], directory / name))
            store.fetch(self.place.repository, self.place.ref, wanted_files, lambda _: None)

    def __getitem__(self, path: str) -> bytes:
        if path not in self._entries:
            raise KeyError(path)
        with TemporaryDirectory(prefix="perago-file-") as directory:
            self.copy(path, Path(directory))
            return (Path(directory) / path).read_bytes()

    def __contains__(self, path: object) -> bool:
        return path in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def _near(self, path: str) -> str:
        folders = {str(parent) for name in self._entries for parent in Path(name).parents}
        near = get_close_matches(path, [*self._entries, *sorted(folders - {"."})], n=1)
        return f"did you mean {near[0]!r}?" if near else "list the files to see what there is"

    def __repr__(self) -> str:
        return shown.text_table(("file", "bytes"), self.sizes.items())

    def _repr_html_(self) -> str:
        return shown.html_table(("file", "bytes"), self.sizes.items())
