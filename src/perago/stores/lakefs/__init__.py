"""lakeFS, the production store."""

from perago.stores.lakefs.client import LakeFSClient
from perago.stores.lakefs.store import LakeFSStore

__all__ = ["LakeFSClient", "LakeFSStore"]
