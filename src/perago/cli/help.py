"""Help texts: an example first, commands in groups, headings that stand out on a terminal.

Typer's own decoration imports a Markdown parser and a highlighter, which takes longer than all
the rest of ``perago --help``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from perago.cli.examples import EXAMPLES
from perago.errors import UsageError

_OTHERS: Final = "Commands"
_MISTAKE: Final[type[Any]] = typer.BadParameter.__bases__[0]
"""What the parser raises for every mistake in the arguments."""


class StyledCommand(TyperCommand):
    """A command whose help has headings that stand out, and whose mistakes may be JSON."""

    def make_context(self, info_name: Any, args: list[str], *rest: Any, **extra: Any) -> Any:
        """Parse the arguments."""
        with _mistakes(args):
            return super().make_context(info_name, args, *rest, **extra)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help text."""
        _dress(formatter)
        _begin(ctx, formatter)
        super().format_help(ctx, formatter)


class Group(TyperGroup):
    """A group that shows its commands under the headings they were given."""

    def make_context(self, info_name: Any, args: list[str], *rest: Any, **extra: Any) -> Any:
        """Parse the arguments."""
        with _mistakes(args):
            return super().make_context(info_name, args, *rest, **extra)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that is named."""
        with _mistakes(args):
            return super().resolve_command(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help text."""
        _dress(formatter)
        _begin(ctx, formatter)
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


@contextmanager
def _mistakes(args: list[str]) -> Iterator[None]:
    """Let a mistake in the arguments be told as JSON, where JSON is wanted."""
    as_json = "--json" in args
    try:
        yield
    except _MISTAKE as error:
        if not as_json:
            raise
        raise UsageError(
            error.format_message().rstrip("."), remedy="--help lists what can be given"
        ) from error


def _begin(ctx: Any, formatter: Any) -> None:
    """Write the example of a command as a line of its own, so that it can be pasted."""
    # The program may run under another name (python -m perago); the example is the same.
    words = ctx.command_path.split()[len(ctx.find_root().command_path.split()) :]
    example = EXAMPLES.get(" ".join(["perago", *words]))
    if example is not None:
        shown = typer.style(example, fg="green") if _on_terminal() else example
        formatter.write(f"{shown}\n\n")


def _on_terminal() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def _dress(formatter: Any) -> None:
    """Make headings bold, on a terminal."""
    if not _on_terminal():
        return
    plain: Callable[[str], None] = formatter.write_heading
    formatter.write_heading = lambda heading: plain(typer.style(heading, bold=True, fg="cyan"))
