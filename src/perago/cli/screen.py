"""What people see: colours only on a terminal, JSON for machines, one sentence for mistakes."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from perago.errors import PeragoError

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
SHORT = 12


def say(text: object = "") -> None:
    """Print to standard output, with rich markup where the text has it."""
    from rich.console import Console

    Console(soft_wrap=True, highlight=False).print(text)


def note(text: str) -> None:
    """Print to standard error: warnings and remarks that are not the answer."""
    from rich.console import Console

    Console(stderr=True, soft_wrap=True, highlight=False).print(text)


def emit(value: object) -> None:
    """Print one JSON document."""
    sys.stdout.write(json.dumps(value, indent=2, default=str, ensure_ascii=False) + "\n")


def complain(error: PeragoError, *, as_json: bool) -> None:
    """Say one sentence about a mistake; never a traceback."""
    if as_json:
        problem = {
            "error": type(error).__name__,
            "message": error.message,
            "remedy": error.remedy,
        }
        sys.stderr.write(json.dumps(problem, ensure_ascii=False) + "\n")
        return
    from rich.console import Console
    from rich.text import Text

    sentence = Text.assemble(("error: ", "bold red"), str(error))
    Console(stderr=True, soft_wrap=True, highlight=False).print(sentence)


def table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a plain table without boxes, easy on the eye and on grep."""
    from rich.console import Console
    from rich.table import Table

    drawn = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading in headings:
        drawn.add_column(heading, no_wrap=heading != "what changed")
    for row in rows:
        drawn.add_row(*(cell if hasattr(cell, "__rich__") else str(cell) for cell in row))
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=200)
    console.print(drawn)


def plain(text: object) -> str:
    """Make any text safe to print: no markup, no control characters but line ends."""
    from rich.markup import escape

    lines = str(text).split("\n")
    return "\n".join(escape(line if line.isprintable() else ascii(line)[1:-1]) for line in lines)


def short(ref: str | None) -> str:
    """Cut an id to what a person compares."""
    return ref[:SHORT] if ref else "-"


def when(at: float) -> str:
    """Show a time on the reader's own clock."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def size(count: float) -> str:
    """Show bytes the way people say them."""
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1000:  # noqa: PLR2004 - the step between the units
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def changes(added: int, changed: int, removed: int) -> str:
    """Summarise a change set."""
    parts = [
        f"[green]+{added}[/green]" if added else "",
        f"[yellow]~{changed}[/yellow]" if changed else "",
        f"[red]-{removed}[/red]" if removed else "",
    ]
    return " ".join(filter(None, parts)) or "[dim]nothing[/dim]"


def fields(pairs: Mapping[str, object]) -> None:
    """Print a short list of names and values."""
    width = max(map(len, pairs), default=0)
    for name, value in pairs.items():
        say(f"  [dim]{name:<{width}}[/dim]  {value}")
