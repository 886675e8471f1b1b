"""What travels between an executor process and its owner."""

from __future__ import annotations

from dataclasses import dataclass

from perago.errors import PeragoError
from perago.protocol.outcome import Outcome

# --- from child to parent -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ready:
    """The work is made; claims may come."""


@dataclass(frozen=True, slots=True)
class Unready:
    """The work could not be made."""

    error: PeragoError
    detail: str


@dataclass(frozen=True, slots=True)
class Said:
    """Messages of the work, each pickled where it was said."""

    execution_id: str
    bodies: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Alive:
    """A claim is being run, and Python still gets its turns."""


@dataclass(frozen=True, slots=True)
class Done:
    """A claim has been run."""

    execution_id: str
    outcome: Outcome


# --- from parent to child: a Claim, None to end, or this ------------------------------------------


@dataclass(frozen=True, slots=True)
class Cancel:
    """Nobody wants this execution any more."""

    execution_id: str
