"""Opens a store from settings, where the rest of the wiring is not wanted: in a Spark worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perago.errors import RuntimeConfigError
from perago.settings import Settings
from perago.transfer.cache import ContentCache

if TYPE_CHECKING:
    from perago.stores.lakefs.store import LakeFSStore


def lakefs_of(settings: Settings) -> LakeFSStore:
    """Open the configured lakeFS with this machine's shared cache."""
    if settings.lakefs is None:
        raise RuntimeConfigError(
            "lakeFS is not configured",
            remedy="set LAKECTL_SERVER_ENDPOINT_URL, LAKECTL_CREDENTIALS_ACCESS_KEY_ID and"
            " LAKECTL_CREDENTIALS_SECRET_ACCESS_KEY, in the environment or in .env",
        )
    try:
        from perago.stores.lakefs.manifests import Manifests  # noqa: PLC0415 - an optional extra
        from perago.stores.lakefs.store import LakeFSStore  # noqa: PLC0415 - as above
    except ModuleNotFoundError as error:
        raise RuntimeConfigError(
            f"lakeFS needs the package {error.name!r}", remedy="install 'perago[lakefs]'"
        ) from None
    cache = ContentCache(settings.cache_root, settings.cache_max_bytes)
    return LakeFSStore(settings.lakefs, cache, Manifests(settings.cache_root / "manifests.sqlite"))
