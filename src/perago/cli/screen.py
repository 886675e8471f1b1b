"""What people see: colours only on a terminal, JSON for machines, one sentence for mistakes."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, cast

import typer

from perago.errors import PeragoError
from perago.protocol.printable import printable, printable_lines
from perago.redaction import hidden, hide
from perago.terminal import console

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from perago.protocol.values import ChangeSet

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
SHORT = 12
_GAP = 2
_NARROW = 20
_FOLDED = 12

# Markup is ours alone: in a text of somebody else the two characters that could act as markup are
# replaced until the markup has been read. Escaping with backslashes cannot do this, because a name
# may end in one, and because two names can make one tag together.
_KEPT = str.maketrans({"[": "\ue000", "\\": "\ue001"})
_BACK = str.maketrans({"\ue000": "[", "\ue001": "\\"})


def say(text: str = "") -> None:
    """Print to standard output, with rich markup where the text has it."""
    console().print(marked(text))


def note(text: str) -> None:
    """Print to standard error: warnings and remarks that are not the answer."""
    console(stderr=True).print(marked(text))


def marked(text: str) -> Text:
    """Read our markup; what came through :func:`plain` or :func:`block` has none.

    Keys are hidden, and whatever moves a cursor or turns the writing is escaped; line ends stay.
    """
    from rich.text import Text

    drawn = Text.from_markup("\n".join(map(_seen, hide(text).split("\n"))), emoji=False)
    drawn.plain = drawn.plain.translate(_BACK)
    return drawn


def _seen(line: str) -> str:
    """Escape what cannot be seen, and nothing else."""
    return "".join(c if c.isprintable() or ord(c) in _BACK else printable(c) for c in line)


def emit(value: object) -> None:
    """Print one JSON document."""
    document = json.dumps(hidden(value), indent=2, default=_other, ensure_ascii=False)
    sys.stdout.write(_in_json(document) + "\n")


def emit_keys(value: object) -> None:
    """Print one JSON document that holds keys on purpose: those of servers of our own."""
    sys.stdout.write(json.dumps(value, indent=2, default=str) + "\n")


def complain(error: PeragoError, *, as_json: bool) -> None:
    """Say one sentence about a mistake; never a traceback."""
    if as_json:
        problem = {
            "error": type(error).__name__,
            "message": error.message,
            "remedy": error.remedy,
        }
        document = json.dumps(hidden(problem), ensure_ascii=False)
        sys.stderr.write(_in_json(document) + "\n")
        return
    note(f"[bold red]error: [/bold red]{block(error)}")


def table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a plain table without boxes, easy on the eye and on grep; nothing in it is cut.

    Where a terminal is too narrow, the wide columns are folded. Where that does not help, or
    nobody looks, a row is one line, however long.
    """
    from rich.table import Table

    cells = [[_cell(value) for value in row] for row in rows]
    columns = [max(map(_width, column)) for column in zip(headings, *cells, strict=True)]
    drawn = Table(box=None, pad_edge=False, header_style="bold", padding=(0, _GAP, 0, 0))
    for heading, width in zip(headings, columns, strict=True):
        drawn.add_column(heading, min_width=min(width, _least(width)), overflow="fold")
    for row in cells:
        drawn.add_row(*row)
    gaps = _GAP * (len(columns) - 1)
    terminal = console(soft_wrap=False)
    if not terminal.is_terminal or sum(map(_least, columns)) + gaps > terminal.width:
        terminal = console(soft_wrap=False, width=sum(columns) + gaps)
    terminal.print(drawn)


def _least(width: int) -> int:
    """Return the width that a column keeps: ids, times and numbers are not folded."""
    return width if width <= _NARROW else _FOLDED


def _width(value: object) -> int:
    from rich.cells import cell_len

    return max(map(cell_len, str(value).split("\n")))


def plain(text: object) -> str:
    """Make any text safe to print: no markup, one line, no character that cannot be seen."""
    return printable(hide(str(text))).translate(_KEPT)


def block(text: object) -> str:
    """Make a text of several lines safe to print; they are set in, so that none is like ours."""
    return printable_lines(hide(str(text))).translate(_KEPT)


def _cell(value: object) -> RenderableType:
    """Take what draws itself as it is; a text stays in its row, whatever is in it."""
    if hasattr(value, "__rich_console__") or hasattr(value, "__rich__"):
        return cast("RenderableType", value)
    return marked(_one_line(value))


def _one_line(value: object) -> str:
    return _seen(hide(str(value)))


def _in_json(document: str) -> str:
    """Escape what JSON may hold as it is and a terminal must not get: it means the same."""
    return "\n".join(
        line if line.isprintable() else "".join(map(_json_character, line))
        for line in document.split("\n")
    )


def _json_character(character: str) -> str:
    if character.isprintable():
        return character
    return json.dumps(character)[1:-1]


def _other(value: object) -> str:
    return hide(str(value))


def short(ref: str | None) -> str:
    """Cut an id to what a person compares."""
    return plain(ref[:SHORT]) if ref else "-"


def when(at: float) -> str:
    """Show a time on the reader's own clock."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def changes(added: int, changed: int, removed: int) -> str:
    """Summarise a change set."""
    parts = [
        f"[green]+{added}[/green]" if added else "",
        f"[yellow]~{changed}[/yellow]" if changed else "",
        f"[red]-{removed}[/red]" if removed else "",
    ]
    return " ".join(filter(None, parts)) or "[dim]nothing[/dim]"


def say_steps(heading: str, steps: ChangeSet) -> None:
    """Print how much differs behind a heading, then the files, one a line."""
    total = changes(len(steps.added), len(steps.changed), len(steps.removed))
    say(f"{heading}  {total}")
    for sign, colour, paths in (
        ("+", "green", steps.added),
        ("~", "yellow", steps.changed),
        ("-", "red", steps.removed),
    ):
        for path in paths:
            say(f"[{colour}]{sign}[/{colour}] {plain(path)}")


def fields(pairs: Mapping[str, object]) -> None:
    """Print a short list of names and values."""
    width = max(map(len, pairs), default=0)
    for name, value in pairs.items():
        say(f"  [dim]{name:<{width}}[/dim]  {_one_line(value)}")
