"""The pages, taken apart: code blocks with the files they belong to, and tables."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(
    r"^(?:<!-- not played: (?P<reason>[^\n]+) -->\n+)?"
    r"```(?P<language>[\w-]*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_FILE = re.compile(r"# (?P<name>\w+\.py)\n")


@dataclass(frozen=True, slots=True)
class Block:
    language: str
    text: str
    reason: str | None = None
    """Why a console of a guide is not played; None when it is."""


def text_of(page: str) -> str:
    return (ROOT / page).read_text()


def guides() -> list[str]:
    """List the pages that a newcomer types from: README, tutorial, how-tos."""
    how_tos = (ROOT / "docs" / "howto").glob("*.md")
    return ["README.md", "docs/tutorial.md", *sorted(f"docs/howto/{page.name}" for page in how_tos)]


def every_page() -> list[str]:
    """List all pages, the READMEs included; what Sphinx built is none."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    relative = sorted(str(path.relative_to(ROOT)) for path in found)
    return [page for page in relative if not page.startswith("docs/_build/")]


def fenced(page: str) -> list[Block]:
    """List the code blocks of a page, in order."""
    found = _FENCE.finditer(text_of(page))
    return [Block(match["language"], match["text"], match["reason"]) for match in found]


def blocks(page: str, language: str) -> list[str]:
    return [block.text for block in fenced(page) if block.language == language]


def modules(page: str) -> dict[str, str]:
    """Collect the Python files of a page.

    A block that begins with ``# name.py`` begins that file; the next ones go on with it. A page
    whose first block names no file begins with ``tasks.py``. Another version of a function that is
    there already is left out.
    """
    files: dict[str, str] = {}
    name = "tasks.py"
    for text in blocks(page, "python"):
        if named := _FILE.match(text):
            name = named["name"]
        again = re.match(r"def \w+\(", text)
        if again and again[0] in files.get(name, ""):
            continue
        files[name] = f"{files[name]}\n\n{text}" if name in files else text
    return files


def write(files: dict[str, str], directory: Path) -> None:
    for name, text in files.items():
        (directory / name).write_text(text)


def sections(page: str, level: str = "## ") -> dict[str, str]:
    """Split a page at its headings."""
    parts = re.split(rf"^{level}(.+)$", text_of(page), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def rows(text: str) -> list[list[str]]:
    """Read the rows of all tables in a text, headings included; ``\\|`` is no border."""
    found = []
    for line in text.splitlines():
        if line.startswith("|") and not set(line) <= set("|- "):
            cells = re.split(r"(?<!\\)\|", line.strip().strip("|"))
            found.append([cell.strip().replace("\\|", "|") for cell in cells])
    return found


def names_in(text: str) -> set[str]:
    """Return everything in backticks."""
    return set(re.findall(r"`([^`\n]+)`", text))
