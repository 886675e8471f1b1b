"""File guardrails: checks over the names in a workspace (T3).

They look at what is, or would be, published: files, and the directories that hold files.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

from perago.protocol.globs import matches


@dataclass(frozen=True)
class Tree:
    """The file paths of a workspace; directories follow from them."""

    files: frozenset[str]

    @classmethod
    def of(cls, paths: Iterable[str]) -> Tree:
        """Collect paths, a manifest's keys for instance."""
        return cls(frozenset(paths))

    @cached_property
    def directories(self) -> frozenset[str]:
        """Return every directory that holds a file, at any depth."""
        found: set[str] = set()
        for path in self.files:
            head = path.rpartition("/")[0]
            while head and head not in found:
                found.add(head)
                head = head.rpartition("/")[0]
        return frozenset(found)

    def matching(self, pattern: str) -> tuple[str, ...]:
        """Return the files and directories that fit a glob, sorted."""
        return tuple(sorted(p for p in self.files | self.directories if matches(pattern, p)))


@runtime_checkable
class FileGuard(Protocol):
    """A guardrail that needs nothing but names."""

    def violation(self, tree: Tree) -> str | None:
        """Return what is wrong with the tree, or None."""


@dataclass(frozen=True, slots=True)
class RequireFile:
    """The file must be there."""

    path: str

    def __str__(self) -> str:
        return f"require_file({self.path!r})"

    def violation(self, tree: Tree) -> str | None:
        """Return what is wrong with the tree, or None."""
        if self.path in tree.files:
            return None
        if self.path in tree.directories:
            return f"{self.path!r} is a directory, not a file"
        return f"file {self.path!r} is missing"


@dataclass(frozen=True, slots=True)
class RequireDir:
    """The directory must be there and hold a file: empty directories are not content (T7)."""

    path: str

    def __str__(self) -> str:
        return f"require_dir({self.path!r})"

    def violation(self, tree: Tree) -> str | None:
        """Return what is wrong with the tree, or None."""
        if self.path in tree.directories:
            return None
        if self.path in tree.files:
            return f"{self.path!r} is a file, not a directory"
        return f"directory {self.path!r} is missing or holds no file"


@dataclass(frozen=True, slots=True)
class RequireGlob:
    """Between ``min_count`` and ``max_count`` paths must match."""

    pattern: str
    min_count: int = 1
    max_count: int | None = None

    def __str__(self) -> str:
        most = "" if self.max_count is None else f", max_count={self.max_count}"
        return f"require_glob({self.pattern!r}, min_count={self.min_count}{most})"

    def violation(self, tree: Tree) -> str | None:
        """Return what is wrong with the tree, or None."""
        count = len(tree.matching(self.pattern))
        if count < self.min_count:
            return f"{count} paths match {self.pattern!r}, at least {self.min_count} required"
        if self.max_count is not None and count > self.max_count:
            return f"{count} paths match {self.pattern!r}, at most {self.max_count} allowed"
        return None


@dataclass(frozen=True, slots=True)
class ForbidGlob:
    """Nothing may match."""

    pattern: str

    def __str__(self) -> str:
        return f"forbid_glob({self.pattern!r})"

    def violation(self, tree: Tree) -> str | None:
        """Return what is wrong with the tree, or None."""
        found = tree.matching(self.pattern)
        if not found:
            return None
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        return f"{found[0]!r}{more} matches the forbidden {self.pattern!r}"
