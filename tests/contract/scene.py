"""One repository with a workspace at A, and the moves an attempt makes on it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path

from perago.ports import Fetch, Publication, Published, Put
from perago.protocol.kinds import FenceKind
from perago.protocol.paths import is_action
from perago.protocol.publication import Write
from perago.protocol.values import Entry, StagedWorkspace, Staging
from tests.contract.backend import Backend, entry_of
from tests.patience import LIMIT

FILES = {
    "ws/raw/one.txt": b"one",
    "ws/raw/two.txt": b"two",
    "ws2/other.txt": b"outside",
    "top.txt": b"top",
}


class Scene:
    """A is the commit that everything here starts from."""

    def __init__(self, backend: Backend, place: Path) -> None:
        self.backend = backend
        self.store = backend.store
        self.place = place
        self.repository = backend.new_repository()
        self.a = backend.seed(self.repository, FILES)
        self._numbers = itertools.count(1)
        self.moved = 0

    def advance(self, count: int) -> None:
        self.moved += count

    def staging(self) -> Staging:
        return Staging(self.repository, f"perago-staging-{next(self._numbers)}")

    def file(self, content: bytes) -> Path:
        path = self.place / f"file-{next(self._numbers)}"
        path.write_bytes(content)
        return path

    def put(self, key: str, content: bytes) -> Put:
        return Put(key, entry_of(self.store, content), self.file(content))

    def stage(
        self,
        puts: Mapping[str, bytes],
        deletes: tuple[str, ...] = (),
        *,
        at: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> StagedWorkspace:
        staging = self.staging()
        self.store.open_staging(staging, at or self.a.id)
        wanted = [self.put(key, content) for key, content in puts.items()]
        self.store.write(staging, wanted, deletes, self.advance)
        return self.store.seal(staging, "staged", metadata or {})

    def publish(
        self,
        decision: Write,
        *,
        fence: FenceKind | None = None,
        message: str = "published",
        metadata: Mapping[str, str] | None = None,
    ) -> Published:
        return self.store.apply(
            Publication(
                repository=self.repository,
                branch="main",
                decision=decision,
                fence=fence or self.backend.fences[-1],
                message=message,
                metadata=metadata or {},
                timeout_seconds=LIMIT,
            )
        )

    def head(self) -> str:
        return self.store.head(self.repository, "main").id

    def keys(self, ref: str, root: str = "") -> list[str]:
        """List what is there, without the server's own actions."""
        found = (info.key for info in self.store.listing(self.repository, ref, root))
        return [key for key in found if not is_action(key)]

    def content(self, ref: str, key: str) -> bytes:
        """Read one object through the port."""
        (info,) = (i for i in self.store.listing(self.repository, ref, key) if i.key == key)
        to = self.place / f"read-{next(self._numbers)}"
        wanted = Fetch(key, Entry(info.size, info.checksum), to)
        self.store.fetch(self.repository, ref, [wanted], self.advance)
        return to.read_bytes()

    def history(self, ref: str = "main") -> list[str]:
        return [commit.id for commit in self.store.history(self.repository, ref)]
