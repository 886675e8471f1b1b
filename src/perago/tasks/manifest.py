"""Tasks of programs and people, declared in a TOML file; a mistake is named with its line (Q1)."""

from __future__ import annotations

import difflib
import inspect
import json
import re
import tomllib
import typing
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from perago import data
from perago.errors import TaskDefinitionError, UsageError
from perago.protocol.program import Program
from perago.protocol.reading import read_json
from perago.tasks import spec
from perago.tasks.bodies import Body, HumanBody, ProgramBody
from perago.tasks.definition import TaskDefinition, check_texts
from perago.tasks.json_schemas import JsonSchema
from perago.tasks.spec import Declaration, Guard, MetricSpec, TaskControls, WorkspaceSpec
from perago.tasks.toml_lines import Place, line_of

MOST_BYTES: Final = 1_000_000
HERE: Final = "{here}"
"""Stands in a command for the directory of the manifest."""
GUARDS: Final[Mapping[str, Callable[..., Guard]]] = {
    **{name: getattr(spec, name) for name in spec.GUARDS},
    **{name: getattr(data, name) for name in data.__all__ if name != "expect"},
}
"""The guards that need no Python of the author; ``expect`` is for Spark tasks."""
KEYS: Final = (
    *("name", "owner_email", "description", "command", "serve", "env", "human", "approval"),
    *("params", "result", "workspace", "controls", "metrics"),
)
NEEDED: Final = ("name", "owner_email")
_OF_A_PROGRAM: Final = ("command", "serve", "env")
APPROVAL: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "approved": {"type": "boolean", "description": "Whether it is approved."},
        "comment": {"type": "string", "description": "Why."},
        "ref": {"type": "string", "description": "The commit that was looked at."},
    },
    "required": ["approved", "comment", "ref"],
    "additionalProperties": False,
}
"""The result of an approval (Q14)."""
_TABLES: Final[Mapping[str, type[Declaration]]] = {
    "workspace": WorkspaceSpec,
    "controls": TaskControls,
    "metrics": MetricSpec,
}
_OURS: Final = re.compile(r"PERAGO_.*|LAKECTL_.*|CONDUCTOR_.*")
"""Variables that hold addresses and keys of our servers: no program is handed one (Q3)."""
_SET: Final = frozenset({"HOME", "TMPDIR"})
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class _WrongError(Exception):
    """What is wrong, and where in the document."""

    def __init__(self, place: Place, problem: str, remedy: str = "") -> None:
        super().__init__(problem)
        self.place, self.problem, self.remedy = place, problem, remedy


def load_manifest(name: str) -> list[TaskDefinition]:
    """Read the tasks of a manifest, in their order."""
    path = Path(name)
    text = _read(path)
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        where = re.fullmatch(r"(.*) \(at line (\d+), column \d+\)", str(error))
        problem, line = (where[1], where[2]) if where else (str(error), "1")
        raise TaskDefinitionError(
            f"{name} line {line}: {problem[:1].lower()}{problem[1:]}", remedy="correct the TOML"
        ) from None
    except RecursionError:
        raise TaskDefinitionError(f"{name} is nested too deep", remedy="write it flat") from None
    try:
        return _Reader(path, document).tasks()
    except _WrongError as error:
        words = [str(word) for word in error.place[2 if "task" in error.place[:1] else 0 :]]
        what = f"{'.'.join(words)}: " if words else ""
        raise TaskDefinitionError(
            f"{name} line {line_of(text, error.place)}: {what}{error.problem}",
            remedy=error.remedy or "correct the manifest",
        ) from None


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise UsageError(f"manifest {path} has more than {MOST_BYTES:,} bytes")
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise UsageError(f"manifest {path} does not exist", remedy="check the path") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"manifest {path} cannot be read: {error}") from None


@dataclass(frozen=True, slots=True)
class _Reader:
    path: Path
    document: Mapping[str, Any]

    def tasks(self) -> list[TaskDefinition]:
        _known((), self.document, ("task",))
        tables = self.document.get("task")
        if not isinstance(tables, list) or not tables:
            raise _WrongError((), "it declares no task", "begin one with a line [[task]]")
        found = [self._task(("task", number), table) for number, table in enumerate(tables)]
        for number, task in enumerate(found):
            if task.name in {other.name for other in found[:number]}:
                raise _WrongError(
                    ("task", number, "name"), f"a task above is named {task.name!r}, too"
                )
        return found

    def _task(self, place: Place, table: Any) -> TaskDefinition:
        if not isinstance(table, Mapping):
            raise _WrongError(place, "a task is a table", "begin it with a line [[task]]")
        _known(place, table, KEYS)
        for key in NEEDED:
            if key not in table:
                raise _WrongError(place, f"{key} is missing", f"add {key} = ...")
        name = table["name"]
        with _at(place):
            check_texts(name, table["owner_email"], table.get("description"))
        declared = {
            key: _declared(kind, table[key], (*place, key))
            for key, kind in _TABLES.items()
            if key in table
        }
        workspace = declared.get("workspace")
        controls = declared.get("controls", TaskControls())
        if workspace is None and controls.publish_budget is not None:
            raise _WrongError((*place, "controls"), "publish_budget needs a workspace")
        return TaskDefinition(
            name=name,
            owner_email=table["owner_email"],
            description=table.get("description"),
            workspace=workspace,
            metrics=declared.get("metrics", MetricSpec()),
            controls=controls,
            body=self._body(place, table, workspace),
            params=self._schema(place, table, "params"),
            result=self._schema(place, table, "result"),
        )

    def _body(
        self, place: Place, table: Mapping[str, Any], workspace: WorkspaceSpec | None
    ) -> Body:
        human, approval = (_flag(place, table, key) for key in ("human", "approval"))
        if not human:
            if approval:
                raise _WrongError(
                    (*place, "approval"), "only a person approves", "add human = true"
                )
            if "command" not in table:
                raise _WrongError(
                    place, "command is missing", "add command = [...], or human = true"
                )
            return ProgramBody(self._program(place, table), self.path, table["name"])
        for key in (*_OF_A_PROGRAM, "metrics"):
            if key in table:
                raise _WrongError((*place, key), "a person has none", f"remove {key}")
        for key in {"timeout", "limits"} & {*table.get("controls", {})}:
            raise _WrongError(
                (*place, "controls", key),
                "no engine ends or limits what a person does",
                f"remove {key}; the workflow may have a timeout",
            )
        if approval and "result" in table:
            raise _WrongError(
                (*place, "result"), "an approval has a result of its own", "remove result"
            )
        if approval and (workspace is None or not workspace.read_only):
            raise _WrongError(
                (*place, "approval"),
                "it is about a version, and changes nothing",
                "add read_only = true to [task.workspace]",
            )
        return HumanBody(self.path, table["name"], approval)

    def _program(self, place: Place, table: Mapping[str, Any]) -> Program:
        words = _texts((*place, "command"), table["command"])
        if not words or not words[0]:
            raise _WrongError((*place, "command"), "it is empty", 'write ["program", "argument"]')
        here = str(self.path.resolve().parent)
        command = tuple(word.replace(HERE, here) for word in words)
        if "/" in command[0] and not command[0].startswith("/"):
            raise _WrongError(
                (*place, "command"),
                f"{words[0]!r} is relative, and the program starts in the workspace",
                f"write {HERE}/{words[0].removeprefix('./')}, or a name that is on the PATH",
            )
        names = _texts((*place, "env"), table.get("env", []))
        for variable in names:
            if not _VARIABLE.fullmatch(variable):
                raise _WrongError((*place, "env"), f"{variable!r} is not the name of a variable")
            if variable in _SET:
                raise _WrongError(
                    (*place, "env"), f"{variable} is set for each attempt", "leave it out"
                )
            if _OURS.fullmatch(variable):
                raise _WrongError(
                    (*place, "env"),
                    f"{variable} is for the worker: no program is handed its addresses or keys",
                    "name a variable of your own",
                )
        return Program(command, tuple(names), _flag(place, table, "serve"))

    def _schema(self, place: Place, table: Mapping[str, Any], key: str) -> JsonSchema:
        given, where = table.get(key, {"type": "object"}), (*place, key)
        if key == "result" and table.get("approval"):
            return JsonSchema("an approval", APPROVAL)
        name = f"{key} schema" if key in table else "any object"
        if isinstance(given, str):
            name, given = given, _document(where, self.path.resolve().parent / given)
        if not isinstance(given, Mapping):
            raise _WrongError(where, "it is neither a file nor a table of JSON Schema")
        try:
            return JsonSchema(name, json.loads(json.dumps(given)))
        except TypeError:
            raise _WrongError(where, "it holds a value that JSON does not have") from None
        except ValueError as error:
            raise _WrongError(where, str(error), "write JSON Schema 2020-12") from None


# --- tables become declarations -------------------------------------------------------------------


def _declared(kind: type[Declaration], table: Any, place: Place) -> Any:
    """Build a declaration from its table, and those inside of it from theirs."""
    if not isinstance(table, Mapping):
        raise _WrongError(place, "it is not a table")
    _known(place, table, kind.model_fields)
    values: dict[str, Any] = {}
    for key, value in table.items():
        inner = _inner(kind.model_fields[key].annotation)
        if inner is not None:
            values[key] = _declared(inner, value, (*place, key))
        elif kind is WorkspaceSpec and key in {"pre", "post"}:
            values[key] = _guards(value, (*place, key))
        else:
            values[key] = value
    with _at(place):
        return kind(**values)


def _inner(annotation: Any) -> type[Declaration] | None:
    """Find the declaration that a field holds, if it holds one."""
    for each in (annotation, *typing.get_args(annotation)):
        if isinstance(each, type) and issubclass(each, Declaration):
            return each
    return None


def _guards(given: Any, place: Place) -> list[Guard]:
    if not isinstance(given, list):
        raise _WrongError(place, "it is not a list", 'write [{ require_file = "out.csv" }]')
    return [_guard(each, (*place, number)) for number, each in enumerate(given)]


def _guard(given: Any, place: Place) -> Guard:
    if not isinstance(given, Mapping) or len(given) != 1:
        raise _WrongError(
            place, "a guard is a table with one name", 'write { require_file = "out.csv" }'
        )
    ((name, value),) = given.items()
    _known(place, given, GUARDS)
    make = GUARDS[name]
    arguments, named = _arguments(make, value, place)
    try:
        with _at(place):
            inspect.signature(make).bind(*arguments, **named)
            return make(*arguments, **named)
    except TypeError as error:
        known = ", ".join(inspect.signature(make).parameters)
        raise _WrongError(place, f"{name}: {error}", f"it takes {known}") from None


def _arguments(
    make: Callable[..., Guard], value: Any, place: Place
) -> tuple[list[Any], dict[str, Any]]:
    """Read ``"path"``, ``["table", "column"]`` or ``{table = ..., columns = [...]}``."""
    if isinstance(value, list):
        return value, {}
    if not isinstance(value, Mapping):
        return [value], {}
    parameters = inspect.signature(make).parameters
    _known(place, value, parameters)
    several = next((p.name for p in parameters.values() if p.kind is p.VAR_POSITIONAL), None)
    if several is None or several not in value:
        return [], dict(value)
    # What stands before the columns is given by position, since they are.
    before = [p.name for p in parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    found = [value[name] for name in before if name in value]
    rest = {key: v for key, v in value.items() if key != several and key not in before}
    return [*found, *_texts((*place, several), value[several])], rest


class _at:  # noqa: N801 - reads as a word of a with statement
    """Turn what a declaration says of itself into what is wrong at a place."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, TaskDefinitionError):
            place = (*self._place, *error.argument.split(".")) if error.argument else self._place
            raise _WrongError(place, error.problem or error.message, error.remedy) from None


def _known(place: Place, table: Mapping[str, Any], known: Collection[str]) -> None:
    for key in table:
        if key not in known:
            near = difflib.get_close_matches(key, known, 1)
            remedy = f"did you mean {near[0]!r}?" if near else f"use {', '.join(known)}"
            raise _WrongError((*place, key), "it is unknown", remedy)


def _flag(place: Place, table: Mapping[str, Any], key: str) -> bool:
    given = table.get(key, False)
    if not isinstance(given, bool):
        raise _WrongError((*place, key), "it is neither true nor false")
    return given


def _texts(place: Place, given: Any) -> list[str]:
    texts = [] if not isinstance(given, list) else [t for t in given if isinstance(t, str)]
    if not isinstance(given, list) or len(texts) != len(given) or any("\0" in t for t in texts):
        raise _WrongError(place, "it is not a list of texts")
    return texts


def _document(place: Place, file: Path) -> object:
    try:
        return read_json(file.read_bytes())
    except OSError as error:
        raise _WrongError(
            place, f"{file} cannot be read: {error.strerror or error}", "check the path"
        ) from None
    except ValueError as error:
        raise _WrongError(place, f"{file} is not JSON: {error}") from None
