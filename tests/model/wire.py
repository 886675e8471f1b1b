"""What an attempt speaks to in the model: a store and an engine that answer from a list.

The attempt is run from its start with the answers it has had; at the first question without an
answer it stops. So where it stands is those answers, and a run costs nothing but its own code.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast
from urllib.parse import unquote

from perago.attempt.progress import AttemptProgress
from perago.ports import Advance, Publication, Published, Put
from perago.protocol.adoption import Posting
from perago.protocol.diff import diff
from perago.protocol.kinds import FenceKind
from perago.protocol.outcome import Outcome
from perago.protocol.publication import Merge
from perago.protocol.recovery import wanted_by
from perago.protocol.values import (
    Attempt,
    AttemptSnapshot,
    ChangeSet,
    Commit,
    Entry,
    ObjectInfo,
    Phase,
    StagedWorkspace,
    Staging,
    Status,
    WorkspaceInput,
)
from perago.stores.lakefs.client import Ask, LakeFSClient
from perago.stores.lakefs.errors import translate, unanswered
from perago.stores.lakefs.hard import HardFence
from perago.stores.lakefs.moves import hard_reset, merge
from tests.model.server import A, Library, Made, Move, Refused


class Look(NamedTuple):
    """Read the head of the branch; answered with the name of a commit."""


class AskEngine(NamedTuple):
    """Ask whether the attempt is current; answered with a status."""


class AskStanding(NamedTuple):
    """Ask how the task stands that published the head (P2a); answered with a status."""

    task_id: str


@dataclass(frozen=True, slots=True)
class Report:
    """Tell the engine how it ended; answered with whether it was wanted (R2)."""

    who: str
    completed: bool
    ref: str = ""
    reason: str = field(default="", compare=False)


class Unknown(NamedTuple):
    """No answer came; what was sent may be applied later, or never."""


class ReadLedger(NamedTuple):
    """Ask the ledger what is recorded of the step; answered with the names of postings."""


class Post(NamedTuple):
    """Have something recorded in the ledger."""

    execution: str
    name: str


Question = Look | AskEngine | AskStanding | Move | Report | ReadLedger | Post
Answer = str | bool | Made | Refused | Unknown | tuple[str, ...]
UNKNOWN = Unknown()


class Unanswered(BaseException):
    """The world has not answered yet. Like a kill, it is caught by nobody."""


class Wire:
    """Gives the answers that were, in order, and stops at the first question after them."""

    def __init__(self, answers: Sequence[Answer], progress: AttemptProgress) -> None:
        self._answers = iter(answers)
        self._progress = progress
        self.pending: Question | None = None
        self.phase = Phase.REPORT

    def ask(self, question: Question) -> Any:
        if self.pending is None:
            for answer in self._answers:
                return answer
            self.pending, self.phase = question, self._progress.current
        raise Unanswered


@dataclass(frozen=True, slots=True)
class ModelClient:
    """The one method of the lakeFS client that moves a branch."""

    who: str
    wire: Wire

    def ask(self, ask: Ask) -> Any:
        """Send a request as the product wrote it; errors are those of the product's own table."""
        if ask.path.endswith("/actions/runs"):
            return {"results": [{"status": "completed"}]}
        answer = self.wire.ask(self._move(ask))
        if answer == UNKNOWN:
            raise unanswered(ask.call, ask.what, "timeout")
        if isinstance(answer, Refused):
            raise translate(ask.call, answer.status, "", ask.what)
        assert isinstance(answer, Made)
        return {"reference": answer.ref}

    def _move(self, ask: Ask) -> Move:
        if ask.path.endswith("/hard_reset"):
            assert ask.query is not None
            return Move(self.who, "reset", ask.query["ref"])
        # .../refs/SOURCE/merge/BRANCH
        source = unquote(ask.path.split("/")[-3])
        metadata: Mapping[str, str] = ask.body["metadata"]
        said = tuple(sorted(metadata.items()))
        squashed = ask.body.get("squash_merge")
        return Move(self.who, "merge" if squashed else "intent", source, said, self.fenced)

    @property
    def fenced(self) -> bool:
        return False


class FencedClient(ModelClient):
    """The same, where every source of a merge has the action of fence ``hard``."""

    @property
    def fenced(self) -> bool:
        return True


class ModelStore:
    """What the last steps of an attempt need of a store; only reads of the head take time."""

    checksum = "md5"
    direct = None

    def __init__(self, who: str, library: Library, wire: Wire, *, fenced: bool) -> None:
        self._who = who
        self._library = library
        self._wire = wire
        self._client = cast("LakeFSClient", (FencedClient if fenced else ModelClient)(who, wire))
        self._hard = HardFence(self._client, self.head)
        self._base = A
        self._after: frozenset[str] = frozenset()

    def commit(self, repository: str, ref: str) -> Commit:
        return self._library.commits[ref]

    def head(self, repository: str, branch: str, timeout_seconds: float | None = None) -> Commit:
        return self._library.commits[self._wire.ask(Look())]

    def prove(self, workspace: WorkspaceInput, fence: FenceKind) -> None:
        """Hold: that the action is in A was proven."""

    def finished_head(self, repository: str, branch: str) -> Commit:
        return self._hard.finish(repository, branch)

    def note_same(self, repository: str, ref: str, source: str) -> None:
        """Note nothing."""

    def history(self, repository: str, ref: str) -> Iterator[Commit]:
        return (self._library.commits[name] for name in self._library.line(ref))

    def listing(self, repository: str, ref: str, root: str) -> Iterable[ObjectInfo]:
        return [ObjectInfo(key, 1, f"md5:{key}") for key in sorted(self._library.trees[ref])]

    def diff(self, repository: str, left: str, right: str, root: str) -> ChangeSet:
        trees = self._library.trees
        return diff(manifest(trees[left]), manifest(trees[right]))

    def open_staging(self, staging: Staging, at: str) -> None:
        self._base, self._after = at, self._library.trees[at]

    def write(
        self, staging: Staging, puts: Sequence[Put], deletes: Sequence[str], advance: Advance
    ) -> None:
        self._after = (self._after - frozenset(deletes)) | {put.key for put in puts}

    def seal(
        self, staging: Staging, message: str, metadata: Mapping[str, str], patience: object = None
    ) -> StagedWorkspace:
        name = f"C{self._who}" if self._base == A else f"C{self._who}/{self._base}"
        said = tuple(sorted(metadata.items()))
        self._library.add(name, (self._base,), self._after, said)
        return StagedWorkspace(staging.repository, staging.branch, name)

    def drop(self, staging: Staging) -> None:
        """Leave the staging branch out: nobody looks at it."""

    def apply(self, publication: Publication) -> Published:
        """Send what the decision asks for, as the lakeFS store does."""
        if publication.fence == "hard":
            return self._hard.apply(publication)
        decision = publication.decision
        where = publication.repository, publication.branch
        if not isinstance(decision, Merge):
            ref = wanted_by(decision)
            self._client.ask(hard_reset(*where, ref))
            return Published(ref, publication.fence)
        body = {"metadata": dict(publication.metadata), "squash_merge": True}
        made = self._client.ask(merge(where[0], decision.source, where[1], body))
        return Published(str(made["reference"]), publication.fence)


@dataclass(frozen=True, slots=True)
class ModelEngine:
    """The engine, as an attempt sees it."""

    who: str
    wire: Wire

    def current(self, attempt: Attempt) -> AttemptSnapshot:
        status: Status = self.wire.ask(AskEngine())
        mine = attempt.workflow_instance_id, attempt.task_id, attempt.retry_count
        return AttemptSnapshot(*mine, status)

    def standing(self, task_id: str) -> str | None:
        status: Status = self.wire.ask(AskStanding(task_id))
        return status

    def report(self, attempt: Attempt, outcome: Outcome) -> bool:
        ref = ""
        if outcome.completed:
            workspace = cast("Mapping[str, str]", outcome.output["workspace"])
            ref = workspace["ref"]
        wanted: bool = self.wire.ask(Report(self.who, outcome.completed, ref, outcome.reason))
        return wanted


@dataclass(frozen=True, slots=True)
class ModelLedger:
    """A ledger that always answers (K5)."""

    wire: Wire
    postings: dict[str, Posting]

    def post(self, posting: Posting) -> None:
        name = f"{posting.execution_id}: {posting.decision} {posting.ref}"
        self.postings[name] = posting
        self.wire.ask(Post(posting.execution_id, name))

    def of_step(self, logical_task_key: str) -> Sequence[Posting]:
        return [self.postings[name] for name in self.wire.ask(ReadLedger())]


def manifest(tree: Iterable[str]) -> dict[str, Entry]:
    """Describe files, each of which has only one content ever."""
    return {key: Entry(1, f"md5:{key}") for key in tree}
