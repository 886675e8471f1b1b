"""Keys and addresses in what a worker wrote, in every spelling that is known (V8, I7)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import urlsplit

from perago.redaction import Redactor, refuse


class LeakSearch:
    """Looks for the keys of both servers, and for where the servers are."""

    def __init__(self, keys: Iterable[str] = (), addresses: Iterable[str] = ()) -> None:
        known = [key for key in keys if key]
        self._redactor = Redactor(known)
        self._plain = [key for key in known if refuse(key)]
        places = (urlsplit(address).netloc.rpartition("@")[2] for address in addresses)
        # A bare name such as "conductor" is a word as well.
        self._addresses = [place for place in places if ":" in place or "." in place]

    def among(self, texts: Mapping[str, str]) -> Iterator[str]:
        """Say where something was found; what was found is not repeated."""
        for place, text in texts.items():
            if self._redactor.hide(text) != text or any(key in text for key in self._plain):
                yield f"{place} holds a key"
            if any(address in text for address in self._addresses):
                yield f"{place} holds the address of a server"
