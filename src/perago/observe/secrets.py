"""What must never be written anywhere: the worker's own credentials (V8)."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping
from typing import Final

from perago.settings import Settings

HIDDEN: Final = "[hidden]"
_SHORTEST: Final = 4
"""A shorter value is in every second word; hiding it would hide the log."""
_LONGEST_TEXT: Final = 64_000
_LONGEST_LIST: Final = 50


class Secrets:
    """Texts to hide, also as they look in a URL or in JSON."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        kept = sorted({value for value in values if len(value) >= _SHORTEST}, key=len)
        patterns = [_any_spelling(value) for value in reversed(kept)]
        self._found = re.compile("|".join(patterns)) if patterns else None

    @classmethod
    def of(cls, settings: Settings, environ: Mapping[str, str]) -> Secrets:
        """Collect what this worker knows that others must not."""
        found: list[str] = []
        if settings.lakefs:
            found += _pair(settings.lakefs.access_key_id, settings.lakefs.secret_access_key)
        if settings.conductor:
            conductor = settings.conductor
            found += _pair(conductor.auth_key or "", conductor.auth_secret or "")
        if settings.ledger:
            found += settings.ledger.secrets
        for name, value in environ.items():
            if name.startswith("OTEL_EXPORTER_OTLP") and name.endswith("HEADERS"):
                found += [pair.partition("=")[2].strip() for pair in value.split(",")]
        return cls(found)

    def hide(self, text: str) -> str:
        """Return the text without the secrets in it; one without end is cut, visibly."""
        if self._found is not None:
            text = self._found.sub(HIDDEN, text)
        if len(text) > _LONGEST_TEXT:
            return f"{text[:_LONGEST_TEXT]}… {len(text) - _LONGEST_TEXT} more characters"
        return text

    def plain(self, value: object) -> object:
        """Turn a fact of an event into JSON values without secrets; long lists are cut."""
        if isinstance(value, str):
            return self.hide(str(value))
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, Mapping):
            return {self.hide(str(key)): self.plain(inner) for key, inner in value.items()}
        if isinstance(value, Iterable):
            items = list(value)
            kept = [self.plain(item) for item in items[:_LONGEST_LIST]]
            return [*kept, f"… {len(items) - len(kept)} more"] if len(items) > len(kept) else kept
        return self.hide(str(value))


def _pair(key: str, secret: str) -> list[str]:
    """Return both, and what they look like in a header of basic authentication."""
    return [key, secret, base64.b64encode(f"{key}:{secret}".encode()).decode()]


def _any_spelling(value: str) -> str:
    """Match a value with any of its characters written as a URL or JSON may write them."""
    return "".join(_any_character(character) for character in value)


def _any_character(character: str) -> str:
    if character.isalnum() and character.isascii():
        return character
    in_url = "".join(f"%{byte:02X}" for byte in character.encode())
    spellings = {character, in_url, in_url.lower(), json.dumps(character)[1:-1]}
    return f"(?:{'|'.join(map(re.escape, sorted(spellings)))})"
