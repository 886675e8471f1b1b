"""How a name from outside is shown to people: on one line, and as nothing but characters.

A key, path, branch or message may hold line ends, escapes of a terminal or characters that turn
the direction of writing. Printed as they are they forge lines and hide others.
"""

from __future__ import annotations

_LINE_END = "\n"
_LONG_NAME = 240
"""A reason has some 500 characters, and has to say more than a name."""


def printable(text: object) -> str:
    """Show a text on one line; what cannot be seen is escaped as in Python.

    Backslashes are doubled where something was escaped, so that two texts never look the same.
    """
    shown = str(text)
    if shown.isprintable():
        return shown
    return "".join(c if c.isprintable() and c != "\\" else _escaped(c) for c in shown)


def printable_lines(text: object, indent: str = "  ") -> str:
    """Show a text of several lines, such as a traceback: all but the first are set in."""
    return f"{_LINE_END}{indent}".join(map(printable, str(text).rstrip().split(_LINE_END)))


def brief(name: str) -> str:
    """Cut the middle out of a long name: what is said after it must still be read."""
    if len(name) <= _LONG_NAME:
        return name
    return f"{name[: _LONG_NAME // 2]}...{name[-_LONG_NAME // 4 :]}"


def size(count: float) -> str:
    """Show bytes the way people say them."""
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1000:  # noqa: PLR2004 - the step between the units
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()
