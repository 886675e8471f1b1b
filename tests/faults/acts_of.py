"""Which trees belong to the runs of ``acts.py``, so that any mixture of them shows."""

from __future__ import annotations

from collections.abc import Mapping

PARTS = 3


def given(step: str) -> dict[str, bytes]:
    """Say what a repository holds at first; no two steps share it, so that no cache helps."""
    return {
        "data/in.bin": f"given to {step};".encode() * 2000,
        "data/old.txt": b"to be removed",
        "other/kept.txt": b"kept",
    }


def after(base: Mapping[str, bytes], run: int, *, apart: bool = False) -> dict[str, bytes]:
    """Say what it holds when a run of a changing act is published."""
    end = f"-{run}.txt" if apart else ".txt"
    parts = {f"data/part{part}{end}": f"{run}:{part}".encode() for part in range(PARTS)}
    return {key: text for key, text in base.items() if key != "data/old.txt"} | parts
