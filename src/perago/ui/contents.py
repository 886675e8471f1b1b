"""What kind of content a file has, and how it is written on a page. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from perago.ui.fitting import cut

ContentKind = Literal["image", "table", "text", "hex"]
IMAGES: Final = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
"""Nothing else is served as itself: an SVG or an HTML file could run a script (Z4)."""
SUFFIXES: Final = {".parquet": ".parquet", ".csv": ".csv", ".csv.gz": ".csv.gz", ".orc": ".orc"}
"""Names of tables. A copy is given the same ending, and nothing else of the name."""
_WEBP: Final = (b"RIFF", b"WEBP")
_LONGEST_LINE: Final = 1000
_HEX_WIDTH: Final = 16
_CONTEXT: Final = 3
_SHOWN_CONTROLS: Final = frozenset(b"\t\n\r\f\b\x1b")
"""Control characters that are found in texts; any other makes it none."""


def image_type(head: bytes) -> str | None:
    """Name the type of an image by its first bytes; None of anything else."""
    if head[:4] == _WEBP[0] and head[8:12] == _WEBP[1]:
        return "image/webp"
    return next((kind for mark, kind in IMAGES.items() if head.startswith(mark)), None)


def table_suffix(key: str) -> str | None:
    """Return the ending of a table's name; None where it has none."""
    return next((kept for suffix, kept in SUFFIXES.items() if key.lower().endswith(suffix)), None)


def kind_of(key: str, head: bytes, *, whole: bool) -> ContentKind:
    """Tell how a content is best shown, by its first bytes and its name."""
    if image_type(head):
        return "image"
    if head and table_suffix(key):
        return "table"
    return "text" if text_of(head, whole=whole) is not None else "hex"


def text_of(content: bytes, *, whole: bool) -> str | None:
    """Read a text; None when it is none. A character that was cut at the end is left out."""
    if any(byte < ord(" ") and byte not in _SHOWN_CONTROLS for byte in content):
        return None
    for missing in range(1 if whole else 4):
        try:
            return content[: len(content) - missing].decode("utf-8-sig")
        except UnicodeDecodeError:
            continue
    return None


def lines_of(text: str) -> list[str]:
    """Part a text into lines as editors do; tabs become spaces, long lines are cut."""
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[-1] == "":
        lines.pop()
    return [cut(line[: 2 * _LONGEST_LINE].expandtabs(8), _LONGEST_LINE) for line in lines]


def hex_lines(content: bytes) -> list[str]:
    """Write bytes as numbers, and beside them as characters."""
    return [
        f"{at:08x}  {part.hex(' '):<{3 * _HEX_WIDTH}} {_characters(part)}"
        for at in range(0, len(content), _HEX_WIDTH)
        if (part := content[at : at + _HEX_WIDTH])
    ]


def _characters(part: bytes) -> str:
    return "".join(chr(byte) if ord(" ") <= byte <= ord("~") else "." for byte in part)


@dataclass(frozen=True, slots=True)
class Beside:
    """A row of two texts beside each other; a number is None where there is no line."""

    kind: str
    """``same`` or ``gap``, or what :mod:`difflib` calls the change."""
    left: int | None = None
    old: str = ""
    right: int | None = None
    new: str = ""


def side_by_side(old: Sequence[str], new: Sequence[str]) -> Iterator[Beside]:
    """Put the changed lines of two texts beside each other, with a few unchanged around them."""
    groups = difflib.SequenceMatcher(None, old, new).get_grouped_opcodes(_CONTEXT)
    for number, group in enumerate(groups):
        if number:
            yield Beside("gap")
        for tag, a, b, c, d in group:
            for at in range(max(b - a, d - c)):
                left, right = a + at, c + at
                yield Beside(
                    "same" if tag == "equal" else tag,
                    *((left + 1, old[left]) if left < b else (None, "")),
                    *((right + 1, new[right]) if right < d else (None, "")),
                )
