"""One version of a repository as pages address it, and what they read of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote_to_bytes

from starlette.requests import Request

from perago.errors import NotFoundError
from perago.ports import Fetch
from perago.protocol.values import Commit, ObjectInfo
from perago.ui.fitting import cut
from perago.ui.levels import Level, read_level
from perago.ui.rendering import short
from perago.ui.sources import PageSources

if TYPE_CHECKING:
    from perago.stores.embedded import EmbeddedStore
    from perago.stores.lakefs.store import LakeFSStore

HEAD_BYTES: Final = 64 * 1024
"""So much of a file is looked at to see what it is."""
_LONGEST_NAME: Final = 40


def parts_of(raw_path: bytes) -> list[str]:
    """Part an address as it was sent: a slash in a name is written ``%2F`` there. Pure."""
    parts = raw_path.partition(b"?")[0].strip(b"/").split(b"/")
    return [unquote_to_bytes(part).decode("utf-8", "replace") for part in parts]


@dataclass(frozen=True, slots=True)
class CommitView:
    """A commit, and the name under which it was asked for."""

    place: EmbeddedStore | LakeFSStore
    store: str
    repository: str
    ref: str
    commit: Commit

    @property
    def name(self) -> str:
        """What a page calls it: the name it was asked for by, or the beginning of its id."""
        return short(self.ref) if self.ref == self.commit.id else cut(self.ref, _LONGEST_NAME)

    def level(self, directory: str, after: str) -> Level:
        """Read what lies right below a directory."""
        page = partial(self.place.page, self.repository, self.commit.id, directory)
        return read_level(page, directory, after)

    def find(self, key: str) -> ObjectInfo | None:
        """Look for an object; None when there is none."""
        page = self.place.page(self.repository, self.commit.id, key, "", 1) if key else ()
        return page[0] if page and page[0].key == key else None

    def below(self, directory: str, most: int) -> Sequence[ObjectInfo]:
        """List up to so many objects below a directory."""
        return self.place.page(self.repository, self.commit.id, directory, "", most)

    def beginning(self, key: str, most: int = HEAD_BYTES) -> bytes:
        """Read the first bytes of an object."""
        return self.place.beginning(self.repository, self.commit.id, key, most)

    def fetch(self, wanted: Sequence[Fetch]) -> None:
        """Write objects to files, verified."""
        self.place.fetch(self.repository, self.commit.id, wanted, lambda _: None)

    def bring(self, info: ObjectInfo, to: Path) -> Path:
        """Write one object to a file, verified."""
        to.parent.mkdir(parents=True, exist_ok=True)
        self.fetch([Fetch(info.key, info.entry, to)])
        return to


def version_of(request: Request, ref: str) -> CommitView:
    """Find the version that a page is about; ``NotFoundError`` when there is none."""
    sources: PageSources = request.app.state.sources
    store, repository = request.path_params["store"], request.path_params["repository"]
    place = sources.store(store)
    if not ref:
        raise NotFoundError("the address names no version")
    return CommitView(place, store, repository, ref, place.commit(repository, ref))
