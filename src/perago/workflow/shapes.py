"""The names that a task takes and gives, read off its models."""

from __future__ import annotations

from pydantic import AliasChoices, AliasPath, BaseModel, RootModel
from pydantic.fields import FieldInfo

from perago.tasks.declaration import TaskDefinition
from perago.workflow.inputs import TaskShape


def shape_of(task: TaskDefinition) -> TaskShape:
    """Describe the input and the output of a task by their names."""
    taken = _taken(task.params_model)
    return TaskShape(
        workspace=task.workspace is not None,
        params=None if taken is None else frozenset[str]().union(*taken.values()),
        required=tuple(
            names
            for field, names in (taken or {}).items()
            if task.params_model.model_fields[field].is_required()
        ),
        unknown_params="refuse"
        if task.params_model.model_config.get("extra") == "forbid"
        else "warn",
        results=_given(task.result_model),
    )


def _taken(model: type[BaseModel]) -> dict[str, frozenset[str]] | None:
    """Return the names by which each field can be given; None when a model takes any name."""
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
    """Return the names of a dumped result; None when a model gives others than it declares."""
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
