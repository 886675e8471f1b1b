"""Conductor's ``${...}``: a small, checked part of JSONPath inside JSON templates.

A string that is exactly one expression keeps the type of its value; inside longer text the value
is written out. What is missing is null. ``$${`` stands for a literal ``${``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from perago.errors import WorkflowDefinitionError

Step = str | int
Path = tuple[Step, ...]
Read = Callable[["Expression"], object]

TASK_ID: Final = "CPEWF_TASK_ID"
"""The one system parameter of Conductor that has a meaning here."""

_STEP = re.compile(
    r"""(?P<name>[^\s.\[\]'"*?@$(){},:]+)
      | \[ \s* (?P<index>-?\d+) \s* \]
      | \[ \s* '(?P<single>[^']*)' \s* \]
      | \[ \s* "(?P<double>[^"]*)" \s* \]""",
    re.VERBOSE,
)
_SHOWN: Final = 200
_LITERAL = "write $${ where a literal ${ is meant"
_SUBSET = "use only names, [number] and ['key'] in a path"


@dataclass(frozen=True, slots=True)
class Expression:
    """One ``${...}``: its text between the braces, and the path it means."""

    text: str
    path: Path

    def __str__(self) -> str:
        return "${" + self.text + "}"


@dataclass(frozen=True, slots=True)
class UnknownValue:
    """Stands for a value that only a run will bring; whatever contains it is unknown too."""


UNKNOWN: Final = UnknownValue()


@lru_cache(maxsize=4096)
def parse(text: str) -> tuple[str | Expression, ...]:
    """Split a string into literal text and expressions, or refuse it in one sentence."""
    parts: list[str | Expression] = []
    literal: list[str] = []
    position = 0
    while (opening := text.find("${", position)) >= 0:
        inside = opening + 2
        if opening > position and text[opening - 1] == "$":
            # Conductor reads any `${` behind another `$` as text and takes that one `$` away.
            literal += [text[position : opening - 1], "${"]
            position = inside
            continue
        end = _closing(text, inside)
        literal.append(text[position:opening])
        if written := "".join(literal):
            parts.append(written)
        literal.clear()
        parts.append(parse_expression(text[inside:end]))
        position = end + 1
    literal.append(text[position:])
    if (written := "".join(literal)) or not parts:
        parts.append(written)
    return tuple(parts)


def _closing(text: str, start: int) -> int:
    """Find the brace that ends an expression; a brace inside a quoted key does not."""
    quote = ""
    for position in range(start, len(text)):
        character = text[position]
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == "}":
            return position
    raise WorkflowDefinitionError(
        f"expression {_begun(text[start - 2 :])!r} is not closed", remedy=_LITERAL
    )


def _begun(text: str) -> str:
    """Show the beginning of what is wrong; there may be no end of it."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def parse_expression(text: str) -> Expression:
    """Read what stands between the braces."""
    inner = text.strip()
    if not inner:
        raise WorkflowDefinitionError("expression '${}' is empty", remedy=_LITERAL)
    path: list[Step] = []
    position = 0
    while position < len(inner):
        dotted = inner[position] == "."
        if dotted:
            position += 1
        found = _STEP.match(inner, position)
        named = found is not None and found["name"] is not None
        # A dot stands before every name but the first, and before nothing else.
        if found is None or dotted != (named and bool(path)):
            raise WorkflowDefinitionError(
                f"expression '${{{_begun(text)}}}' is outside the JSONPath run here,"
                f" at {_begun(inner[position:])!r}",
                remedy=_SUBSET,
            )
        path.append(_step(found))
        position = found.end()
    return Expression(text=inner, path=tuple(path))


def _step(found: re.Match[str]) -> Step:
    if found["index"] is not None:
        return int(found["index"])
    return next(part for part in found.group("name", "single", "double") if part is not None)


def expressions_in(template: object, where: str = "") -> Iterator[tuple[str, Expression]]:
    """Walk a template: each expression with the JSON path of the string it stands in."""
    if isinstance(template, str):
        try:
            parts = parse(template)
        except WorkflowDefinitionError as error:
            raise WorkflowDefinitionError(
                f"{where}: {error.message}", remedy=error.remedy
            ) from None
        yield from ((where, part) for part in parts if isinstance(part, Expression))
    elif isinstance(template, Mapping):
        for key, value in template.items():
            yield from expressions_in(value, f"{where}.{key}" if where else str(key))
    elif isinstance(template, Sequence):
        for index, value in enumerate(template):
            yield from expressions_in(value, f"{where}[{index}]")


def resolve(template: object, read: Read) -> object:
    """Replace every expression of a template by what ``read`` finds."""
    if isinstance(template, str):
        return _resolve_text(template, read)
    if isinstance(template, Mapping):
        return {str(key): resolve(value, read) for key, value in template.items()}
    if isinstance(template, Sequence):
        return [resolve(value, read) for value in template]
    return template


def _resolve_text(template: str, read: Read) -> object:
    values = [read(part) if isinstance(part, Expression) else part for part in parse(template)]
    if len(values) == 1:
        return values[0]
    if UNKNOWN in values:
        return UNKNOWN
    return "".join(as_text(value) for value in values)


def lookup(document: object, path: Path) -> object:
    """Follow a path; None where it leads nowhere, UNKNOWN behind an unknown value."""
    for step in path:
        if isinstance(document, UnknownValue):
            return UNKNOWN
        if isinstance(document, Mapping) and isinstance(step, str):
            document = document.get(step)
        elif isinstance(document, list) and isinstance(step, int):
            inside = -len(document) <= step < len(document)
            document = document[step] if inside else None
        else:
            return None
    return document


def as_text(value: object) -> str:
    """Write a value inside longer text, as Conductor does; structures as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def mentions_task_id(template: object) -> bool:
    """Return whether a template depends on the attempt it is resolved for."""
    return any(found.path == (TASK_ID,) for _, found in expressions_in(template))


def refresh(template: object, previous: object, read: Read) -> object:
    """Return a retry the input its predecessor had; only the task id is taken anew."""
    if isinstance(template, str):
        return _resolve_text(template, read) if mentions_task_id(template) else previous
    if isinstance(template, Mapping) and isinstance(previous, Mapping):
        return {
            str(key): refresh(value, previous.get(str(key)), read)
            for key, value in template.items()
        }
    if isinstance(template, list) and isinstance(previous, list):
        return [refresh(*pair, read) for pair in zip(template, previous, strict=False)]
    return previous
