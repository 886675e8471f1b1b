"""Help texts: commands in groups, headings that stand out on a terminal.

Typer's own decoration imports a Markdown parser and a highlighter, which takes longer than all
the rest of ``perago --help``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

_OTHERS: Final = "Commands"


class Command(TyperCommand):
    """A command whose help has headings that stand out."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help text."""
        _dress(formatter)
        super().format_help(ctx, formatter)


class Group(TyperGroup):
    """A group that shows its commands under the headings they were given."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help text."""
        _dress(formatter)
        super().format_help(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands, in the order of their headings' first appearance."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is None or command.hidden:
                continue
            heading = getattr(command, "rich_help_panel", None)
            rows = sections.setdefault(heading if isinstance(heading, str) else _OTHERS, [])
            rows.append((name, command.get_short_help_str(2 * formatter.width)))
        widest = max((len(name) for rows in sections.values() for name, _ in rows), default=0)
        for heading, rows in sections.items():
            with formatter.section(heading):
                # A common width keeps the texts of all sections in one column.
                formatter.write_dl([(name.ljust(widest), text) for name, text in rows])


def _dress(formatter: Any) -> None:
    """Make headings bold, on a terminal."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return
    plain: Callable[[str], None] = formatter.write_heading
    formatter.write_heading = lambda heading: plain(typer.style(heading, bold=True, fg="cyan"))
