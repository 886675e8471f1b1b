"""What a task takes and gives: a pydantic model, or a JSON Schema that a manifest names."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from pydantic import AliasChoices, AliasPath, BaseModel, RootModel, ValidationError
from pydantic.fields import FieldInfo

Mode = Literal["validation", "serialization"]
Problem = tuple[tuple[str | int, ...], str]
"""Where in a value, and what is wrong there; never the value itself, which may be a secret."""
_READ = 3
"""So many problems are told: a person reads no more at once."""


class SchemaError(ValueError):
    """A value does not fit."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        said = [f"{'.'.join(map(str, where)) or 'value'}: {text}" for where, text in problems]
        more = f" and {len(said) - _READ} more" if len(said) > _READ else ""
        super().__init__(", ".join(said[:_READ]) + more)


class Schema(Protocol):
    """Describes the params or the result of a task."""

    @property
    def name(self) -> str:
        """Name it for whoever reads an error."""

    @property
    def remedy(self) -> str:
        """Tell an author whose result does not fit what to do."""

    def parse(self, raw: Mapping[str, object]) -> Any:
        """Make params of JSON values; ``SchemaError`` when they do not fit."""

    def accept(self, value: object) -> Any:
        """Check a result; ``SchemaError`` when it does not fit."""

    def dump(self, value: Any) -> dict[str, Any]:
        """Turn params or an accepted result into JSON; ``ValueError`` when it is not JSON."""

    def document(self, mode: Mode) -> dict[str, Any]:
        """Return it as a JSON Schema."""

    @property
    def closed(self) -> bool:
        """Return whether names that it does not declare are refused."""

    def taken(self) -> Mapping[str, frozenset[str]] | None:
        """Return the names by which each field can be given; None when any name can be."""

    def required(self) -> frozenset[str]:
        """Return the fields that have to be given."""

    def given(self) -> frozenset[str] | None:
        """Return the names of a dumped result; None when it may have others than are declared."""


@dataclass(frozen=True, slots=True)
class ModelSchema:
    """A pydantic model; aliases and computed fields are part of what it dumps."""

    model: type[BaseModel]
    strict: bool = False

    @property
    def name(self) -> str:
        return self.model.__name__

    @property
    def remedy(self) -> str:
        return f"return {self.name}(...)"

    def parse(self, raw: Mapping[str, object]) -> BaseModel:
        try:
            return self.model.model_validate_json(json.dumps(dict(raw)), strict=self.strict or None)
        except ValidationError as error:
            raise SchemaError(_problems(error)) from None

    def accept(self, value: object) -> BaseModel:
        if isinstance(value, self.model):
            return value
        try:
            return self.model.model_validate(value)
        except ValidationError as error:
            raise SchemaError(_problems(error)) from None

    def dump(self, value: BaseModel) -> dict[str, Any]:
        return value.model_dump(mode="json", by_alias=True, warnings="error")

    def document(self, mode: Mode) -> dict[str, Any]:
        return self.model.model_json_schema(by_alias=True, mode=mode)

    @property
    def closed(self) -> bool:
        return self.model.model_config.get("extra") == "forbid"

    def taken(self) -> Mapping[str, frozenset[str]] | None:
        return _taken(self.model)

    def required(self) -> frozenset[str]:
        fields = self.model.model_fields.items()
        return frozenset(name for name, field in fields if field.is_required())

    def given(self) -> frozenset[str] | None:
        return _given(self.model)


def _problems(error: ValidationError) -> list[Problem]:
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return [(item["loc"], f"{item['msg'][:1].lower()}{item['msg'][1:]}") for item in found]


def _taken(model: type[BaseModel]) -> dict[str, frozenset[str]] | None:
    # A validator that runs before the fields are read may take whatever it likes.
    before = model.__pydantic_decorators__.model_validators.values()
    free = any(each.info.mode != "after" for each in before)
    if free or issubclass(model, RootModel) or model.model_config.get("extra") == "allow":
        return None
    by_name = bool(
        model.model_config.get("populate_by_name") or model.model_config.get("validate_by_name")
    )
    return {
        name: _names(name, field, by_name=by_name) for name, field in model.model_fields.items()
    }


def _names(name: str, field: FieldInfo, *, by_name: bool) -> frozenset[str]:
    alias = field.validation_alias if field.validation_alias is not None else field.alias
    if alias is None:
        return frozenset({name})
    choices = alias.choices if isinstance(alias, AliasChoices) else [alias]
    found = {str(each.path[0]) if isinstance(each, AliasPath) else each for each in choices}
    return frozenset(found | ({name} if by_name else set()))


def _given(model: type[BaseModel]) -> frozenset[str] | None:
    decorators = model.__pydantic_decorators__
    if (
        issubclass(model, RootModel)
        or model.model_config.get("extra") == "allow"
        or decorators.model_serializers
    ):
        return None
    fields = {
        field.serialization_alias or field.alias or name
        for name, field in model.model_fields.items()
    }
    computed = {field.alias or name for name, field in model.model_computed_fields.items()}
    return frozenset(fields | computed)
