"""A task without a workspace that does next to nothing; 0.6.1 and this version both take it."""

from __future__ import annotations

from pydantic import BaseModel

from perago import task


class Numbers(BaseModel):
    """What comes in."""

    number: int


class Total(BaseModel):
    """What goes out."""

    total: int


@task(name="bench_free", owner_email="bench@example.com")
def free(params: Numbers) -> Total:
    """Add one."""
    return Total(total=params.number + 1)
