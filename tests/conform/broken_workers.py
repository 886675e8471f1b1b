"""Workers that break the protocol, each in one place: ``python -m ... NAME TASK PREFIX``."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from tests.conform import native_worker
from tests.conform.native_worker import JSON, Attempt, LostError, RefusedError, Worker


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


class FencingOnce(Worker):
    """Asks before it stages, and not again before it publishes (F1, step 10)."""

    def fence(self, attempt: Attempt) -> None:
        if attempt.phase == "first attempt fence":
            super().fence(attempt)


class LookingAtStatusOnly(Worker):
    """Takes the same task that was handed out again for its own attempt (F1)."""

    def fence(self, attempt: Attempt) -> None:
        if self.conductor.task(attempt.id)["status"] != "IN_PROGRESS":
            raise LostError("the attempt is over")


class ReportingWhatIsLost(Worker):
    """Reports that it lost the attempt, for a task that another execution has by now (F1)."""

    def fence(self, attempt: Attempt) -> None:
        try:
            super().fence(attempt)
        except LostError as error:
            raise RefusedError(str(error)) from None


class ResettingOverChanges(Worker):
    """Hard-resets the target without looking for uncommitted changes (P4)."""

    def reset(self, attempt: Attempt, to: str) -> str:
        self.lakefs.ask("PUT", f"{attempt.target}/hard_reset?ref={to}")
        return to


class NotAsking(Worker):
    """Replaces whatever stands behind A, except what was accepted (P2a)."""

    def ask_for_task_of(self, attempt: Attempt, head: JSON) -> None:
        found = self.conductor.task(head["metadata"].get("perago.task_id") or "none")
        if found and found["status"] == "COMPLETED":
            raise RefusedError("the head was accepted")


class BlindToHalves(Worker):
    """Takes an unfinished replacement for an ordinary head (K6)."""

    def head(self, attempt: Attempt) -> JSON:
        found = super().head(attempt)
        return {**found, "parents": found["parents"][:1]}


class LettingTheLeaseEnd(Worker):
    """Never extends its lease (W4)."""

    def extend(self, attempt: Attempt, over: threading.Event) -> None:
        over.wait()


class TalkingInBase64(Worker):
    """Puts the header of its requests into the output (I7)."""

    def body(self, attempt: Attempt, directory: Path) -> JSON:
        return {**super().body(attempt, directory), "debug": self.lakefs.headers["Authorization"]}


class TellingWhere(Worker):
    """Puts the address of a server into the output (I7)."""

    def body(self, attempt: Attempt, directory: Path) -> JSON:
        return {**super().body(attempt, directory), "debug": self.lakefs.url}


class Mislabelling(Worker):
    """Says wrong things about its commits that nobody asks for today (S5)."""

    def fill(
        self,
        attempt: Attempt,
        branch: str,
        directory: Path,
        before: dict[str, str],
        after: dict[str, str],
    ) -> str:
        attempt.task["taskDefName"] = "another"
        return super().fill(attempt, branch, directory, before, after)


class AddingToOutput(Worker):
    """Returns a third key (I3)."""

    def transact(self, attempt: Attempt) -> JSON:
        return {**super().transact(attempt), "took": 1.0}


class MovingTwice(Worker):
    """Replaces by two visible acts: back to A, then a merge (P2)."""

    def reset(self, attempt: Attempt, to: str) -> str:
        if to == attempt.a:
            return super().reset(attempt, to)
        super().reset(attempt, attempt.a)
        return self.merge(attempt, to)


class StagingNothing(Worker):
    """Makes a branch also when nothing was changed (N1)."""

    def confirm(
        self, attempt: Attempt, directory: Path, before: dict[str, str], after: dict[str, str]
    ) -> str:
        if before == after:
            name = {"name": attempt.staging, "source": attempt.a, "hidden": True}
            self.lakefs.ask("POST", f"{attempt.repository}/branches", name)
            self.clean(attempt)
        return super().confirm(attempt, directory, before, after)


class ReadingOnePage(Worker):
    """Takes the first page of a list for all of it (S2)."""

    def download(self, attempt: Attempt, directory: Path) -> dict[str, str]:
        found = super().download(attempt, directory)
        for path in [*found][1000:]:
            (directory / path).unlink()
            del found[path]
        return found


class NamingFreely(Worker):
    """Makes names of branches safe in a way of its own (S1)."""

    def stage(
        self, attempt: Attempt, directory: Path, before: dict[str, str], after: dict[str, str]
    ) -> str:
        attempt.staging = (
            f"perago-staging-{attempt.workflow}-step-seq-1-iteration-0-task-id-{attempt.id}"
            f"-retry-{attempt.retry}-exec-{attempt.execution}"
        )
        return super().stage(attempt, directory, before, after)


class Repeating(Worker):
    """Has one execution id for all (S1)."""

    def run(self, attempt: Attempt) -> None:
        attempt.staging = attempt.staging.replace(attempt.execution, "1")
        attempt.execution = "1"
        super().run(attempt)


class InPlainSight(Worker):
    """Makes staging branches that are not hidden (S1)."""

    def stage(
        self, attempt: Attempt, directory: Path, before: dict[str, str], after: dict[str, str]
    ) -> str:
        name = {"name": attempt.staging, "source": attempt.a}
        self.lakefs.ask("POST", f"{attempt.repository}/branches", name)
        return self.fill(attempt, attempt.staging, directory, before, after)


class RefusingTraces(Worker):
    """Takes the trace context of the engine for a key too many (I1)."""

    def validate(self, attempt: Attempt) -> None:
        if "traceparent" in attempt.task["inputData"]:
            raise RefusedError("there is a key too many")
        super().validate(attempt)


class TakingAnyInput(Worker):
    """Looks for what it needs in an input, and at nothing else (I2)."""

    def validate(self, attempt: Attempt) -> None:
        given = attempt.task["inputData"]
        if set(given) - {"traceparent", "tracestate"} != {"workspace", "params"}:
            raise RefusedError("there is a key too many")
        workspace = given["workspace"]
        attempt.workspace, attempt.params = workspace, given["params"]
        found = self.lakefs.ask("GET", f"{attempt.repository}/commits/{workspace['ref']}")
        if found["id"] != workspace["ref"]:
            raise RefusedError("ref is not a full commit id")


class TakingTwins(Worker):
    """Writes objects over each other that differ only in case (D2)."""

    def download(self, attempt: Attempt, directory: Path) -> dict[str, str]:
        kept = native_worker.fold
        native_worker.fold = str  # type: ignore[assignment]
        try:
            return super().download(attempt, directory)
        finally:
            native_worker.fold = kept


class Rambling(Worker):
    """Gives reasons of several lines (R1)."""

    def report(self, attempt: Attempt, status: str, output: JSON, reason: str) -> None:
        super().report(attempt, status, output, f"{reason}\nand more\n" if reason else "")


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
        FencingOnce,
        LookingAtStatusOnly,
        ReportingWhatIsLost,
        ResettingOverChanges,
        NotAsking,
        BlindToHalves,
        LettingTheLeaseEnd,
        TalkingInBase64,
        TellingWhere,
        Mislabelling,
        AddingToOutput,
        MovingTwice,
        StagingNothing,
        ReadingOnePage,
        NamingFreely,
        Repeating,
        InPlainSight,
        RefusingTraces,
        TakingAnyInput,
        TakingTwins,
        Rambling,
    )
}


def main(arguments: list[str]) -> None:
    name, task, prefix = arguments
    BROKEN[name](task, prefix).serve()


if __name__ == "__main__":
    main(sys.argv[1:])
