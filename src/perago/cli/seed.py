"""The input of a local run: values from the command line, and a workspace to start from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from perago.app.local import StoreKind
from perago.cli.workflow_source import WorkflowSource
from perago.errors import NotFoundError, UsageError
from perago.ports import Store
from perago.protocol.reading import OutOfBoundsError, read_json, refuse_halves
from perago.protocol.replacement import KIND
from perago.protocol.values import Commit
from perago.stores.embedded import EmbeddedStore

if TYPE_CHECKING:
    from perago.stores.lakefs.store import LakeFSStore

SHORTEST_NAME = 3


def read_input(pairs: list[str], file: Path | None, params: str | None) -> dict[str, Any]:
    """Join ``--input-file``, ``--input key=value`` and ``--params``; later ones win."""
    found: dict[str, Any] = {}
    if file is not None:
        try:
            text = file.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"input file {file} cannot be read: {error}") from None
        found.update(_object(text, str(file)))
    found.update(read_pairs(pairs, "--input"))
    if params is not None:
        found["params"] = _object(params, "--params")
    return found


def read_pairs(pairs: list[str], option: str) -> dict[str, Any]:
    """Read ``key=value``, as often as an option was given."""
    found: dict[str, Any] = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not separator or not key:
            raise UsageError(
                f"{option} {pair!r} is not a key=value pair", remedy=f"write {option} key=value"
            )
        found[key] = _value(value, option)
    return found


def chosen_store(text: str) -> StoreKind:
    """Read ``--store``."""
    if text == "embedded":
        return "embedded"
    if text == "lakefs":
        return "lakefs"
    raise UsageError(f"--store {text!r}", remedy="use embedded or lakefs")


def workspace_for(
    store: Store, source: WorkflowSource, repository: str | None, branch: str, files: Path | None
) -> dict[str, str]:
    """Name the head of a branch as the input of a run."""
    if files is not None and not files.is_dir():
        raise UsageError(f"--from {files} is not a directory", remedy="name a directory of files")
    if isinstance(store, EmbeddedStore):
        name = repository or _usual_repository(store, source)
        _arrange(store, name, branch)
    elif repository is None:
        raise UsageError("which repository on lakeFS?", remedy="name it with --repo")
    else:
        name = repository
    if files is not None:
        _imported(store, name, branch, files)
    return workspace_at(store, name, branch)


def workspace_at(store: Store, repository: str, branch: str) -> dict[str, str]:
    """Name the head of a branch as the input of a workflow."""
    head = _head(store, repository, branch)
    return {"repository": repository, "branch": branch, "ref_type": "commit", "ref": head.id}


def _head(store: Store, name: str, branch: str) -> Commit:
    try:
        return store.head(name, branch)
    except NotFoundError as error:
        raise UsageError(
            f"lakeFS has no branch {branch!r} in a repository {name!r}: {error.message}",
            remedy=f"check --repo and --branch, or make it with 'perago repo init {name}'",
        ) from None


def _imported(store: Store, name: str, branch: str, files: Path) -> Commit:
    """Commit the files of ``--from``; a branch that has them already stays as it is."""
    message, metadata = f"files from {files.resolve().name}", {KIND: "import"}
    if isinstance(store, EmbeddedStore):
        return store.import_directory(name, branch, files, message, metadata)
    from perago.stores.lakefs.importing import import_directory

    _head(store, name, branch)
    return import_directory(cast("LakeFSStore", store), name, branch, files, message, metadata)


def _arrange(store: EmbeddedStore, name: str, branch: str) -> None:
    """Make a repository on the embedded store, where nobody else does."""
    if name not in store.repositories():
        store.create_repository(name, branch)
    elif branch not in {found.name for found in store.branches(name)}:
        raise UsageError(
            f"repository {name!r} has no branch {branch!r}", remedy="choose one with --branch"
        )


def _usual_repository(store: EmbeddedStore, source: WorkflowSource) -> str:
    """Name a workflow's repository after it; a single task works on the only one there is."""
    known = store.repositories()
    if source.single_task and len(known) == 1:
        return known[0]
    name = re.sub(r"[^a-z0-9-]+", "-", str(source.definition.get("name")).lower()).strip("-")[:60]
    return name if len(name) >= SHORTEST_NAME else f"{name}-repo".strip("-")


def _object(text: str, where: str) -> Mapping[str, Any]:
    try:
        value = read_json(text)
    except ValueError as error:
        raise UsageError(f"{where} cannot be read as JSON: {error}", remedy="correct it") from None
    if not isinstance(value, dict):
        raise UsageError(f"{where} is {type(value).__name__}", remedy="give a JSON object")
    return value


def _value(text: str, option: str) -> object:
    """Read a value as JSON where it is JSON, otherwise as text."""
    try:
        try:
            return read_json(text)
        except OutOfBoundsError:
            raise
        except ValueError:
            refuse_halves(text)
            return text
    except OutOfBoundsError as error:
        raise UsageError(
            f"an {option} cannot be read: {error}", remedy="give less, and in UTF-8"
        ) from None
