"""Three-way merge: what ``theirs`` changed since the base, laid over ``ours``. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from perago.errors import MergeConflictError
from perago.stores.embedded.trees import Edit, KeyChange

_NAMED = 5


def merge_edits(ours: Iterable[KeyChange], theirs: Iterable[KeyChange]) -> Iterator[Edit]:
    """Yield what must be done to ours, or raise naming the first paths both sides changed.

    Both are differences from the same base. Sides that made the same change agree.
    """
    done = {change.key: change.after for change in ours}
    clashes: list[str] = []
    edits: list[Edit] = []
    for change in theirs:
        if change.key not in done:
            edits.append((change.key, change.after))
        elif done[change.key] != change.after:
            clashes.append(change.key)
    if clashes:
        named = ", ".join(ascii(key) for key in clashes[:_NAMED])
        more = f" and {len(clashes) - _NAMED} more" if len(clashes) > _NAMED else ""
        raise MergeConflictError(
            f"both sides changed {named}{more}",
            remedy="start again from the current head of the branch",
        )
    return iter(edits)
