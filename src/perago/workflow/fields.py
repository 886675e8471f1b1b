"""Read JSON fields with their place in the file, so that each mistake is one sentence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from perago.errors import WorkflowDefinitionError

Choice = TypeVar("Choice", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Fields:
    """One JSON object of a definition: from which file, at which path."""

    source: str
    where: str
    data: Mapping[str, object]

    def path(self, key: str) -> str:
        """Name a field of this object by its JSON path."""
        return f"{self.where}.{key}" if self.where else key

    def refuse(self, key: str, problem: str, remedy: str) -> WorkflowDefinitionError:
        """Make the sentence about one field; an empty key means the object itself."""
        place = self.path(key) if key else self.where
        place = f"{self.source}: {place}" if place else self.source
        return WorkflowDefinitionError(f"{place} {problem}", remedy=remedy)

    def wrong(self, key: str, wanted: str) -> WorkflowDefinitionError:
        """Say that a value has the wrong type or range."""
        found = shown(self.data.get(key))
        return self.refuse(key, f"must be {wanted}, not {found}", f"correct {key}")

    def text(self, key: str, default: str | None = None) -> str:
        """Read a text that is not blank; required when there is no default."""
        value = self.data.get(key)
        if value is None:
            if default is None:
                raise self.refuse(key, "is missing", f'add "{key}": "..."')
            return default
        if not isinstance(value, str) or (default is None and not value.strip()):
            raise self.wrong(key, "a text that is not blank" if default is None else "a text")
        return value

    def integer(self, key: str, default: int) -> int:
        """Read a whole number >= 0."""
        value = self.data.get(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self.wrong(key, "a whole number of at least 0")
        return value

    def number(self, key: str, default: float) -> float:
        """Read a number >= 0."""
        value = self.data.get(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
            raise self.wrong(key, "a number of at least 0")
        return value

    def flag(self, key: str) -> bool:
        """Read true or false; absent is false."""
        value = self.data.get(key)
        if value is None:
            return False
        if not isinstance(value, bool):
            raise self.wrong(key, "true or false")
        return value

    def choice(self, key: str, kind: type[Choice], default: Choice) -> Choice:
        """Read one of the names of an enumeration."""
        value = self.data.get(key)
        if value is None:
            return default
        if not isinstance(value, str) or value not in list(kind):
            raise self.wrong(key, "one of " + ", ".join(kind))
        return kind(value)

    def mapping(self, key: str) -> Mapping[str, object]:
        """Read an object; absent is empty."""
        value = self.data.get(key)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            raise self.wrong(key, "an object")
        return value

    def items(self, key: str) -> list[object]:
        """Read a list; absent is empty."""
        value = self.data.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.wrong(key, "a list")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """Read a list of texts; absent is empty."""
        values = self.items(key)
        texts = tuple(value for value in values if isinstance(value, str))
        if len(texts) != len(values):
            raise self.wrong(key, "a list of texts")
        return texts

    def below(self, key: str, index: int, value: object) -> Fields:
        """Step into one object of a list."""
        where = f"{self.path(key)}[{index}]"
        if not isinstance(value, Mapping):
            raise Fields(self.source, where, {}).refuse(
                "", f"must be an object, not {shown(value)}", "write a workflow task there"
            )
        return Fields(self.source, where, value)


def shown(value: object, limit: int = 60) -> str:
    """Write a JSON value for a message, cut short."""
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= limit else text[: limit - 1] + "…"
