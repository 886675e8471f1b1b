"""Workers that break the protocol, each in one place: ``python -m ... NAME TASK PREFIX``."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from tests.conform.native_worker import JSON, Attempt, RefusedError, Worker


class WithoutAttemptFence(Worker):
    """Publishes without asking whether the attempt still counts (F1)."""

    def fence(self, attempt: Attempt) -> None:
        pass


class Stacking(Worker):
    """Merges on top of an abandoned publication: A -> H -> C (P2)."""

    def reset(self, attempt: Attempt, to: str) -> str:
        body = {
            "message": "on top",
            "metadata": attempt.identity(),
            "squash_merge": True,
            "strategy": "source-wins",
        }
        path = f"{attempt.repository}/refs/{to}/merge/{attempt.workspace['branch']}"
        ref: str = self.lakefs.ask("POST", path, body)["reference"]
        return ref


class LeavingAbandoned(Worker):
    """Completes a no-op with A and leaves the abandoned publication on the target (N2)."""

    def reset(self, attempt: Attempt, to: str) -> str:
        return to if to == attempt.a else super().reset(attempt, to)


class WritingOnTarget(Worker):
    """Works on the target branch itself, where everybody sees it (S1)."""

    def confirm(
        self, attempt: Attempt, directory: Path, before: dict[str, str], after: dict[str, str]
    ) -> str:
        if before == after:
            return super().confirm(attempt, directory, before, after)
        self.fenced_head(attempt)
        return self.fill(attempt, attempt.workspace["branch"], directory, before, after)


class Overwriting(Worker):
    """Moves the target to its own commit, wherever it is (P3, P2a)."""

    def publish(self, attempt: Attempt, staged: str | None) -> str:
        self.fence(attempt)
        return self.reset(attempt, staged or attempt.a)


class NamingStagedCommit(Worker):
    """Completes with the staged commit in place of the published one (P5)."""

    def merge(self, attempt: Attempt, staged: str) -> str:
        super().merge(attempt, staged)
        return staged


class Refusing(Worker):
    """Takes an abandoned publication for a foreign one: no retry ever succeeds (P2)."""

    def reset(self, attempt: Attempt, to: str) -> str:
        raise RefusedError("there is something on the target")


class Roaming(Worker):
    """Uploads a file outside of its prefix (S2)."""

    def fill(
        self,
        attempt: Attempt,
        branch: str,
        directory: Path,
        before: dict[str, str],
        after: dict[str, str],
    ) -> str:
        where = f"{attempt.repository}/branches/{branch}/objects?path={quote('roaming.txt')}"
        self.lakefs.raw("POST", where, b"outside")
        return super().fill(attempt, branch, directory, before, after)


class Littering(Worker):
    """Leaves its staging branches (S4)."""

    def clean(self, attempt: Attempt) -> None:
        pass


class Talking(Worker):
    """Puts its key into the output (I7)."""

    def body(self, attempt: Attempt, directory: Path) -> JSON:

        said = os.environ["LAKECTL_CREDENTIALS_SECRET_ACCESS_KEY"]
        return {**super().body(attempt, directory), "debug": f"key={said}"}


class Silent(Worker):
    """Fails without a reason, and never for good (R1, T4)."""

    def report(self, attempt: Attempt, status: str, output: JSON, reason: str) -> None:
        del reason
        plain = "FAILED" if status.startswith("FAILED") else status
        super().report(attempt, plain, output, "")


class Anonymous(Worker):
    """Publishes without saying which attempt it was (S5)."""

    def merge(self, attempt: Attempt, staged: str) -> str:
        path = f"{attempt.repository}/refs/{staged}/merge/{attempt.workspace['branch']}"
        body = {"message": "done", "squash_merge": True}
        ref: str = self.lakefs.ask("POST", path, body)["reference"]
        return ref


BROKEN: Mapping[str, type[Worker]] = {
    kind.__name__: kind
    for kind in (
        WithoutAttemptFence,
        Stacking,
        LeavingAbandoned,
        WritingOnTarget,
        Overwriting,
        NamingStagedCommit,
        Refusing,
        Roaming,
        Littering,
        Talking,
        Silent,
        Anonymous,
    )
}


def main(arguments: list[str]) -> None:
    name, task, prefix = arguments
    BROKEN[name](task, prefix).serve()


if __name__ == "__main__":
    main(sys.argv[1:])
