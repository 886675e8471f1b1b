"""What a program is told of its attempt, and where what it says goes (Q3, Q6)."""

from __future__ import annotations

from pathlib import Path

from perago.attempt.progress import AttemptProgress
from perago.attempt.services import AttemptServices
from perago.ports import AttemptDir, ProgramCall
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

    def enter() -> Path:
        name = f"{claim.execution_id}-program"
        return services.attempt_dirs.enter(claim.attempt, name).path

    return ProgramCall(
        execution_id=claim.execution_id,
        directory=attempt_dir.path,
        attempt=program_facts(claim, services.clock.now() + progress.left()),
        tell=progress.told,
        warn=warn,
        enter=enter,
    )
