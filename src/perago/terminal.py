"""The terminal: the only place where consoles are made.

A console of rich reads text for pictures (``:fire:``), markup (``[red]``), numbers and links. What
a user named is none of these. Every console made here takes text as it is; what is to be coloured
is a :class:`rich.text.Text`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import TextColumn


def console(*, stderr: bool = False, width: int | None = None, soft_wrap: bool = True) -> Console:
    """Make a console that prints a text as it is."""
    from rich.console import Console  # noqa: PLC0415 - slow to import, needed only to print

    return Console(
        stderr=stderr,
        width=width,
        soft_wrap=soft_wrap,
        highlight=False,
        emoji=False,
        markup=False,
    )


def text_column(template: str = "{task.description}", style: str = "none") -> TextColumn:
    """Make a column of a progress bar that shows its text as it is."""
    from rich.progress import TextColumn  # noqa: PLC0415 - slow to import

    return TextColumn(template, style=style, markup=False)
