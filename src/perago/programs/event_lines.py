"""The events of a program, one JSON object a line; a flood of them does no harm (Q6)."""

from __future__ import annotations

from typing import Any, Final

from perago.ports import ProgramCall
from perago.protocol.program import MetricEvent, ProgramEvent, event_of
from perago.protocol.reading import read_json

MOST_METRICS: Final = 1_000
"""So many numbers of one attempt are recorded."""
LONGEST_LINE: Final = 65_536


class EventReader:
    """Passes on the events of one attempt as they come; counts what it cannot take."""

    def __init__(self, call: ProgramCall) -> None:
        self._call = call
        self._rest = b""
        self._skipping = False
        self._bad = 0
        self._first_bad = ""
        self._metrics = 0

    def take(self, chunk: bytes) -> None:
        """Read the whole lines that are there now; a line that is too long is a bad one."""
        *lines, rest = (self._rest + chunk).split(b"\n")
        if self._skipping and lines:
            lines, self._skipping = lines[1:], False
        self._rest = b"" if self._skipping else rest
        if len(self._rest) > LONGEST_LINE:
            self._rest, self._skipping = b"", True
            self._count("it is too long")
        for line in filter(bytes.strip, lines):
            if (event := self._read(line)) is not None:
                self._call.tell(event)

    def _read(self, line: bytes) -> ProgramEvent | None:
        """Read a line; None for one that says nothing to us."""
        try:
            found = _object(line)
            if found.get("execution_id", self._call.execution_id) != self._call.execution_id:
                return None  # Of an attempt that is over: too late.
            event = event_of(found)
        except ValueError as error:
            self._count(str(error))
            return None
        if isinstance(event, MetricEvent):
            self._metrics += 1
            if self._metrics > MOST_METRICS:
                return None
        return event

    def _count(self, why: str) -> None:
        self._bad += 1
        self._first_bad = self._first_bad or why

    def close(self) -> None:
        """Say once what could not be taken."""
        if self._bad:
            self._call.warn(f"{self._bad} lines of events cannot be read", self._first_bad)
        if self._metrics > MOST_METRICS:
            left_out = self._metrics - MOST_METRICS
            self._call.warn(f"{left_out} metrics were left out", f"limit: {MOST_METRICS}")


def _object(line: bytes) -> dict[str, Any]:
    if len(line) > LONGEST_LINE:
        raise ValueError("it is too long")
    found = read_json(line)
    if not isinstance(found, dict):
        raise ValueError("it is not an object")
    return found
