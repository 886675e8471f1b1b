"""From a raw input to a job that may run (rules I1, I2, I4, I5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from perago.errors import TaskInputError
from perago.protocol.values import WorkspaceInput

_FIELDS = ("repository", "branch", "ref")


def split_input(
    raw: Mapping[str, object], *, workspace: bool
) -> tuple[WorkspaceInput | None, Mapping[str, object]]:
    """Take an input apart; it has exactly the keys the task declares, nothing else."""
    wanted = {"workspace", "params"} if workspace else {"params"}
    problems = [
        *(f"missing {key!r}" for key in sorted(wanted - raw.keys())),
        *(f"unknown {key!r}" for key in sorted(map(str, raw.keys() - wanted))),
    ]
    if problems:
        raise TaskInputError(
            f"task input has the wrong keys ({', '.join(problems)})",
            remedy=f"give exactly {_list(wanted)} in inputParameters",
        )
    params = raw["params"]
    if not isinstance(params, Mapping):
        raise TaskInputError(
            f"task input 'params' is {_kind(params)}, not an object",
            remedy="give an object with the fields of the task's params model",
        )
    return (parse_workspace(raw["workspace"]) if workspace else None), params


def parse_workspace(raw: object) -> WorkspaceInput:
    """Read ``{repository, branch, ref_type: "commit", ref}``; all required, none blank."""
    if not isinstance(raw, Mapping):
        raise TaskInputError(
            f"task input 'workspace' is {_kind(raw)}, not an object",
            remedy="give {repository, branch, ref_type, ref}, as an earlier step's output has it",
        )
    spelling = _spelling(raw)
    unknown = sorted(map(str, raw.keys() - {*_FIELDS, spelling}))
    if unknown:
        raise TaskInputError(
            f"task input 'workspace' has the unknown key {unknown[0]!r}",
            remedy="give exactly repository, branch, ref_type and ref",
        )
    values = {field: _text(raw, field) for field in _FIELDS}
    if raw.get(spelling) != "commit":
        raise TaskInputError(
            f"task input 'workspace.{spelling}' is {raw.get(spelling)!r}",
            remedy="it must be 'commit': an attempt reads one immutable version",
        )
    return WorkspaceInput(ref_type="commit", spelling=spelling, **values)


def assert_full_commit_id(workspace: WorkspaceInput, resolved: str) -> None:
    """Refuse a branch, tag or short id (I4): the store's id of the ref must be the ref itself."""
    if resolved != workspace.ref:
        raise TaskInputError(
            f"task input 'workspace.ref' {workspace.ref!r} is not a full commit id",
            remedy=f"use {resolved!r}, the commit it names now",
        )


def _spelling(raw: Mapping[object, object]) -> Literal["ref_type", "refType"]:
    if "ref_type" in raw and "refType" in raw:
        raise TaskInputError(
            "task input 'workspace' has both ref_type and refType", remedy="give one of them"
        )
    return "refType" if "refType" in raw else "ref_type"


def _text(raw: Mapping[object, object], field: str) -> str:
    value = raw.get(field)
    if not isinstance(value, str) or not value.strip():
        found = "missing" if field not in raw else f"{value!r}"
        raise TaskInputError(
            f"task input 'workspace.{field}' is {found}", remedy="give a text that is not blank"
        )
    return value


def _kind(value: object) -> str:
    return "null" if value is None else f"of type {type(value).__name__}"


def _list(names: set[str]) -> str:
    return " and ".join(f"'{name}'" for name in sorted(names, reverse=True))
