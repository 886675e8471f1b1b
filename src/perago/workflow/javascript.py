"""Conditions in JavaScript, on a real engine: the extra ``javascript`` brings it.

Conductor hands a script objects of Java, which are not quite JavaScript: their methods are Java's,
and what lists keys or writes them as text differs. A script that does so fails here by name, so
that it never means something else than on a server.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, Final

from perago.workflow.fields import Fields

SECONDS: Final = 4
"""How long a script may take; Conductor's own limit."""
_MEMORY: Final = 64 * 1024 * 1024
_LARGEST, _SMALLEST = 1e7, 1e-3  # outside of these Java writes a number in its own way
_EXACT: Final = 2**53
_PRELUDE: Final = """
(() => {
  const refuse = (what) => { throw new Error(`${what} is not the same on a Conductor server`); };
  const java = new Set(('clear clone compute computeIfAbsent computeIfPresent containsKey'
    + ' containsValue entrySet equals firstEntry forEach get getOrDefault hashCode isEmpty keySet'
    + ' lastEntry merge pollFirstEntry pollLastEntry put putAll putFirst putIfAbsent putLast remove'
    + ' replace replaceAll reversed sequencedEntrySet sequencedKeySet sequencedValues size toString'
    + ' values constructor hasOwnProperty valueOf toLocaleString isPrototypeOf __proto__'
    + ' propertyIsEnumerable').split(' '));
  const methods = new Set(('at concat every filter find findIndex includes indexOf join map reduce'
    + ' slice some').split(' '));
  const fixed = {
    set: (_, key) => refuse(`writing ${String(key)}`),
    defineProperty: (_, key) => refuse(`writing ${String(key)}`),
    deleteProperty: (_, key) => refuse(`deleting ${String(key)}`),
    ownKeys: () => refuse('listing keys'),
    getOwnPropertyDescriptor: () => refuse('listing keys'),
  };
  const inMap = {
    ...fixed,
    has: (_, key) => refuse(`'${String(key)}' in an object`),
    get: (target, key) => {
      if (typeof key === 'symbol') return refuse('an object as text');
      if (java.has(key)) return refuse(`.${key} of an object`);
      return Object.hasOwn(target, key) ? target[key] : undefined;
    },
  };
  const inList = {
    ...fixed,
    get: (target, key) => {
      if (key === Symbol.toPrimitive) return refuse('a list as text');
      if (typeof key === 'symbol' || key === 'length' || /^[0-9]+$/.test(key)) return target[key];
      if (key === 'constructor' || methods.has(key)) return target[key];
      return key === 'toJSON' ? undefined : refuse(`.${key} of a list`);
    },
  };
  const guard = (value) => {
    if (Array.isArray(value)) return new Proxy(value.map(guard), inList);
    if (value === null || typeof value !== 'object') return value;
    const found = {};
    for (const [key, inner] of Object.entries(value)) found[key] = guard(inner);
    return new Proxy(found, inMap);
  };
  const given = JSON.parse(globalThis.$);
  globalThis.$ = guard(given);
})();
"""


class ScriptError(Exception):
    """A script failed, or cannot be run as on a server; the message is for people."""


def available() -> bool:
    """Return whether the engine is installed, without importing it."""
    return find_spec("quickjs") is not None


def check_script(fields: Fields, key: str) -> str:
    """Read a script; refuse it where there is no engine, or where it is not JavaScript."""
    script = fields.text(key)
    if not available():
        raise fields.refuse(
            key, "is JavaScript, which is not installed here", "install 'perago[javascript]'"
        )
    if "${" in script and "`" not in script:
        raise fields.refuse(
            key,
            "has ${...}, which is not filled in inside a script",
            "name it in inputParameters and write $.name",
        )
    try:
        context = _context()
        context.set("script", script)
        context.eval("new Function(script); true")
        # A function may have a ``return``, a script may not.
        context.eval("(0, eval)(`if (false) {\\n${script}\\n}`); true")
    except _errors() as error:
        raise fields.refuse(key, f"is not JavaScript: {_line(error)}", f"correct {key}") from None
    return script


def evaluate(script: str, given: Mapping[str, object]) -> object:
    """Run a script over ``$``; return a text, a number, a truth value, None, or something else."""
    _refuse_large(given)
    context = _context()
    try:
        context.set("$", json.dumps(given))
        context.eval(_PRELUDE)
        return context.eval(script)
    except _errors() as error:
        raise ScriptError(_line(error)) from None


def _refuse_large(value: object) -> None:
    """Refuse whole numbers that JavaScript would round; Java hands them over as objects."""
    match value:
        case int() if abs(value) > _EXACT:
            raise ScriptError(f"the number {value} is not the same on a Conductor server")
        case Mapping():
            for inner in value.values():
                _refuse_large(inner)
        case list():
            for inner in value:
                _refuse_large(inner)
        case _:
            pass


def is_true(result: object) -> bool:
    """Return what Conductor takes for true: true itself, and numbers above 0."""
    if isinstance(result, bool):
        return result
    return isinstance(result, int | float) and result > 0


def as_case(result: object) -> str:
    """Write the result of a script as the name of a case, as Java writes it."""
    match result:
        case str():
            return result
        case None:
            return "null"
        case bool():
            return str(result).lower()
        case int():
            return str(result)
        case float():
            return _number(result)
        case _:
            raise ScriptError("the result is neither a text nor a number, true, false or null")


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value.is_integer() and value and abs(value) < 2**63:
        return str(int(value))
    if not _SMALLEST <= abs(value) < _LARGEST:
        raise ScriptError(f"a case cannot be the number {value!r}: give a text")
    return repr(value)


def _context() -> Any:
    import quickjs  # noqa: PLC0415 - it needs the extra

    context = quickjs.Context()
    context.set_memory_limit(_MEMORY)
    context.set_time_limit(SECONDS)
    return context


def _errors() -> tuple[type[Exception], ...]:
    import quickjs  # noqa: PLC0415 - it needs the extra

    # The last ones are of values that Python has not, such as 5n or half a letter.
    return (quickjs.JSException, TypeError, ValueError, SystemError)


def _line(error: Exception) -> str:
    said = str(error).strip().partition("\n")[0]
    if said == "InternalError: interrupted":
        return f"it took more than {SECONDS} seconds"
    return said
