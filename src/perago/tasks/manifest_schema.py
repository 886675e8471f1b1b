"""A JSON Schema of manifests, with which an editor completes and checks them (Q1)."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, get_args

from perago.protocol.kinds import FenceKind
from perago.tasks.manifest import GUARDS, KEYS, NEEDED
from perago.tasks.spec import MetricSpec, TaskControls, WorkspaceSpec

_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}
_SCHEMA = {
    "description": "JSON Schema 2020-12: a file beside the manifest, or a table.",
    "anyOf": [_TEXT, {"type": "object"}],
}


def manifest_schema() -> dict[str, Any]:
    """Build it from what a manifest is read with, so that both know the same."""
    definitions: dict[str, Any] = {"guard": {"oneOf": [_guard(*item) for item in GUARDS.items()]}}
    for name, kind in (("controls", TaskControls), ("metrics", MetricSpec)):
        made = kind.model_json_schema(ref_template="#/$defs/{model}")
        definitions |= made.pop("$defs", {})
        definitions[name] = made
    definitions["workspace"] = _workspace()
    known = _keys()
    task = {
        "type": "object",
        "properties": {key: known[key] for key in KEYS},
        "required": list(NEEDED),
        "anyOf": [
            {"required": ["command"]},
            {"required": ["human"], "properties": {"human": {"const": True}}},
        ],
        "additionalProperties": False,
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Tasks of programs and people",
        "type": "object",
        "properties": {"task": {"type": "array", "minItems": 1, "items": task}},
        "required": ["task"],
        "additionalProperties": False,
        "$defs": definitions,
    }


def _keys() -> dict[str, Any]:
    """Describe the keys of one task."""
    return {
        "name": _TEXT | {"description": "The name of the task in workflows."},
        "owner_email": _TEXT | {"description": "Whom to ask about it."},
        "description": _TEXT,
        "command": _TEXTS
        | {"minItems": 1, "description": "Program and arguments; {here} is this directory."},
        "serve": {
            "type": "boolean",
            "default": False,
            "description": "Start it once for many attempts.",
        },
        "env": _TEXTS | {"description": "Variables of the worker that the program is given."},
        "human": {
            "type": "boolean",
            "default": False,
            "description": "A person does it, in place of a program.",
        },
        "approval": {
            "type": "boolean",
            "default": False,
            "description": "The person says yes or no to the version that the step reads.",
        },
        "params": _SCHEMA,
        "result": _SCHEMA,
        **{name: {"$ref": f"#/$defs/{name}"} for name in ("workspace", "controls", "metrics")},
    }


def _workspace() -> dict[str, Any]:
    guards = {"type": "array", "items": {"$ref": "#/$defs/guard"}}
    known: dict[str, Any] = {
        "prefix": _TEXT | {"default": "/"},
        "pre": guards | {"description": "What must be true of the input."},
        "post": guards | {"description": "What must be true of the result."},
        "read_only": {"type": "boolean", "default": False},
        "fence": {"enum": list(get_args(FenceKind)), "default": "head"},
        "include": _TEXTS,
        "exclude": _TEXTS,
    }
    return {
        "type": "object",
        "properties": {name: known[name] for name in WorkspaceSpec.model_fields},
        "additionalProperties": False,
    }


def _guard(name: str, make: Callable[..., object]) -> dict[str, Any]:
    """Describe ``{name = "path"}``, ``{name = [...]}`` and ``{name = {argument = ...}}``."""
    arguments: dict[str, Any] = {each: {} for each in inspect.signature(make).parameters}
    named = {"type": "object", "properties": arguments, "additionalProperties": False}
    return {
        "type": "object",
        "description": (inspect.getdoc(make) or "").partition("\n")[0],
        "properties": {name: {"anyOf": [_TEXT, {"type": "array"}, named]}},
        "required": [name],
        "additionalProperties": False,
    }
