"""What the contract suite needs of a store besides the port: a way to arrange the past."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from perago.dev import LakeFSEndpoint
from perago.ports import Store
from perago.protocol.kinds import FenceKind
from perago.protocol.values import Commit, Entry
from perago.stores.embedded import EmbeddedStore
from perago.stores.lakefs.installing import install_fence
from tests.lakefs_lab import ArrangedLakeFS, new_name


class Backend(Protocol):
    """A store under test."""

    @property
    def store(self) -> Store: ...

    @property
    def fences(self) -> tuple[FenceKind, ...]:
        """The fence kinds the store offers."""
        ...

    @property
    def exact_fences(self) -> tuple[FenceKind, ...]:
        """The fence kinds under which a moved head is refused by the store itself."""
        ...

    def new_repository(self) -> str:
        """Make an empty repository with the branch ``main``; returns its name."""
        ...

    def seed(self, repository: str, files: Mapping[str, bytes], *, branch: str = "main") -> Commit:
        """Put files on a branch and commit it."""
        ...

    def put_uncommitted(self, repository: str, branch: str, key: str, content: bytes) -> None:
        """Leave a change on a branch without a commit."""
        ...


class EmbeddedBackend:
    """The embedded store in a directory of its own."""

    fences: tuple[FenceKind, ...] = ("head", "lineage", "hard")
    exact_fences: tuple[FenceKind, ...] = ("head", "lineage", "hard")

    def __init__(self, root: Path) -> None:
        self.store = EmbeddedStore(root)
        self._numbers = itertools.count(1)

    def new_repository(self) -> str:
        name = f"contract-{next(self._numbers)}"
        self.store.create_repository(name)
        return name

    def seed(self, repository: str, files: Mapping[str, bytes], *, branch: str = "main") -> Commit:
        self.store.put_all(repository, branch, files)
        return self.store.commit_branch(repository, branch, "seed")

    def put_uncommitted(self, repository: str, branch: str, key: str, content: bytes) -> None:
        self.store.put(repository, branch, key, content)


class LakeFSBackend:
    """A real lakeFS server; every repository is new."""

    fences: tuple[FenceKind, ...] = ("head", "lineage")
    exact_fences: tuple[FenceKind, ...] = ()

    def __init__(self, endpoint: LakeFSEndpoint, root: Path) -> None:
        self.store = ArrangedLakeFS(endpoint, root)

    def new_repository(self) -> str:
        name = new_name()
        self.store.create_repository(name)
        return name

    def seed(self, repository: str, files: Mapping[str, bytes], *, branch: str = "main") -> Commit:
        for key, content in files.items():
            self.store.put(repository, branch, key, content)
        return self.store.commit_branch(repository, branch, "seed")

    def put_uncommitted(self, repository: str, branch: str, key: str, content: bytes) -> None:
        self.store.put(repository, branch, key, content)


class HardLakeFSBackend(LakeFSBackend):
    """The same, with ``main`` of every repository under the hard fence (K6: and no other)."""

    fences: tuple[FenceKind, ...] = ("hard",)
    exact_fences: tuple[FenceKind, ...] = ("hard",)

    def new_repository(self) -> str:
        name = super().new_repository()
        install_fence(self.store, name, "main")
        return name


def entry_of(store: Store, content: bytes) -> Entry:
    """Describe bytes the way a store's listing would."""
    return Entry(
        len(content), f"{store.checksum}:{hashlib.new(store.checksum, content).hexdigest()}"
    )
