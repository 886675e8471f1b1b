"""The line of the author's code in which an error was raised, or through which it came."""

from __future__ import annotations

import traceback
from pathlib import Path

from perago.tasks.bodies import Body, FunctionBody

_INSTALLED = ("site-packages", "dist-packages")


def author_line(error: BaseException, body: Body) -> str:
    """Return ``file line n``, the innermost line beside the task's own; empty if there is none.

    Innermost of all is usually a library, where the author has nothing to correct.
    """
    code = getattr(body.function, "__code__", None) if isinstance(body, FunctionBody) else None
    if code is None:
        return ""
    home = Path(code.co_filename).parent
    found = ""
    for frame, number in traceback.walk_tb(error.__traceback__):
        file = Path(frame.f_code.co_filename)
        if str(file) == code.co_filename or _beside(file, home):
            found = f"{_shown(file)} line {number}"
    return found


def _beside(file: Path, home: Path) -> bool:
    """Return whether a file belongs to the same project, not to a library installed below it."""
    if not file.is_relative_to(home):
        return False
    return not set(file.relative_to(home).parts) & set(_INSTALLED)


def _shown(file: Path) -> str:
    """Name a file as seen from here; nobody else has to know where the project lies."""
    try:
        here = Path.cwd()
    except OSError:  # The body may have removed it.
        return file.name
    return str(file.relative_to(here)) if file.is_relative_to(here) else file.name
