"""What an attempt changed: two manifests in, one change set out (S2)."""

from __future__ import annotations

from perago.protocol.values import ChangeSet, Manifest


def diff(before: Manifest, after: Manifest) -> ChangeSet:
    """Compare by content. An unknown checksum never counts as equal (G2)."""
    return ChangeSet(
        added=tuple(sorted(after.keys() - before.keys())),
        changed=tuple(
            sorted(
                path
                for path in after.keys() & before.keys()
                if after[path] != before[path] or not after[path].checksum
            )
        ),
        removed=tuple(sorted(before.keys() - after.keys())),
    )
