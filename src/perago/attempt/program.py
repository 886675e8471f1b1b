"""What a program is told of its attempt, and where what it says goes (Q3, Q6)."""

from __future__ import annotations

from contextlib import suppress

from perago.attempt.progress import AttemptProgress
from perago.attempt.services import AttemptServices
from perago.errors import PeragoError
from perago.ports import AttemptDir, ProgramCall, ProgramHome
from perago.protocol import events
from perago.protocol.program import program_facts
from perago.protocol.values import Claim


def program_call(
    claim: Claim,
    services: AttemptServices,
    progress: AttemptProgress,
    attempt_dir: AttemptDir | None,
) -> ProgramCall:
    """Describe an attempt to its program: it is handed no key and no address."""
    if attempt_dir is None:
        raise RuntimeError("a program has an attempt directory, with a workspace or without one")

    def warn(text: str, why: str) -> None:
        progress.event(events.Warned(text, why))

    def enter() -> ProgramHome:
        made = services.attempt_dirs.enter(claim.attempt, f"{claim.execution_id}-program")

        def leave() -> None:
            with suppress(PeragoError):
                services.attempt_dirs.leave(made, services.cleanup_seconds)

        return ProgramHome(made.path, leave)

    return ProgramCall(
        execution_id=claim.execution_id,
        directory=attempt_dir.path,
        attempt=program_facts(claim, services.clock.now() + progress.left()),
        tell=progress.told,
        warn=warn,
        enter=enter,
    )
