"""What a worker's own watchers hide, and how much of one value they keep (V8)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from perago.redaction import HIDDEN, KNOWN, Redactor
from perago.settings import Settings

__all__ = ["HIDDEN", "Secrets"]
_LONGEST_TEXT: Final = 64_000
_LONGEST_LIST: Final = 50


class Secrets:
    """Hides the keys of this process, and some more where they are given."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._more = Redactor(values)

    @classmethod
    def of(cls, settings: Settings) -> Secrets:
        """Hide what this worker knows that others must not: its settings made it known."""
        del settings
        return cls()

    def hide(self, text: str) -> str:
        """Return the text without the secrets in it; one without end is cut, visibly."""
        text = self._more.hide(KNOWN.hide(text))
        if len(text) > _LONGEST_TEXT:
            return f"{text[:_LONGEST_TEXT]}… {len(text) - _LONGEST_TEXT} more characters"
        return text

    def plain(self, value: object) -> object:
        """Turn a fact of an event into JSON values without secrets; long lists are cut."""
        if isinstance(value, str):
            return self.hide(str(value))
        if value is None or isinstance(value, bool | int | float):
            return KNOWN.plain(value)
        if isinstance(value, Mapping):
            return {self.hide(str(key)): self.plain(inner) for key, inner in value.items()}
        if isinstance(value, Iterable):
            items = list(value)
            kept = [self.plain(item) for item in items[:_LONGEST_LIST]]
            return [*kept, f"… {len(items) - len(kept)} more"] if len(items) > len(kept) else kept
        return self.hide(str(value))
