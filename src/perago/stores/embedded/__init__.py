"""A versioned object store in one directory: content-addressed files and a SQLite catalogue.

    root/
      catalogue.sqlite   repositories, branches, commits, trees, uncommitted changes
      objects/ab/<hex>   file contents by SHA-256, read-only
      incoming/          files on their way into ``objects``
      uploads.lock       held shared while files come in, exclusively while garbage goes out

Everything visible changes in one SQLite transaction, so a process that dies at any instant leaves
the state before it or the state after it. The directory must be on a local file system.
"""

from __future__ import annotations

from perago.stores.embedded.collecting import CollectionResult
from perago.stores.embedded.refs import BranchInfo
from perago.stores.embedded.store import EmbeddedStore

__all__ = ["BranchInfo", "CollectionResult", "EmbeddedStore"]
