"""The one place that everything leaving this process goes through (V8).

A key is made known here when it comes into a process: with the settings that hold it, also when
they arrive from another process, and with a token when a server gives it. So it cannot be used
without being hidden. Whatever writes to the outside (the list is in ``tests/test_sinks.py``) asks
this module and nobody else.

Hidden are the key as it is, with characters escaped as URLs, JSON, HTML and Python do, in base64
at each of the three places it may have in a longer text, and in hexadecimal; and the signature of
any presigned address. What is hidden cannot be told from what is known by guessing: a key that
could be a word of the language is refused, because hiding it would destroy what people read.
"""

from __future__ import annotations

import base64
import html
import json
import re
import threading
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Final

from perago.protocol.outcome import Outcome

HIDDEN: Final = "[hidden]"
SHORTEST: Final = 6
"""A shorter key is in every second word, in one alignment of base64 if nowhere else."""
_LONG: Final = 20
"""From here on nothing is there by accident, whatever it is made of."""
_SMALL: Final = 10 ** (SHORTEST - 1)
_ALIGNMENTS: Final = 3
_MOST_TOKENS: Final = 8
_SIGNED: Final = re.compile(
    r"(X-(?:Amz|Goog)-(?:Signature|Credential|Security-Token)(?:=|%3D))[^&\s\"'<>\\]+"
)
"""The part of a presigned address that lets anybody in; whoever made it, it is a key."""
_BREAK: Final = r"(?:\r?\n|\\n)?"
_LINKED: Final = {"+": r"(?:[+-]|%2[Bb])", "/": r"(?:\\?/|_|%2[Ff])"}
_NEVER: Final = r"(?!)"
_LONG_TEXT: Final = 256
"""From here on it is faster to look for one trace after the other than for all of them at once."""
_TRACE: Final = 8
"""So many characters of a spelling are looked for before its pattern is."""


class Redactor:
    """Keys to hide.

    One compiled pattern looks for a few characters of each spelling, in one pass over the text;
    only where it finds some are the whole patterns of the keys compiled and applied.
    """

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._lock = threading.Lock()
        self._values: dict[str, None] = {}
        self._tokens: dict[str, None] = {}
        self._keys: tuple[Key, ...] = ()
        self._words: tuple[str, ...] = ()
        self._traces = re.compile(_NEVER)
        self.add(*values)

    def add(self, *values: str) -> None:
        """Make keys known; one that could be a word is left out, see :func:`refuse`."""
        self._learn(self._values, values)

    def add_token(self, value: str) -> None:
        """Make known what a server gave; it is replaced again and again, so old ones go."""
        self._learn(self._tokens, [value])

    def hide(self, text: str) -> str:
        """Return the text without the keys in it."""
        if len(text) < SHORTEST:
            return text
        if self._suspicious(text):
            for key in self._keys:
                text = key.pattern.sub(HIDDEN, text)
        if "X-" in text:
            text = _SIGNED.sub(rf"\1{HIDDEN}", text)
        return text

    def plain(self, value: object) -> object:
        """Return JSON values without the keys in them: in texts, names and numbers."""
        if isinstance(value, str):
            return self.hide(str(value))
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int | float):
            shown = str(value) if abs(value) >= _SMALL else ""
            return value if self.hide(shown) == shown else HIDDEN
        if isinstance(value, Mapping):
            return {
                self.hide(key) if isinstance(key, str) else key: self.plain(inner)
                for key, inner in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.plain(item) for item in value]
        return value

    def safe_cut(self, text: str, at: int) -> int:
        """Return where a text may be cut so that no key is cut with it: ``at`` or before."""
        if self._suspicious(text):
            for key in self._keys:
                for found in key.pattern.finditer(text):
                    if found.start() < at < found.end():
                        at = found.start()
        return at

    def _suspicious(self, text: str) -> bool:
        """Return whether something like a key is in a text; base64 may be broken into lines."""
        if "\n" in text or "\\n" in text:
            text += text.replace("\\n", "").replace("\r", "").replace("\n", "")
        if len(text) < _LONG_TEXT:
            return self._traces.search(text) is not None
        return any(trace in text for trace in self._words)

    def _learn(self, known: dict[str, None], values: Iterable[str]) -> None:
        with self._lock:
            fresh = [v for v in values if v and v not in known and refuse(v) is None]
            if not fresh:
                return
            known.update(dict.fromkeys(fresh))
            while known is self._tokens and len(known) > _MOST_TOKENS:
                del known[next(iter(known))]
            # The longest first: one key may be a part of another.
            values = sorted({*self._values, *self._tokens}, key=len, reverse=True)
            self._keys = tuple(map(Key, values))
            # A trace is made of letters and digits: as a pattern it matches itself.
            self._words = tuple(trace for key in self._keys for trace in key.traces())
            self._traces = re.compile("|".join(self._words))


class Key:
    """One key, and how it may be spelled."""

    def __init__(self, value: str) -> None:
        self._value = value
        self._data = value.encode(errors="surrogatepass")

    def traces(self) -> list[str]:
        """Return texts of which one is in every text that holds this key."""
        cores = [_core(self._data, lead) for lead in range(_ALIGNMENTS)]
        return [*map(_trace, (self._value, *cores, *self._in_hex()))]

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Match every spelling."""
        cores = [_core(self._data, lead) for lead in range(_ALIGNMENTS)]
        spelled = [
            "".join(map(_any_character, self._value)),
            *(_BREAK.join(_LINKED.get(each, each) for each in core) for core in cores),
            *self._in_hex(),
        ]
        return re.compile("|".join(spelled))

    def _in_hex(self) -> tuple[str, str]:
        return self._data.hex(), self._data.hex().upper()


def refuse(value: str) -> str | None:
    """Return why a key is not hidden, or None.

    Hiding ``postgres`` or ``2024`` would hide names of hosts and times with it, and ``perago`` all
    that we write. So a key needs a length, and must be neither a word nor a number.
    """
    if len(value) < SHORTEST:
        return f"has fewer than {SHORTEST} characters"
    if len(value) >= _LONG:
        return None
    bare = re.sub(r"[\s._-]", "", value)
    if bare.isdecimal():
        return "could be a number"
    if bare.isalpha() and (value.lower() == value or value[1:].lower() == value[1:]):
        return "could be a word"
    return None


# --- spellings --------------------------------------------------------------------------------


def _trace(spelling: str) -> str:
    """Return the longest run of characters that nobody escapes; empty, when there is none."""
    runs = re.findall("[A-Za-z0-9]{2,}", spelling)
    return max(runs, key=len, default="")[:_TRACE]


def _any_character(character: str) -> str:
    """Match a character as it is, or as a URL, JSON, HTML or Python may write it."""
    if character.isalnum() and character.isascii():
        return character
    in_url = "".join(f"%(?:25)?{byte:02X}" for byte in character.encode(errors="surrogatepass"))
    code = f"{ord(character):04x}"
    found = {
        rf"\\*{re.escape(character)}",
        f"(?i:{in_url})",
        rf"\\+(?i:u{code})",
        re.escape(json.dumps(character)[1:-1]),
        re.escape(html.escape(character)),
        re.escape(repr(character)[1:-1]),
    }
    if ord(character) <= 0xFF:  # noqa: PLR2004 - what fits into one byte
        found.add(rf"\\+(?i:x{code[2:]})")
    return f"(?:{'|'.join(sorted(found, key=len, reverse=True))})"


def _core(data: bytes, lead: int) -> str:
    """Return the base64 that these bytes alone decide, ``lead`` bytes after a boundary.

    Four bits of the first and of the last byte are not in it: they stand in characters that are
    also made of what is before and behind.
    """
    first, last = -(-8 * lead // 6), (8 * lead + 8 * len(data)) // 6
    return base64.b64encode(b"\0" * lead + data).decode()[first:last]


# --- what this process knows --------------------------------------------------------------------

KNOWN: Final = Redactor()
"""The keys of this process: there is one set, because there is one process that could leak them."""


def keep_secret(*values: str | None) -> None:
    """Make keys known; nothing that leaves this process shows them from now on."""
    KNOWN.add(*filter(None, values))


def hide(text: str) -> str:
    """Return a text without the keys of this process."""
    return KNOWN.hide(text)


def hidden(value: object) -> object:
    """Return JSON values without the keys of this process."""
    return KNOWN.plain(value)


def hidden_facts(facts: Mapping[str, object]) -> dict[str, object]:
    """Return the facts of an event, or the words of a commit, without the keys of this process.

    What is nested too deep to be looked through is left out, and its name told.
    """
    found: dict[str, object] = {}
    too_deep: list[str] = []
    for name, value in facts.items():
        try:
            found[KNOWN.hide(name)] = KNOWN.plain(value)
        except RecursionError:
            too_deep.append(KNOWN.hide(name))
    return {**found, "unwritable": too_deep} if too_deep else found


def hidden_words(words: Mapping[str, str]) -> dict[str, str]:
    """Return the metadata of a commit without the keys of this process."""
    return {KNOWN.hide(name): KNOWN.hide(value) for name, value in words.items()}


def hidden_output(output: Mapping[str, object]) -> dict[str, object]:
    """Return what an attempt answers without the keys of this process.

    The workspace goes back as it came: the engine gave it, and the next step reads it.
    """
    return {
        name: value if name == "workspace" else KNOWN.plain(value) for name, value in output.items()
    }


def hidden_outcome(outcome: Outcome) -> Outcome:
    """Return an outcome as it may be reported."""
    return replace(outcome, output=hidden_output(outcome.output), reason=hide(outcome.reason))
