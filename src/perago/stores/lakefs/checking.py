"""Objects read again from the server, compared with their listing; no cache in between (X6)."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path

from perago.errors import CorruptObjectError, NotFoundError
from perago.ports import Damage, Fetch
from perago.protocol.values import Entry, ObjectInfo
from perago.stores.lakefs.transports import Transport
from perago.transfer.cache import ContentCache


class _Nowhere(ContentCache):
    """A cache that remembers nothing."""

    def __init__(self) -> None:
        """Have no place to keep anything."""

    def put(self, entry: Entry, content: bytes | memoryview) -> None:
        """Forget it."""

    def keep(self, entry: Entry, source: Path, opens: Callable[[], int] | None = None) -> None:
        """Forget it."""

    def also(self, entry: Entry, content: str) -> None:
        """Forget it."""


_NOWHERE = _Nowhere()


def check(transport: Transport, ref: str, info: ObjectInfo, scratch: Path) -> Damage | None:
    """Bring an object the way an attempt would, and throw it away."""
    to = scratch / uuid.uuid4().hex
    fetch = Fetch(info.key, Entry(info.size, info.checksum), to)
    try:
        transport.download(ref, fetch, lambda _: None, _NOWHERE)
    except NotFoundError as error:
        return Damage(info.key, "missing", error.message)
    except CorruptObjectError as error:
        return Damage(info.key, "corrupt", error.message)
    finally:
        to.unlink(missing_ok=True)
    return None
