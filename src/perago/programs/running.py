"""Running programs as bodies: one process for each attempt, or one that serves many (Q3 to Q8)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from perago.ports import ProgramCall
from perago.programs.event_lines import EventReader
from perago.programs.launching import LaunchEnd, Launchers
from perago.programs.scratch import ProgramScratch, environment
from perago.programs.serving import ProgramServer, meant
from perago.protocol.program import Program, ProgramEnd, result_of
from perago.tasks.cancellation import on_cancel

EVENTS = "events"


class ProgramRunner:
    """The programs of one executor."""

    def __init__(self) -> None:
        self._launchers = Launchers()
        self._servers: dict[Program, ProgramServer] = {}

    def run(self, program: Program, call: ProgramCall) -> dict[str, Any]:
        """Run one attempt; raises what its end means."""
        return self._serve(program, call) if program.serve else self._run(program, call)

    def _run(self, program: Program, call: ProgramCall) -> dict[str, Any]:
        scratch = ProgramScratch.made_in(call.directory)
        told = scratch.hand_over(call)
        with self._launchers.open([EVENTS]) as launcher:
            told["PERAGO_EVENTS"] = str(launcher.numbers[EVENTS])
            directory = call.workspace or scratch.home
            names = environment(scratch, program.env) | told
            launcher.start(program.command, names, str(directory))
            on_cancel(launcher.cancel)
            events = EventReader(call)
            launcher.listen({launcher.ends[EVENTS]: events.take})
            events.close()
            end, last_words = launcher.end, launcher.last_words
        return result_of(_ended(end, scratch.read_result, last_words, call))

    def _serve(self, program: Program, call: ProgramCall) -> dict[str, Any]:
        server = self._servers.pop(program, None)
        if server is not None and not (server.alive and server.silent):
            server.close()
            server = None
        if server is None:
            server = ProgramServer(program, call.enter, self._launchers)
        try:
            answer = server.attempt(call, ProgramScratch.made_in(call.directory))
        except BaseException:
            server.close()
            raise
        if server.clean(call, answer):
            self._servers[program] = server
        return meant(answer)

    def close(self) -> None:
        """End everything."""
        for server in self._servers.values():
            server.close()
        self._servers.clear()
        self._launchers.close()


def _ended(
    end: LaunchEnd | None, result: Callable[[], bytes | None], last_words: str, call: ProgramCall
) -> ProgramEnd:
    if end is None:
        raise RuntimeError("a program that was listened to has an end")
    if end.left:
        call.warn("the program left processes running", f"{end.left} were ended")
    return ProgramEnd(end.code, end.how, result(), last_words)
