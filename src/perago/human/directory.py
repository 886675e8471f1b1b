"""The directory a person works in: ``workspace/`` with their files, and a marker beside it.

The marker says which attempt it is for and which executions were made of it. Nothing here changes
or removes the person's files (Q12).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from perago.errors import UsageError
from perago.filesystem import trees
from perago.protocol.job import parse_workspace
from perago.protocol.values import Attempt, WorkspaceInput
from perago.workspace import markers

MARKER: Final = ".perago-human.json"
WORKSPACE: Final = "workspace"
_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class TakenDirectory:
    """A directory that was made by *take*."""

    path: Path
    where: str
    """The workflow engine that the attempt is of."""
    project: Path
    """The directory whose settings and modules were used."""
    modules: tuple[str, ...]
    store: str
    attempt: Attempt
    workspace: WorkspaceInput | None
    person: str
    submits: tuple[str, ...] = ()

    @property
    def files(self) -> Path:
        """Name the directory with the person's files."""
        return self.path / WORKSPACE

    def with_submit(self, execution_id: str) -> TakenDirectory:
        """Write down an execution before it begins: after a crash it is known to be theirs."""
        noted = replace(self, submits=(*self.submits, execution_id))
        noted.write()
        return noted

    def write(self, draft: Path | None = None) -> None:
        """Write the marker, whole or not at all; ``draft`` is where the directory is made."""
        content: dict[str, object] = {
            "version": _VERSION,
            "where": self.where,
            "project": str(self.project),
            "modules": list(self.modules),
            "store": self.store,
            "attempt": asdict(self.attempt),
            "workspace": self.workspace.as_json() if self.workspace else None,
            "person": self.person,
            "submits": list(self.submits),
        }
        try:
            with trees.opened(draft or self.path) as directory:
                markers.write(directory, content, MARKER)
                os.fsync(directory)
        except OSError as error:
            raise UsageError(
                f"{self.path / MARKER} cannot be written: {error.strerror or error}",
                remedy="make room, or the directory writable; your files are untouched",
            ) from None


def find_taken(given: Path) -> TakenDirectory:
    """Read the marker of a directory, or of the one that it is inside of."""
    here = given.resolve()
    for path in (here, *here.parents):
        owner = _marked_by(path)
        if owner == os.geteuid():
            return _read(path)
        if owner is not None:
            # It names modules to import: whoever wrote it would run code as us.
            raise UsageError(
                f"{path / MARKER} is not yours", remedy="take the step in a directory of your own"
            )
    raise UsageError(
        f"{given} was not taken: neither it nor a directory above it has a {MARKER}",
        remedy="take a step first: perago human take STEP DIR",
    )


def refuse_inside(directory: Path) -> None:
    """Refuse a place among a person's files: it would be handed in with them."""
    for above in directory.parents:
        if _marked_by(above) == os.geteuid():
            raise UsageError(
                f"{directory} lies in {above}, which was taken", remedy="name a place elsewhere"
            )


def _marked_by(directory: Path) -> int | None:
    """Return the user whose marker a directory has; None where it has none."""
    try:
        return (directory / MARKER).lstat().st_uid
    except OSError:
        return None


def _read(path: Path) -> TakenDirectory:
    with trees.opened(path.resolve()) as directory:
        found = markers.read(directory, MARKER)
    try:
        return _parsed(path, found)
    except (KeyError, TypeError, ValueError):
        raise UsageError(
            f"{path / MARKER} is not a marker of this version",
            remedy="take the step again: perago human take STEP NEWDIR; your files are untouched",
        ) from None


def _parsed(path: Path, found: Mapping[str, Any]) -> TakenDirectory:
    if found["version"] != _VERSION:
        raise ValueError
    workspace = found["workspace"]
    return TakenDirectory(
        path=path,
        where=str(found["where"]),
        project=Path(found["project"]),
        modules=tuple(map(str, found["modules"])),
        store=str(found["store"]),
        attempt=Attempt(**found["attempt"]),
        workspace=None if workspace is None else parse_workspace(workspace),
        person=str(found["person"]),
        submits=tuple(map(str, found["submits"])),
    )
