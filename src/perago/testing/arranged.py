"""A store whose past a test can arrange."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import BinaryIO, Protocol

from perago.ports import Store
from perago.protocol.values import Commit


class NamedBranch(Protocol):
    """A branch, as far as tests look at it."""

    @property
    def name(self) -> str:
        """Return its name."""


class ArrangedStore(Store, Protocol):
    """The ``Store`` port, and what people do with branches besides."""

    def create_repository(self, name: str, branch: str = "main") -> Commit:
        """Make a repository whose default branch holds one empty commit."""

    def branches(self, repository: str, *, hidden: bool = False) -> Sequence[NamedBranch]:
        """List branches; ``hidden`` adds the staging branches."""

    def put(self, repository: str, branch: str, key: str, source: bytes) -> object:
        """Change one object of a branch; it is uncommitted until the branch is committed."""

    def remove(self, repository: str, branch: str, key: str) -> None:
        """Delete one object of a branch; uncommitted until the branch is committed."""

    def commit_branch(
        self,
        repository: str,
        branch: str,
        message: str,
        metadata: Mapping[str, str] | None = None,
    ) -> Commit:
        """Commit the uncommitted changes of a branch."""

    def open_object(self, repository: str, ref: str, key: str) -> BinaryIO:
        """Open an object for reading."""

    def close(self) -> None:
        """Close what is open."""
