"""The input of a local run: values from the command line, and a workspace to start from."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perago.cli.workflow_source import WorkflowSource
from perago.errors import UsageError
from perago.wiring import Home

SHORTEST_NAME = 3


def read_input(pairs: list[str], file: Path | None, params: str | None) -> dict[str, Any]:
    """Join ``--input-file``, ``--input key=value`` and ``--params``; later ones win."""
    found: dict[str, Any] = {}
    if file is not None:
        try:
            text = file.read_text()
        except OSError as error:
            raise UsageError(f"input file {file} cannot be read: {error.strerror}") from None
        found.update(_object(text, str(file)))
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not separator or not key:
            raise UsageError(f"--input {pair!r} is no pair", remedy="write --input key=value")
        found[key] = _value(value)
    if params is not None:
        found["params"] = _object(params, "--params")
    return found


def workspace_for(
    home: Home, source: WorkflowSource, repository: str | None, branch: str, files: Path | None
) -> dict[str, str]:
    """Name the head of a branch as the input of a run; make repository and content if asked."""
    name = repository or _usual_repository(home, source)
    if name not in home.store.repositories():
        home.store.create_repository(name, branch)
    elif branch not in {found.name for found in home.store.branches(name)}:
        raise UsageError(
            f"repository {name!r} has no branch {branch!r}", remedy="choose one with --branch"
        )
    if files is not None:
        if not files.is_dir():
            raise UsageError(f"--from {files} is no directory", remedy="name a directory of files")
        home.store.import_directory(name, branch, files, f"files from {files.resolve().name}")
    head = home.store.head(name, branch)
    return {"repository": name, "branch": branch, "ref_type": "commit", "ref": head.id}


def _usual_repository(home: Home, source: WorkflowSource) -> str:
    """Name a workflow's repository after it; a single task works on the only one there is."""
    known = home.store.repositories()
    if source.single_task and len(known) == 1:
        return known[0]
    name = re.sub(r"[^a-z0-9-]+", "-", str(source.definition.get("name")).lower()).strip("-")[:60]
    return name if len(name) >= SHORTEST_NAME else f"{name}-repo".strip("-")


def _object(text: str, where: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise UsageError(f"{where} is no JSON: {error}", remedy="correct it") from None
    if not isinstance(value, dict):
        raise UsageError(f"{where} is {type(value).__name__}", remedy="give a JSON object")
    return value


def _value(text: str) -> object:
    """Read a value as JSON where it is JSON, otherwise as text."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text
