"""A JSON Schema of a manifest; ``jsonschema`` is imported when the first one is read."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from perago.protocol.plain import refuse
from perago.tasks.schemas import Mode, Problem, SchemaError

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_OPEN = ("patternProperties", "anyOf", "oneOf", "allOf", "if", "$ref", "$dynamicRef")
"""What may let in or demand names that ``properties`` does not tell."""


@dataclass(frozen=True)
class JsonSchema:
    """A document of JSON Schema 2020-12; what refers to something outside of it is refused."""

    name: str
    content: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what is no schema with ``ValueError``, in one sentence."""
        from jsonschema import Draft202012Validator  # noqa: PLC0415 - only where it is used
        from jsonschema.exceptions import SchemaError as Unsound  # noqa: PLC0415 - as above

        if self.content.get("$schema", _DIALECT).rstrip("#") != _DIALECT:
            raise ValueError(f"$schema is not {_DIALECT}")
        if problem := refuse(self.content):
            raise ValueError(f"the schema {problem}")
        try:
            Draft202012Validator.check_schema(self.content)
        except Unsound as error:
            where = ".".join(map(str, error.absolute_path))
            raise ValueError(f"it is no JSON Schema: {where or 'it'}: {error.message}") from None
        for reference in _references(self.content):
            if not reference.startswith("#"):
                raise ValueError(f"$ref {reference!r} leads out of the document; put it into $defs")

    @property
    def remedy(self) -> str:
        return "write a result that fits the schema"

    @cached_property
    def _validator(self) -> Any:
        from jsonschema import Draft202012Validator  # noqa: PLC0415 - only where it is used

        return Draft202012Validator(self.content)

    def parse(self, raw: Mapping[str, object]) -> dict[str, Any]:
        value = json.loads(json.dumps(dict(raw)))
        self._check(value)
        return dict(value)

    def accept(self, value: object) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise SchemaError([((), "it is not an object")])
        self._check(value)
        return value

    def _check(self, value: object) -> None:
        found = sorted(self._validator.iter_errors(value), key=lambda each: [*map(str, each.path)])
        if found:
            raise SchemaError([_problem(each) for each in found])

    def dump(self, value: dict[str, Any]) -> dict[str, Any]:
        return value

    def document(self, mode: Mode) -> dict[str, Any]:  # noqa: ARG002 - one document for both ways
        return copy.deepcopy({key: v for key, v in self.content.items() if key != "$schema"})

    @property
    def closed(self) -> bool:
        return self.content.get("additionalProperties") is False

    def taken(self) -> Mapping[str, frozenset[str]] | None:
        if self._open or self.content.get("additionalProperties", False) is not False:
            return None
        if "properties" not in self.content and not self.closed:
            return None
        return {name: frozenset({name}) for name in self.content.get("properties", {})}

    def required(self) -> frozenset[str]:
        return frozenset(self.content.get("required", ()))

    def given(self) -> frozenset[str] | None:
        known = frozenset(self.content.get("properties", {}))
        return known if self.closed and not self._open else None

    @property
    def _open(self) -> bool:
        return any(word in self.content for word in _OPEN)


def _problem(error: Any) -> Problem:
    """Say what is wrong without the value, which may be a secret (V8)."""
    where = tuple(error.absolute_path)
    wanted = error.validator_value
    match error.validator:
        case "required":
            missing = [name for name in wanted if name not in error.instance]
            return where, f"{', '.join(map(repr, missing))} is missing"
        case "additionalProperties" | "unevaluatedProperties":
            known = set(error.schema.get("properties", {}))
            return where, f"{', '.join(sorted(map(repr, set(error.instance) - known)))} is unknown"
        case "type":
            return (
                where,
                f"it is not of type {wanted if isinstance(wanted, str) else ' or '.join(wanted)}",
            )
        case validator:
            return where, f"it does not keep {validator}: {json.dumps(wanted)[:100]}"


def _references(node: object) -> list[str]:
    """Find the references of a document; in examples and defaults they do no harm."""
    if isinstance(node, list):
        return [found for each in node for found in _references(each)]
    if not isinstance(node, Mapping):
        return []
    own = [node[key] for key in ("$ref", "$dynamicRef") if isinstance(node.get(key), str)]
    return own + [found for value in node.values() for found in _references(value)]
