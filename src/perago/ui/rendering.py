"""Templates become HTML here; every value is made printable, freed of keys and escaped."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import cache
from typing import Final
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from perago.protocol.printable import printable, printable_lines, size
from perago.redaction import hide

SHORT: Final = 12
_MINUTE, _HOUR = 60.0, 3600.0


def render(template: str, **values: object) -> str:
    """Fill in a template; a name that it needs and that is not given is a mistake of ours."""
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("perago.ui"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=shown,
    )
    made.filters |= {
        "when": when,
        "took": took,
        "short": short,
        "size": size,
        "block": block,
        "kind": kind,
        "segment": segment,
    }
    return made


def shown(value: object) -> object:
    """Make what a template writes safe to see; it is escaped afterwards."""
    if isinstance(value, Markup):
        return value
    return "" if value is None else printable(hide(str(value)))


def block(text: object) -> Markup:
    """Keep the lines of a text, and nothing else that could act."""
    return escape(printable_lines(hide(str(text))))


def when(at: float | None) -> Markup:
    """Show a time on the clock of this machine; the exact one is in the element."""
    if at is None:
        return Markup("-")
    exact = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
    local = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))
    return Markup('<time datetime="{}" title="{}">{}</time>').format(exact, exact, local)


def took(seconds: float | None) -> str:
    """Show a duration the way people say it."""
    if seconds is None:
        return "-"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < _MINUTE:
        return f"{seconds:.1f} s"
    if seconds < _HOUR:
        return f"{int(seconds // _MINUTE)} min {int(seconds % _MINUTE)} s"
    return f"{int(seconds // _HOUR)} h {int(seconds % _HOUR // _MINUTE)} min"


def short(ref: object) -> str:
    """Cut an id to what a person compares."""
    return str(ref)[:SHORT] if ref else "-"


def segment(text: object) -> str:
    """Write a name as one part of an address, whatever slashes are in it."""
    return quote(str(text), safe="")


_KINDS: Final = {
    "COMPLETED": "good",
    "COMPLETED_WITH_ERRORS": "warn",
    "RUNNING": "live",
    "IN_PROGRESS": "live",
    "SCHEDULED": "idle",
    "SKIPPED": "idle",
    "WAITING": "warn",
    "INTERRUPTED": "warn",
    "CANCELED": "idle",
    "TERMINATED": "idle",
}


def kind(status: str) -> str:
    """Name the class of a status, which the stylesheet colours."""
    return _KINDS.get(status.partition(" ")[0], "idle" if not status else "bad")
