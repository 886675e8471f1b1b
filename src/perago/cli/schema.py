"""``perago schema``: the JSON Schema of a manifest, for editors."""

from __future__ import annotations

from perago.cli.screen import AsJson, emit


def schema(as_json: AsJson = False) -> None:  # noqa: ARG001 - it is JSON either way
    """Print the JSON Schema of a manifest (tasks.toml), with which an editor completes it."""
    from perago.tasks.manifest_schema import manifest_schema

    emit(manifest_schema())
