"""Workflows built with the Conductor SDK's own builder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perago.errors import UsageError


def definition_of_builder(value: object, where: str) -> Mapping[str, object]:
    """Return the WorkflowDef JSON of a builder; a plain mapping is taken as it is."""
    if isinstance(value, Mapping):
        return value
    build = getattr(value, "to_workflow_def", None)
    if not callable(build):
        raise UsageError(
            f"{where} is of type {type(value).__name__}, not a workflow",
            remedy="name a ConductorWorkflow of the Conductor SDK, or a dict",
        )
    return _plain(build())


def _plain(definition: object) -> dict[str, Any]:
    """Let the SDK spell its own model the way its server reads it."""
    from conductor.client.http.api_client import ApiClient  # noqa: PLC0415 - an optional package

    spelled: dict[str, Any] = ApiClient().sanitize_for_serialization(definition)  # type: ignore[no-untyped-call]
    return spelled
