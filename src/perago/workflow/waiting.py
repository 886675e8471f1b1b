"""How long a WAIT waits: ``duration`` or ``until``, as Conductor reads them. Pure.

A date without a zone is in the zone of the server, which a definition does not say, so one is asked
for here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

from perago.workflow.fields import Fields

DURATION: Final = "duration"
UNTIL: Final = "until"
_UNITS: Final = {
    "days": r"days?|d",
    "hours": r"hours?|hrs?|h",
    "minutes": r"minutes?|mins?|m",
    "seconds": r"seconds?|secs?|s",
}
_DURATION = re.compile(
    "".join(rf"\s*(?:(?P<{unit}>[0-9]{{1,9}})\s*(?:{words}))?" for unit, words in _UNITS.items())
    + r"\s*",
    re.IGNORECASE,
)
_UNTIL = re.compile(
    r"(?P<moment>\d{4}-\d{2}-\d{2} \d{2}:\d{2})"
    r" (?:UTC|GMT|(?:GMT)?(?P<sign>[+-])(?P<hours>\d{1,2}):?(?P<minutes>\d{2}))",
    re.ASCII,
)
_A_DURATION: Final = "a duration such as 1 hour 30 minutes, 90s or 2d"
_A_MOMENT: Final = (
    "a moment with its zone, such as 2030-12-31 23:59 UTC or 2030-12-31 23:59 GMT+02:00"
)


class WaitInputError(ValueError):
    """The input does not say how long to wait."""


def check_wait(fields: Fields) -> None:
    """Refuse, before a run, input that is wrong whatever the run brings."""
    for key in fields.data:
        if key not in {DURATION, UNTIL}:
            raise fields.refuse(key, "is not input of a WAIT task", f"remove {key}")
    if len(fields.data) != 1:
        why = "not both" if fields.data else "nothing here completes a WAIT from outside"
        raise fields.refuse("", f"must have duration or until: {why}", f"give {_A_DURATION}")
    ((key, value),) = fields.data.items()
    text = fields.text(key)
    if "${" not in text:
        try:
            due_at({key: value}, 0.0)
        except WaitInputError:
            raise fields.wrong(key, _A_DURATION if key == DURATION else _A_MOMENT) from None


def due_at(given: Mapping[str, object], since: float) -> float:
    """Return when a WAIT that began at ``since`` is over."""
    duration, until = given.get(DURATION), given.get(UNTIL)
    if until is not None:
        return _moment(str(until))
    found = _DURATION.fullmatch(str(duration))
    if duration is None or not str(duration).strip() or found is None:
        raise WaitInputError(f"duration {duration!r} is not {_A_DURATION}")
    parts = {unit: int(number) for unit, number in found.groupdict("0").items()}
    try:
        return since + timedelta(**parts).total_seconds()
    except OverflowError:
        raise WaitInputError(f"duration {duration!r} is longer than can be waited") from None


def _moment(text: str) -> float:
    wrong = WaitInputError(f"until {text!r} is not {_A_MOMENT}")
    found = _UNTIL.fullmatch(text)
    if found is None:
        raise wrong
    try:
        moment = datetime.strptime(found["moment"], "%Y-%m-%d %H:%M").replace(tzinfo=_zone(found))
    except ValueError:
        raise wrong from None
    return moment.timestamp()


def _zone(found: re.Match[str]) -> timezone:
    if found["sign"] is None:
        return UTC
    ahead = timedelta(hours=int(found["hours"]), minutes=int(found["minutes"]))
    return timezone(-ahead if found["sign"] == "-" else ahead)
