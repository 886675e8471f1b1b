"""Where a run finds the workflows that a workflow calls: named files, then those beside it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from perago.errors import PeragoError, UsageError, WorkflowDefinitionError
from perago.protocol.reading import OutOfBoundsError, read_json
from perago.workflow.subworkflow import with_children

Definition = Mapping[str, Any]
Files = Mapping[str, Definition]
"""Definitions by the file they came from."""


@dataclass(frozen=True)
class WorkflowFiles:
    """Files that were named, and the directory whose other files may be meant."""

    named: Files
    directory: Path | None = None

    def find(self, name: str, version: int | None) -> Definition | None:
        """Find a workflow; what was named goes before what only lies there."""
        for files in (self.named, self._beside):
            if found := _fitting(files, name, version):
                return found
            if self.directory is None:
                break
        return None

    @cached_property
    def _beside(self) -> Files:
        """Read the other files of the directory; what is not a workflow there is passed over."""
        found: dict[str, Definition] = {}
        known = {Path(file).resolve() for file in self.named}
        for path in sorted(self.directory.glob("*.json")) if self.directory else ():
            if path.resolve() in known:
                continue
            try:
                definition = workflow_file(path)
            except PeragoError:
                continue
            if isinstance(definition.get("tasks"), list):
                found[str(path)] = definition
        return found


def complete(definition: Definition, source: str, named: Files) -> Definition:
    """Put the workflows that a workflow calls into it, or refuse it in one sentence."""
    filled, problems = with_children(definition, files_for(source, definition, named).find, source)
    if problems:
        raise problems[0]
    return filled


def files_for(source: str, definition: Definition, named: Files) -> WorkflowFiles:
    """Look for what a workflow calls among what was named, and beside its own file."""
    directory = Path(source).absolute().parent if source.endswith(".json") else None
    return WorkflowFiles({source: definition, **named}, directory)


def workflow_file(path: Path) -> Mapping[str, object]:
    """Read a WorkflowDef; a mistake in the file is named with its place."""
    try:
        definition = read_json(path.read_text())
    except FileNotFoundError:
        raise UsageError(f"workflow file {path} does not exist", remedy="check the path") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"workflow file {path} cannot be read: {error}") from None
    except json.JSONDecodeError as error:
        raise WorkflowDefinitionError(
            f"{path} line {error.lineno} column {error.colno}: {error.msg}",
            remedy="correct the JSON",
        ) from None
    except OutOfBoundsError as error:
        raise WorkflowDefinitionError(
            f"{path} cannot be read: {error}", remedy="write a smaller workflow"
        ) from None
    if not isinstance(definition, dict):
        raise WorkflowDefinitionError(
            f"{path} holds {type(definition).__name__}, not a workflow",
            remedy="put one WorkflowDef object in the file",
        )
    return definition


def _fitting(files: Files, name: str, version: int | None) -> Definition | None:
    """Return the one of this version, or the newest."""
    fits = {file: each for file, each in files.items() if each.get("name") == name}
    if version is None:
        version = max(map(_version, fits.values()), default=None)
    chosen = {file: each for file, each in fits.items() if _version(each) == version}
    if len(chosen) > 1 and any(each != next(iter(chosen.values())) for each in chosen.values()):
        raise UsageError(
            f"{' and '.join(_shown(chosen))} are both workflow {name!r} version {version}",
            remedy="give one of them another version, or name the one that is meant",
        )
    return next(iter(chosen.values()), None)


def _version(definition: Definition) -> int:
    version = definition.get("version")
    return version if isinstance(version, int) else 1


def _shown(files: Iterable[str]) -> list[str]:
    return sorted(files)[:2]
