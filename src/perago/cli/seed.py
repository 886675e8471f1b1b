"""The input of a local run: values from the command line, and a workspace to start from."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perago.errors import NotFoundError, StoreError, UsageError
from perago.wiring import Home


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


def workspace_input(
    home: Home, repository: str, branch: str, source: Path | None
) -> dict[str, str]:
    """Name the head of a branch as the input of a run; make repository and content if asked."""
    if repository not in home.store.repositories():
        home.store.create_repository(repository, branch)
    elif branch not in {found.name for found in home.store.branches(repository)}:
        raise UsageError(
            f"repository {repository!r} has no branch {branch!r}",
            remedy="choose one with --branch",
        )
    if source is not None:
        _import(home, repository, branch, source)
    head = home.store.head(repository, branch)
    return {"repository": repository, "branch": branch, "ref_type": "commit", "ref": head.id}


def repository_name(workflow: object) -> str:
    """Turn a workflow's name into a repository name."""
    name = re.sub(r"[^a-z0-9-]+", "-", str(workflow).lower()).strip("-")[:60]
    return name if len(name) > 2 else f"{name}-repo".strip("-")  # noqa: PLR2004 - three at least


def _import(home: Home, repository: str, branch: str, source: Path) -> None:
    if not source.is_dir():
        raise UsageError(f"--from {source} is no directory", remedy="name a directory of files")
    home.store.import_directory(repository, branch, source, f"files from {source.name}")


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
