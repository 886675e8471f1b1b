"""Which keys become files, and which names never do (rules D1, D2, S2, S3).

A listing is checked whole before the first byte is written; a bad key fails the attempt and is
named, escaped, in the error.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perago.errors import UnpublishableFileError, UnsafePathError
from perago.protocol.globs import matches
from perago.protocol.printable import brief

if TYPE_CHECKING:
    from perago.protocol.values import Entry, Manifest, ObjectInfo

MARKER = ".perago-attempt.json"
ACTIONS = "_lakefs_actions"
MAX_SEGMENT_BYTES = 255
MAX_KEY_BYTES = 1024


@dataclass(frozen=True, slots=True)
class Selection:
    """The part of a repository that is a workspace: a prefix, narrowed by globs."""

    prefix: str = ""
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    @property
    def root(self) -> str:
        """Return what every key of the workspace starts with; ``ws`` never matches ``ws2/``."""
        return f"{self.prefix}/" if self.prefix else ""

    def key(self, path: str) -> str:
        """Name the object of a workspace path."""
        return self.root + path

    def excludes(self, path: str) -> bool:
        """Return whether ``exclude`` leaves the path out: scratch space, never published."""
        return any(matches(pattern, path) for pattern in self.exclude)

    def includes(self, path: str) -> bool:
        """Return whether ``include`` lets the path in."""
        return not self.include or any(matches(pattern, path) for pattern in self.include)

    def maps(self, path: str) -> bool:
        """Return whether a stored path is materialised."""
        return self.includes(path) and not self.excludes(path)


def refuse_prefix(prefix: str) -> str | None:
    """Return what is wrong with a declared prefix, or None."""
    if not prefix:
        return "is empty; use '/' for the whole repository"
    if "\\" in prefix or "\0" in prefix:
        return "contains a backslash or NUL; use '/' between segments"
    if prefix == "/":
        return None
    for segment in prefix.strip("/").split("/"):
        if segment in {"", ".", ".."}:
            return f"has the segment {segment!r}; name one directory of the repository"
    if prefix.strip("/").split("/")[0] == ACTIONS:
        return f"lies inside {ACTIONS}/, which belongs to the server; choose another directory"
    return None


def normalise_prefix(prefix: str) -> str:
    """Reduce an accepted prefix to ``a/b``; the root is the empty string."""
    return prefix.strip("/")


def refuse_path(path: str) -> str | None:
    """Return why a path cannot be a file of a workspace, or None."""
    problem = None
    if not path:
        problem = "is empty"
    elif path.startswith("/"):
        problem = "is absolute"
    elif "\0" in path or "\\" in path:
        problem = "contains a NUL or a backslash"
    elif "\ufffd" in path or not _is_utf8(path):
        problem = "is not valid UTF-8"
    elif len(path.encode()) > MAX_KEY_BYTES:
        problem = f"is longer than {MAX_KEY_BYTES} bytes"
    if problem:
        return problem
    for segment in path.split("/"):
        if segment in {"", ".", ".."}:
            return f"has the segment {segment!r}"
        if len(segment.encode()) > MAX_SEGMENT_BYTES:
            return f"has a segment longer than {MAX_SEGMENT_BYTES} bytes"
    return None


def is_marker(path: str) -> bool:
    """Return whether a path carries the name kept for Perago's own marker."""
    return path.rpartition("/")[2] == MARKER


def is_action(key: str) -> bool:
    """Return whether a key belongs to the server's hooks."""
    return key == ACTIONS or key.startswith(ACTIONS + "/")


def plan_download(selection: Selection, listing: Iterable[ObjectInfo]) -> Manifest:
    """Turn a raw listing into the files to write, or refuse the whole of it."""
    return plan_with_rest(selection, listing)[0]


def plan_with_rest(
    selection: Selection, listing: Iterable[ObjectInfo]
) -> tuple[Manifest, tuple[str, ...]]:
    """Plan a download; return as well the paths below the prefix that are left out of it."""
    plan: dict[str, Entry] = {}
    rest: list[str] = []
    for info in listing:
        path = _below(selection, info)
        if path is None:
            continue
        if is_action(info.key) or is_marker(path) or not selection.maps(path):
            rest.append(path)
            continue
        if problem := refuse_path(path):
            raise UnsafePathError(
                f"object {_show(info.key)} {problem}",
                remedy="rename or delete it in the store, then start from the new commit",
            )
        plan[path] = info.entry
    for first, second, why in collisions(plan):
        raise UnsafePathError(
            f"objects {_show(selection.key(first))} and {_show(selection.key(second))} {why}",
            remedy="rename or delete one of them in the store, then start from the new commit",
        )
    return dict(sorted(plan.items())), tuple(rest)


def check_local(selection: Selection, paths: Iterable[str]) -> tuple[str, ...]:
    """Return the local paths that are content, or refuse what could not be read back (S2, S3)."""
    content: list[str] = []
    for path in sorted(paths):
        if is_marker(path) or selection.excludes(path):
            continue
        problem = refuse_path(path)
        if not problem and is_action(selection.key(path)):
            problem = f"lies under {ACTIONS}/, which no task may write"
        if not problem and len(selection.key(path).encode()) > MAX_KEY_BYTES:
            problem = f"is longer than {MAX_KEY_BYTES} bytes with its prefix"
        if not problem and not selection.includes(path):
            problem = "is outside the task's include patterns and would be lost"
        if problem:
            raise UnpublishableFileError(
                f"file {_show(path)} {problem}", remedy="rename it, or exclude it in WorkspaceSpec"
            )
        content.append(path)
    for first, second, why in collisions(content):
        raise UnpublishableFileError(
            f"files {_show(first)} and {_show(second)} {why}", remedy="rename one of them"
        )
    return tuple(content)


def check_beside(added: Iterable[str], kept: Iterable[str]) -> None:
    """Refuse new paths that could not be downloaded beside what stays in the store (D2, S2).

    ``kept`` is what the task does not see; paths of the task itself are checked among each other.
    """
    new = {*added}
    for first, second, why in collisions({*new, *kept}) if new else ():
        if first in new or second in new:
            raise UnpublishableFileError(
                f"{_show(first)} and {_show(second)} {why}, and both would be in the commit",
                remedy="rename the one that the task writes",
            )


def twins(present: Iterable[str], wanted: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield names of one directory that cannot stand beside each other; ``x/`` is a directory."""
    folded: dict[str, list[str]] = {}
    for name in present:
        folded.setdefault(fold(name.removesuffix("/")), []).append(name)
    for name in wanted:
        for other in folded.get(fold(name.removesuffix("/")), ()):
            if other != name:
                yield name, other


def collisions(paths: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """Yield pairs that some file system could not tell apart; refused on every machine."""
    folded: dict[str, str] = {}
    directories: dict[str, tuple[str, str]] = {}  # Folded name -> its spelling, a file in it.
    for path in sorted(paths):
        same = fold(path)
        if same in folded:
            yield folded[same], path, "differ only by case or Unicode form"
        folded[same] = path
        directory, same = path.rpartition("/")[0], same.rpartition("/")[0]
        while directory:
            spelling, holder = directories.setdefault(same, (directory, path))
            if spelling != directory:
                yield holder, path, "lie in directories that differ only by case or Unicode form"
            if holder != path:
                break  # What is above has been seen.
            directory, same = directory.rpartition("/")[0], same.rpartition("/")[0]
    for same, path in folded.items():
        if same in directories:
            yield path, directories[same][1], "need one name to be both a file and a directory"


def fold(path: str) -> str:
    """Map a path to what a forgiving file system would take it for (Unicode's D145)."""
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", path).casefold())


def _below(selection: Selection, info: ObjectInfo) -> str | None:
    """Return the workspace path of a listed object, or None when it is none, or elsewhere (D1)."""
    if info.kind != "object" or not info.key.startswith(selection.root):
        return None
    if info.key.endswith("/") and info.size == 0:
        return None
    return info.key[len(selection.root) :]


def _is_utf8(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _show(text: str) -> str:
    """Quote a hostile name so that it is visible and harmless in a log."""
    return brief(ascii(text))
