"""Results as text for a prompt, and as HTML for a notebook; nothing in them acts as markup."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Final

from perago.protocol.printable import printable
from perago.redaction import hide

if TYPE_CHECKING:
    from perago.notebook.result import RunResult, StepResult

_HEADINGS: Final = ("step", "task", "retry", "status", "seconds", "published")
_GOOD, _BAD = "#2e7d32", "#c62828"


def as_text(result: RunResult) -> str:
    """Write a run as a prompt shows it."""
    lines = [f"{_cell(result.workflow)}  {result.status}  run {result.id}"]
    if result.reason:
        lines.append(_cell(result.reason))
    lines.append(text_table(_HEADINGS, map(_row, result.steps)))
    lines += [f"{_cell(name)}: {_cell(value)}" for name, value in _outputs(result)]
    return "\n".join(lines)


def as_html(result: RunResult) -> str:
    """Write a run as a notebook shows it."""
    colour = _GOOD if result.completed else _BAD
    head = (
        f"<b>{escape(_cell(result.workflow))}</b> "
        f'<b style="color:{colour}">{escape(result.status)}</b> run {escape(result.id)}'
    )
    reason = f"<pre>{escape(_cell(result.reason))}</pre>" if result.reason else ""
    outputs = html_table(("output", "value"), _outputs(result)) if result.output else ""
    return f"<div>{head}{reason}{html_table(_HEADINGS, map(_row, result.steps))}{outputs}</div>"


def text_table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Write columns under their headings."""
    cells = [[*headings], *([_cell(value) for value in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in cells)
    return "\n".join(lines)


def html_table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Write a table."""
    head = "".join(f"<th>{escape(text)}</th>" for text in headings)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(_cell(value))}</td>' for value in row)}</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _row(step: StepResult) -> tuple[object, ...]:
    seconds, published = f"{step.seconds:.2f}", step.published[:12]
    return step.name, step.task, step.retry, step.status, seconds, published


def _outputs(result: RunResult) -> list[tuple[str, object]]:
    return [(name, value) for name, value in result.output.items() if name != "workspace"]


def _cell(value: object) -> str:
    return printable(hide(str(value)))
