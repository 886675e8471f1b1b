"""A task as Conductor knows it: TaskDef JSON with embedded schemas; no workspace in it (I6).

References are written out where they stand; a model that contains itself keeps one definition
under ``$defs``, because no finite schema could be written otherwise.
"""

from __future__ import annotations

from typing import Any

from perago.protocol.data import DataGuard
from perago.tasks.bodies import HumanBody
from perago.tasks.definition import TaskDefinition

WORKSPACE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "repository": {"type": "string", "minLength": 1},
        "branch": {"type": "string", "minLength": 1},
        "ref_type": {"const": "commit"},
        "refType": {"const": "commit"},
        "ref": {"type": "string", "minLength": 1},
    },
    "required": ["repository", "branch", "ref"],
    "oneOf": [{"required": ["ref_type"]}, {"required": ["refType"]}],
    "additionalProperties": False,
}


def warnings_of(task: TaskDefinition) -> list[str]:
    """List what the server would accept and the author probably does not mean."""
    found = task.warnings()
    timeout = task.controls.timeout
    if timeout.response_seconds == 0 or 0 < timeout.seconds < timeout.response_seconds:
        found.append(
            f"task {task.name!r}: Conductor refuses timeout.response_seconds of"
            f" {timeout.response_seconds:g}: set it to 1 or more, and to no more than"
            " timeout.seconds"
        )
    if timeout.seconds == 0 and not isinstance(task.body, HumanBody):
        found.append(
            f"task {task.name!r}: timeout.seconds is 0, so a body that hangs is never ended:"
            " set TimeoutPolicy(seconds=...)"
        )
    return found


def taskdef(task: TaskDefinition) -> dict[str, Any]:
    """Build the TaskDef; the same task always gives the same JSON."""
    has_workspace = task.workspace is not None
    inputs = ["workspace", "params"] if has_workspace else ["params"]
    outputs = ["workspace", "result"] if has_workspace else ["result"]
    by_hand = isinstance(task.body, HumanBody)
    return {
        "name": task.name,
        "ownerEmail": task.owner_email,
        **({"description": task.description} if task.description else {}),
        **_controls(task),
        "inputKeys": inputs,
        "outputKeys": [*outputs, *(["person"] if by_hand else [])],
        "inputSchema": _schema(
            f"{task.name}.input", inputs, _inlined(task.params.document("validation"))
        ),
        "outputSchema": _with_guards(
            task,
            _schema(
                f"{task.name}.output", outputs, _inlined(task.result.document("serialization"))
            ),
        ),
    }


def _with_guards(task: TaskDefinition, schema: dict[str, Any]) -> dict[str, Any]:
    """Let the output say who did it (Q13), and what guards of tables found (X5)."""
    spec = task.workspace
    if isinstance(task.body, HumanBody):
        schema["data"]["properties"]["person"] = {"type": "string"}
    if spec and any(isinstance(guard, DataGuard) for guard in (*spec.pre, *spec.post)):
        schema["data"]["properties"]["guards"] = {"type": "array", "items": {"type": "object"}}
    return schema


def _controls(task: TaskDefinition) -> dict[str, Any]:
    retry, timeout, limits = task.controls.retry, task.controls.timeout, task.controls.limits
    optional = {
        "concurrentExecLimit": limits.concurrent_exec_limit,
        "rateLimitFrequencyInSeconds": limits.rate_limit_frequency_in_seconds,
        "rateLimitPerFrequency": limits.rate_limit_per_frequency,
    }
    return {
        "retryCount": retry.count,
        "retryLogic": retry.logic,
        "retryDelaySeconds": retry.delay_seconds,
        "maxRetryDelaySeconds": retry.max_delay_seconds,
        "backoffJitterMs": retry.jitter_ms,
        "timeoutPolicy": timeout.policy,
        "timeoutSeconds": timeout.seconds,
        "responseTimeoutSeconds": timeout.response_seconds,
        "pollTimeoutSeconds": timeout.poll_seconds,
        "totalTimeoutSeconds": timeout.total_seconds,
        **{key: value for key, value in optional.items() if value is not None},
    }


def _schema(name: str, keys: list[str], model: dict[str, Any]) -> dict[str, Any]:
    definitions = model.pop("$defs", None)
    payload = keys[-1]
    properties = {key: WORKSPACE_SCHEMA if key == "workspace" else model for key in keys}
    data: dict[str, Any] = {
        "type": "object",
        "properties": properties,
        "required": [*keys[:-1], payload],
        "additionalProperties": False,
    }
    if definitions:
        data["$defs"] = definitions
    return {"name": name, "version": 1, "type": "JSON", "data": data}


def _inlined(schema: dict[str, Any]) -> dict[str, Any]:
    """Write out references, so that a schema can stand inside of another."""
    definitions = schema.pop("$defs", {})
    recursive = {name for name in definitions if _reaches(name, name, definitions)}
    kept = {name: _inline(definitions[name], definitions, recursive) for name in sorted(recursive)}
    inlined = _inline(schema, definitions, recursive)
    if kept:
        inlined["$defs"] = kept
    return dict(inlined)


def _inline(node: Any, definitions: dict[str, Any], recursive: set[str]) -> Any:
    """Write out every reference except those to a model that contains itself."""
    if isinstance(node, list):
        return [_inline(item, definitions, recursive) for item in node]
    if not isinstance(node, dict):
        return node
    name = _referenced(node)
    if name is not None and name not in recursive:
        beside = {key: value for key, value in node.items() if key != "$ref"}
        return _inline({**definitions[name], **beside}, definitions, recursive)
    return {key: _inline(value, definitions, recursive) for key, value in node.items()}


def _reaches(start: str, wanted: str, definitions: dict[str, Any]) -> bool:
    """Return whether a definition refers to ``wanted``, directly or not."""
    pending, seen = [start], set()
    while pending:
        for name in _references(definitions.get(pending.pop(), {})):
            if name == wanted:
                return True
            if name not in seen:
                seen.add(name)
                pending.append(name)
    return False


def _references(node: Any) -> set[str]:
    if isinstance(node, list):
        return set().union(*map(_references, node)) if node else set()
    if not isinstance(node, dict):
        return set()
    name = _referenced(node)
    found = {name} if name is not None else set()
    return found.union(*(_references(value) for value in node.values())) if node else found


def _referenced(node: dict[str, Any]) -> str | None:
    reference = node.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/$defs/"):
        return reference.removeprefix("#/$defs/")
    return None
