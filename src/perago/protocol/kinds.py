"""The kinds of fence (section 9); apart, because an author names them before anything else."""

from __future__ import annotations

from typing import Literal

FenceKind = Literal["head", "lineage", "hard"]
