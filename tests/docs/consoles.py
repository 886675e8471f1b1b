"""The consoles of a page: what a reader types, and what the page says will be shown.

A shown line is compared as a reader would: ids, times and durations differ from run to run, but one
id of the page stands for one id of the run, also where it is typed later. ``...`` is whatever
stands there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

PROMPT = "$ "
MORE = "> "
"""A command that ends with a backslash goes on behind this."""
PDB = "(Pdb) "
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_HEX = r"(?<![\w.-])(?=[a-f]*\d)(?:[0-9a-f]{8}|[0-9a-f]{12}|[0-9a-f]{64})(?![\w.])"
"""Ids and their beginnings as they are shown: a word of letters alone is a word."""
_ID = re.compile(rf"{_UUID}|{_HEX}")
_VARIES = re.compile(
    rf"(?P<id>{_UUID}|{_HEX})"
    r"|(?P<date>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)"
    r"|(?P<clock>\b\d\d:\d\d:\d\d\b)"
    r"|(?P<pid>\bpid \d+\b)"
    r"|(?P<duration>\b\d+(?:\.\d+)? (?:ms|s|min|h)\b)"
    r"|(?P<server>(?:localhost|127\.0\.0\.1):\d+)"
    r"|(?P<bar>━+)"
    r"|(?P<more>\.\.\.)"
    r"|(?P<space>\s+)"
)
_PATTERNS = {
    "date": r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d",
    "clock": r"\d\d:\d\d:\d\d",
    "pid": r"pid \d+",
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
    def is_of_the_moment(self) -> bool:
        """Tell whether the command shows what is at this moment: a worker counts an attempt only
        after it has cleaned up, which is later than the engine shows its end.
        """
        return self.command == "perago status"

    @property
    def is_cut(self) -> bool:
        """Tell whether the command goes on in the next line."""
        return self.command.endswith("\\") and not self.shown

    @property
    def may_fail(self) -> bool:
        """Tell whether the page shows a failure, or a run that waits for a person."""
        ended = ("error", "✗", "waits for a person")
        return any("FAILED" in line or line.startswith(ended) for line in self.shown)


def commands(*consoles: str) -> list[Typed]:
    """Take the texts of consoles apart.

    What stands before the first prompt of a console is shown by the last command of the one before.
    """
    found: list[Typed] = []
    for line in "".join(consoles).splitlines():
        if line.startswith(PROMPT):
            found.append(Typed(line.removeprefix(PROMPT)))
        elif found and found[-1].is_cut and line.startswith(MORE):
            found[-1] = Typed(f"{found[-1].command}\n{line.removeprefix(MORE)}")
        elif found:
            last = found[-1]
            if line.startswith(PDB):
                found[-1] = Typed(last.command, last.shown, (*last.keys, line.removeprefix(PDB)))
            else:
                found[-1] = Typed(last.command, (*last.shown, line), last.keys)
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
            if any(_one(run, taken) and not _one(page, key) for key, taken in self.known.items()):
                return False  # Two ids of the page are two of the run.
        self.known.update(pairs)
        return True


def _one(one: str, other: str) -> bool:
    """Tell whether two ids are the same, or one is the beginning of the other."""
    return one.startswith(other) or other.startswith(one)


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
        found = pattern.fullmatch(candidate.removeprefix(PDB))
        if found and ids.agree(list(zip(pages, found.groups(), strict=True))):
            return True
    return False


FOLD: Final = r"(?:\s+|\s[^\n]{0,80}\n\s+)"
"""Between two words of a cell: a space, or the other columns of a row and the next line."""
WINDOW: Final = 800
"""Within how many characters the parts of one line stand on a narrow screen."""


def missing_from_screen(shown: Sequence[str], screen: Sequence[str], ids: Ids) -> str | None:
    """Return the first shown line that a narrow screen does not have.

    Lines are wrapped between words there. A live table stands below what was printed meanwhile, and
    its columns have another order, so the order counts in a pipe only.
    """
    text = "\n".join(screen)
    for line in shown:
        cells = re.split(r"\s{2,}| (?=\()", line.strip())
        if cells not in ([""], ["..."]) and not _is_on_screen(cells, text, ids):
            return line
    return None


def _is_on_screen(cells: Sequence[str], text: str, ids: Ids) -> bool:
    """Tell whether the first cell is there, and the others are near."""
    first, *others = (_across(cell) for cell in cells)
    for found in first[0].finditer(text):
        near = text[found.start() : found.end() + WINDOW]
        pairs = list(zip(first[1], found.groups(), strict=True))
        for pattern, pages in others:
            there = pattern.search(near)
            if there is None:
                break
            pairs += zip(pages, there.groups(), strict=True)
        else:
            if ids.agree(pairs):
                return True
    return False


def _across(cell: str) -> tuple[re.Pattern[str], list[str]]:
    pattern, pages = expression(cell)
    wrapped = pattern.pattern.removesuffix(r"\s*").replace(".*", f".{{0,{WINDOW}}}?")
    wrapped = wrapped.replace(_PATTERNS["space"], FOLD)
    begin = r"(?<![\w-])" if re.match(r"\w", cell) else ""
    end = r"(?![\w-])" if re.search(r"\w$", cell) else ""
    return re.compile(f"{begin}{wrapped}{end}", re.DOTALL), pages
