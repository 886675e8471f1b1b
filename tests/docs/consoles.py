"""The consoles of a page: what a reader types, and what the page says will be shown.

A shown line is compared as a reader would: ids, times and durations differ from run to run, but one
id of the page stands for one id of the run, also where it is typed later. ``...`` is whatever
stands there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

PROMPT = "$ "
PDB = "(Pdb) "
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_HEX = r"(?<![\w.-])(?=[a-f]*\d)(?:[0-9a-f]{8}|[0-9a-f]{12}|[0-9a-f]{64})(?![\w.])"
"""Ids and their beginnings as they are shown: a word of letters alone is a word."""
_ID = re.compile(rf"{_UUID}|{_HEX}")
_VARIES = re.compile(
    rf"(?P<id>{_UUID}|{_HEX})"
    r"|(?P<date>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)"
    r"|(?P<duration>\b\d+(?:\.\d+)? (?:ms|s|min|h)\b)"
    r"|(?P<server>(?:localhost|127\.0\.0\.1):\d+)"
    r"|(?P<bar>━+)"
    r"|(?P<more>\.\.\.)"
    r"|(?P<space>\s+)"
)
_PATTERNS = {
    "date": r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d",
    "duration": r"\d+(?:\.\d+)? (?:ms|s|min|h)",
    "server": r"(?:localhost|127\.0\.0\.1):\d+",
    "bar": "━*",
    "more": ".*",
    "space": r"\s+",
}


@dataclass(frozen=True, slots=True)
class Typed:
    """One command of a console, what is typed into it, and the lines that it shows."""

    command: str
    shown: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()

    @property
    def in_background(self) -> bool:
        return self.command.rstrip().endswith("&")

    @property
    def may_fail(self) -> bool:
        """Tell whether the page shows a failure."""
        return any("FAILED" in line or line.startswith(("error", "✗")) for line in self.shown)


def commands(console: str) -> list[Typed]:
    """Take the text of a console apart; what stands before the first prompt is an excerpt."""
    found: list[Typed] = []
    for line in console.splitlines():
        if line.startswith(PROMPT):
            found.append(Typed(line.removeprefix(PROMPT)))
        elif found:
            last = found[-1]
            keys = (*last.keys, line.removeprefix(PDB)) if line.startswith(PDB) else last.keys
            found[-1] = Typed(last.command, (*last.shown, line), keys)
    return found


@dataclass
class Ids:
    """Which id of the run each id of the page stands for."""

    known: dict[str, str] = field(default_factory=dict)

    def real(self, shown: str) -> str | None:
        """Return the id of the run; None when the page has not shown it yet."""
        for page, run in self.known.items():
            if page.startswith(shown):
                return run[: len(shown)]
        return None

    def in_command(self, command: str) -> str:
        """Put the ids of the run into a command of the page."""

        def replaced(found: re.Match[str]) -> str:
            real = self.real(found[0])
            assert real, f"the page types {found[0]} before it has shown it: {command}"
            return real

        return _ID.sub(replaced, command)

    def agree(self, pairs: Sequence[tuple[str, str]]) -> bool:
        """Take pairs of the page's and the run's ids, if they contradict nothing known."""
        for page, run in pairs:
            expected = self.real(page)
            shorter = next((self.known[key] for key in self.known if page.startswith(key)), "")
            if expected not in {None, run} or not run.startswith(shorter):
                return False
        self.known.update(pairs)
        return True


def expression(line: str) -> tuple[re.Pattern[str], list[str]]:
    """Make a pattern of a shown line, and list the ids in it in the order of its groups."""
    parts: list[str] = []
    ids: list[str] = []
    end = 0
    for found in _VARIES.finditer(line.rstrip()):
        parts.append(re.escape(line[end : found.start()]))
        kind = found.lastgroup or ""
        if kind == "id":
            ids.append(found[0])
            parts.append(f"({_UUID})" if len(found[0]) == 36 else rf"([0-9a-f]{{{len(found[0])}}})")
        else:
            parts.append(_PATTERNS[kind])
        end = found.end()
    parts.append(re.escape(line.rstrip()[end:]))
    return re.compile("".join(parts) + r"\s*"), ids


def missing(shown: Sequence[str], output: Sequence[str], ids: Ids) -> str | None:
    """Return the first shown line that the output does not have, in its place; None for none."""
    waiting = iter(output)
    for line in shown:
        if line.strip() and line.strip() != "..." and not _is_found(line, waiting, ids):
            return line
    return None


def _is_found(line: str, waiting: Iterator[str], ids: Ids) -> bool:
    pattern, pages = expression(line)
    for candidate in waiting:
        found = pattern.fullmatch(candidate)
        if found and ids.agree(list(zip(pages, found.groups(), strict=True))):
            return True
    return False


def missing_from_screen(shown: Sequence[str], screen: Sequence[str], ids: Ids) -> str | None:
    """Do the same for a narrow screen, on which lines are wrapped between words."""
    text, end = "\n".join(screen), 0
    for line in shown:
        if not line.strip() or line.strip() == "...":
            continue
        pattern, pages = expression(line)
        across = re.compile(pattern.pattern, re.DOTALL)
        for found in across.finditer(text, end):
            if ids.agree(list(zip(pages, found.groups(), strict=True))):
                end = found.end()
                break
        else:
            return line
    return None
