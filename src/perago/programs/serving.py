"""A program that is started once and then does one attempt after the other (Q8)."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping
from typing import Any

from perago.errors import TaskFailed
from perago.ports import ProgramCall, ProgramHome
from perago.process.memory import children_of
from perago.programs.event_lines import EventReader
from perago.programs.launching import GRACE_SECONDS, Launchers, Outgoing
from perago.programs.scratch import MOST_RESULT_BYTES, ProgramScratch, environment
from perago.protocol.program import Program, failed_as
from perago.protocol.reading import read_json
from perago.tasks.cancellation import on_cancel

ATTEMPTS, ANSWERS, EVENTS = "attempts<", "answers", "events"
_CLOSED_SECONDS = 1.0
_KEYS = frozenset({"execution_id", "result", "error", "terminal", "last"})


class ProgramServer:
    """One program, one attempt at a time; what it answers carries the id of the execution."""

    def __init__(
        self, program: Program, enter: Callable[[], ProgramHome], launchers: Launchers
    ) -> None:
        self._home: ProgramHome | None = None
        self._launcher = launchers.open([ATTEMPTS, ANSWERS, EVENTS])
        try:
            self._home = enter()
            self._start(program, ProgramScratch.made_in(self._home.path))
        except BaseException:
            self.close()
            raise

    def _start(self, program: Program, scratch: ProgramScratch) -> None:
        numbers = self._launcher.numbers
        told = {
            "PERAGO_ATTEMPTS": str(numbers[ATTEMPTS]),
            "PERAGO_ANSWERS": str(numbers[ANSWERS]),
            "PERAGO_EVENTS": str(numbers[EVENTS]),
        }
        names = environment(scratch, program.env) | told
        self._launcher.start(program.command, names, str(scratch.home))

    @property
    def alive(self) -> bool:
        """Return whether it can take an attempt."""
        return self._launcher.alive

    def attempt(self, call: ProgramCall, scratch: ProgramScratch) -> Mapping[str, Any]:
        """Have one attempt done; an error says that the program is of no more use."""
        conversation, events = _Conversation(call), EventReader(call)
        ends = self._launcher.ends
        sending = Outgoing(ends[ATTEMPTS])
        sending.add(_asked(call, scratch))

        def until() -> bool:
            if conversation.just_cancelled():
                sending.add({"cancel": call.execution_id})
            if conversation.cancelled_for(GRACE_SECONDS):
                self._launcher.cancel()
            conversation.refuse_closed()
            return conversation.answer is not None

        on_cancel(conversation.cancel)
        heard = {ends[ANSWERS]: conversation.answered, ends[EVENTS]: events.take}
        self._launcher.listen(heard, until, sending)
        events.close()
        if conversation.answer is None:
            end, words = self._launcher.end, self._launcher.last_words
            how = end.how if end else "was lost"
            raise TaskFailed(
                f"the program {how} before it answered" + (f": {words}" if words else "")
            )
        return conversation.answer

    @property
    def silent(self) -> bool:
        """Return whether it said nothing more after its last answer."""
        try:
            return not os.read(self._launcher.ends[ANSWERS], 1)
        except OSError:
            return True

    def clean(self, call: ProgramCall, answer: Mapping[str, Any]) -> bool:
        """Return whether nothing of the attempt is left; else end the program (Q7)."""
        left = self._children()
        if left:
            call.warn("the program left processes running", "it was ended with them")
        if left or answer.get("last") is True:
            self.close()
            return False
        return True

    def close(self) -> None:
        """End it with all it started, and remove what it had for itself."""
        try:
            self._launcher.close()
        finally:
            if self._home is not None:
                self._home.leave()

    def _children(self) -> set[int]:
        """Find the processes that the program has left, as its own or as the launcher's."""
        pid, launcher = self._launcher.pid, self._launcher.process_id
        if pid is None or launcher is None:
            return set()
        return {*children_of(pid), *children_of(launcher)} - {pid}


class _Conversation:
    """What is said about one attempt."""

    def __init__(self, call: ProgramCall) -> None:
        self.answer: Mapping[str, Any] | None = None
        self._call = call
        self._rest = b""
        self._closed_at = math.inf
        self._cancelled = False
        self._cancelled_at = math.inf

    def cancel(self) -> None:
        """Take note that the attempt was lost; from any thread."""
        self._cancelled = True

    def just_cancelled(self) -> bool:
        """Return once whether the attempt was lost."""
        if not self._cancelled or self._cancelled_at < math.inf:
            return False
        self._cancelled_at = time.monotonic()
        return True

    def cancelled_for(self, seconds: float) -> bool:
        """Return whether the program has known it for so long."""
        return time.monotonic() - self._cancelled_at > seconds

    def refuse_closed(self) -> None:
        """Give up on a program that cannot answer any more; one that ends tells why by itself."""
        if self.answer is None and time.monotonic() - self._closed_at > _CLOSED_SECONDS:
            raise _misspoken("cannot be heard: it closed PERAGO_ANSWERS before it answered")

    def answered(self, chunk: bytes) -> None:
        """Take the answer; whatever is none of this attempt ends the program."""
        if not chunk:
            self._closed_at = time.monotonic()
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > MOST_RESULT_BYTES:
            raise _misspoken(f"has more than {MOST_RESULT_BYTES:,} bytes")
        for line in filter(bytes.strip, lines):
            try:
                found = read_json(line)
            except ValueError as error:
                raise _misspoken(f"is not JSON: {error}") from None
            if not isinstance(found, dict) or self.answer is not None:
                raise _misspoken("is not one object for each attempt")
            if found.get("execution_id") != self._call.execution_id:
                raise _misspoken("does not carry the execution_id of the attempt")
            self.answer = found


def _asked(call: ProgramCall, scratch: ProgramScratch) -> dict[str, object]:
    return {
        "execution_id": call.execution_id,
        "workspace": None if call.workspace is None else str(call.workspace),
        "params": call.params,
        "attempt": call.attempt,
        "tmp": str(scratch.temporary),
    }


def meant(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Read an answer as a result, or as a failure in the words of the program."""
    if unknown := sorted(answer.keys() - _KEYS):
        raise _misspoken(f"has {', '.join(map(repr, unknown))}, which is unknown")
    error = answer.get("error")
    if isinstance(error, str):
        raise failed_as(error, terminal=answer.get("terminal") is True)
    if error is not None:
        raise _misspoken("has an error that is not a text")
    result = answer.get("result", {})
    if not isinstance(result, dict):
        raise _misspoken("has a result that is not an object")
    return result


def _misspoken(problem: str) -> TaskFailed:
    return TaskFailed(
        f"what the program answered {problem}",
        remedy='answer each attempt with one line: {"execution_id": ..., "result": {...}}',
    )
