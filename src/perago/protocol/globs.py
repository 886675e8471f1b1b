"""Glob patterns over ``/`` paths, with the meaning ``pathlib`` gives them.

``*``, ``?`` and ``[...]`` stay inside one segment; ``**`` is a whole segment and means any depth.
A bad pattern is refused where it is declared, not when the task runs.
"""

from __future__ import annotations

import fnmatch
import re
from functools import lru_cache

ANY_DEPTH = "**"
_Segments = tuple[re.Pattern[str] | None, ...]


def refuse_pattern(pattern: str) -> str | None:
    """Return what is wrong with a pattern, or None."""
    if not pattern:
        return "is empty"
    if "\\" in pattern or "\0" in pattern:
        return "contains a backslash or NUL; use '/' between segments"
    if pattern.startswith("/"):
        return "is absolute; write it relative to the workspace"
    for segment in pattern.split("/"):
        if segment in {"", ".", ".."}:
            return f"has the segment {segment!r}; name files below the workspace only"
        if ANY_DEPTH in segment and segment != ANY_DEPTH:
            return f"has '**' inside the segment {segment!r}; '**' must stand alone"
    return None


def matches(pattern: str, path: str) -> bool:
    """Return whether the whole path fits the pattern."""
    segments = _compile(pattern)
    last = len(segments)
    # The positions of the pattern that the path read so far can stand at.
    reached = _skip_depth({0}, segments)
    for name in path.split("/"):
        step: set[int] = set()
        for position in reached:
            if position == last:
                continue
            expected = segments[position]
            if expected is None:
                step.add(position)
                if position + 1 == last:
                    step.add(last)
            elif expected.match(name):
                step.add(position + 1)
        reached = _skip_depth(step, segments)
    return last in reached


def _skip_depth(reached: set[int], segments: _Segments) -> set[int]:
    """Let ``**`` stand for no segment at all, except as the last one (it then names a file)."""
    for position in sorted(reached):
        here = position
        while here < len(segments) - 1 and segments[here] is None:
            here += 1
            reached.add(here)
    return reached


@lru_cache(maxsize=512)
def _compile(pattern: str) -> _Segments:
    """Translate each segment; None stands for ``**``."""
    return tuple(
        None if segment == ANY_DEPTH else re.compile(fnmatch.translate(segment))
        for segment in pattern.split("/")
    )
