"""What an attempt needs of the world, as Protocols. Each method says what may fail.

Errors are those of :mod:`perago.errors`; no foreign type crosses a port.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from perago.protocol.adoption import Completion, Posting
from perago.protocol.data import Measure, Table
from perago.protocol.events import Event
from perago.protocol.kinds import FenceKind
from perago.protocol.outcome import Outcome
from perago.protocol.program import Program, ProgramEvent
from perago.protocol.publication import Write
from perago.protocol.spark import SparkNeed
from perago.protocol.values import (
    Attempt,
    AttemptSnapshot,
    ChangeSet,
    Commit,
    Entry,
    Manifest,
    ObjectInfo,
    StagedWorkspace,
    Staging,
    WorkspaceInput,
)

Advance = Callable[[int], None]
"""Called with the number of bytes just moved; drives progress bars."""


@dataclass(frozen=True, slots=True)
class Fetch:
    """One object to bring: it must arrive as ``entry`` says (D3)."""

    key: str
    entry: Entry
    to: Path


@dataclass(frozen=True, slots=True)
class Put:
    """One file to send: it must still be what ``entry`` says when it is read (S3)."""

    key: str
    entry: Entry
    source: Path
    opens: Callable[[], int] | None = field(default=None, compare=False)
    """Opens it without a look at the path: through its directory, and only as it was compared."""


@dataclass(frozen=True, slots=True)
class Publication:
    """One visible write: a decision, the branch it is about, and what the commit will say."""

    repository: str
    branch: str
    decision: Write
    fence: FenceKind
    message: str
    metadata: Mapping[str, str]
    timeout_seconds: float


@dataclass(frozen=True, slots=True)
class Published:
    """The target's new head, and the fence that really held while it was moved."""

    ref: str
    fence: FenceKind


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a commit may take, and how long to look for it once nothing is under way."""

    seconds: float = 90.0
    margin_seconds: float = 0.0
    check: Callable[[], None] = lambda: None
    """Raises when the attempt is lost."""


class Store(Protocol):
    """A versioned object store. Every call is bounded in time.

    Any call may raise ``StoreUnavailableError`` (could not ask), ``NotFoundError`` (no such
    repository, branch or ref) or ``PermissionRefusedError``.
    """

    @property
    def checksum(self) -> str:
        """Name the hash (as :mod:`hashlib` does) of the checksums this store gives."""

    def content(self, entry: Entry) -> Entry:
        """Return what hash a fetched content has, where the listed checksum is another's tag."""

    @property
    def direct(self) -> ObjectAccess | None:
        """Offer work on objects in place, where this store can (X2)."""

    def commit(self, repository: str, ref: str) -> Commit:
        """Resolve a branch, tag, commit id or unique short id."""

    def head(self, repository: str, branch: str, timeout_seconds: float | None = None) -> Commit:
        """Read the head of a branch as it is now, never from a cache.

        With a timeout it is asked once, and for no longer.
        """

    def dirty(self, repository: str, branch: str) -> bool:
        """Return whether a branch has uncommitted changes (P4)."""

    def history(self, repository: str, ref: str) -> Iterator[Commit]:
        """Walk first parents, newest first."""

    def listing(self, repository: str, ref: str, root: str) -> Iterable[ObjectInfo]:
        """List raw keys that start with ``root`` at a commit."""

    def diff(self, repository: str, left: str, right: str, root: str) -> ChangeSet:
        """Compare two commits by content; keys that start with ``root``."""

    def fetch(self, repository: str, ref: str, wanted: Sequence[Fetch], advance: Advance) -> None:
        """Write objects to new files, verified; ``CorruptObjectError`` names the first bad one.

        What ``advance`` raises stops all of it, as any failure does.
        """

    def open_staging(self, staging: Staging, at: str) -> None:
        """Create the branch at a commit; ``AlreadyExistsError`` means it is somebody else's (S1).

        ``OutcomeUnknownError``: it may exist now.
        """

    def write(
        self, staging: Staging, puts: Sequence[Put], deletes: Sequence[str], advance: Advance
    ) -> None:
        """Upload and delete on a staging branch; idempotent.

        ``UnpublishableFileError``: a file changed while it was read.
        """

    def seal(
        self,
        staging: Staging,
        message: str,
        metadata: Mapping[str, str],
        patience: Patience = ...,
    ) -> StagedWorkspace:
        """Commit a staging branch. A lost answer is settled inside: the branch is private."""

    def prove(self, workspace: WorkspaceInput, fence: FenceKind) -> None:
        """Make sure that a fence will hold on a branch for what begins at a commit (K3).

        ``RuntimeConfigError`` says what has to be installed.
        """

    def finished_head(self, repository: str, branch: str) -> Commit:
        """Read the head, after completing a replacement that was left half done (K3)."""

    def apply(self, publication: Publication) -> Published:
        """Carry out a decision: the only visible write of an attempt. Never sent twice.

        ``PublishFenceError``: the branch has uncommitted changes (P4), or refuses for another
        reason; nothing written.
        ``LostRaceError``: refused, nothing written. ``OutcomeUnknownError``: settle by reading.
        """

    def note_same(self, repository: str, ref: str, source: str) -> None:
        """Take note that two commits hold the same objects: a shortcut for readers. Never fails."""

    def drop(self, staging: Staging) -> None:
        """Delete a staging branch; a branch that is not there is fine."""


@dataclass(frozen=True, slots=True)
class Gateway:
    """An S3 address of a store's objects: the bucket is the repository, a key begins with a ref."""

    endpoint: str
    access_key_id: str = field(repr=False)
    secret_access_key: str = field(repr=False)


class ObjectAccess(Protocol):
    """What work in place needs of a store. Keys are raw."""

    @property
    def gateway(self) -> Gateway:
        """Return how others than the store itself reach its objects."""

    def changes(self, staging: Staging, root: str) -> ChangeSet:
        """Compare a staging branch, on which others wrote, with the commit it was opened at.

        Nothing that was remembered of the branch is believed any more.
        """

    def touched(self, staging: Staging, key: str) -> bool:
        """Return whether anything at a key or below it has changed."""

    def names(self, repository: str, ref: str, root: str) -> Sequence[str]:
        """List what lies right below a root, without it; a directory ends in ``/``."""


@dataclass(frozen=True, slots=True)
class Damage:
    """What is wrong with one object: ``missing``, or ``corrupt`` in a way that ``why`` tells."""

    key: str
    problem: str
    why: str


class PagedListing(Protocol):
    """What a huge prefix is worked on through: a part of it at a time (X6)."""

    @property
    def readers(self) -> int:
        """Return how many objects are best read at once."""

    def page(
        self, repository: str, ref: str, root: str, after: str, limit: int
    ) -> Sequence[ObjectInfo]:
        """List up to ``limit`` raw keys that start with ``root`` and come after ``after``.

        Sorted by code point; fewer than ``limit`` only when there are no more.
        """

    def check(self, repository: str, ref: str, info: ObjectInfo, scratch: Path) -> Damage | None:
        """Read an object again, from the store and nowhere else, and compare it with its listing.

        ``scratch`` is a directory of this process; nothing stays in it.
        """


class StoreView(Protocol):
    """What people who look at versions need of a store: a part at a time, however much there is."""

    def diff_page(
        self, repository: str, left: str, right: str, root: str, after: str, limit: int
    ) -> ChangeSet:
        """Compare up to ``limit`` keys that come after one; fewer only when there are no more."""

    def beginning(self, repository: str, ref: str, key: str, most: int) -> bytes:
        """Read up to ``most`` bytes of an object from its beginning; they are not verified."""


class Broker(Protocol):
    """The workflow engine, as an attempt sees it."""

    def current(self, attempt: Attempt) -> AttemptSnapshot:
        """Ask whether the attempt still counts; ``BrokerUnavailableError`` when it cannot say."""

    def standing(self, task_id: str) -> str | None:
        """Ask for the status of any task; None when the engine does not know it (P2a).

        ``BrokerUnavailableError`` when it cannot say.
        """

    def report(self, attempt: Attempt, outcome: Outcome) -> bool:
        """Send the result; False when the engine no longer wanted it (R2)."""


class Ledger(Protocol):
    """What executions decided and what became of it, kept outside the store (K5).

    Every call is bounded in time and may raise ``LedgerUnavailableError``; each can be repeated.
    """

    def post(self, posting: Posting) -> None:
        """Record an execution, or what is known of it now; a ref once recorded stays."""

    def settle(self, execution_id: str, completion: Completion, at: float) -> None:
        """Record what the engine did with the report; an execution without a posting is fine."""

    def of_step(self, logical_task_key: str) -> Sequence[Posting]:
        """Return all that is recorded of a step, oldest first."""


@dataclass(frozen=True, slots=True)
class AttemptDir:
    """The attempt directory, and inside it the directory the author works in."""

    path: Path
    workspace: Path
    made: tuple[int, int] | None = None
    """Device and inode of the attempt directory: whatever is at its path later must be this."""
    times_tell: bool = True
    """Whether the times of a file show every change of it there (S2)."""


class AttemptDirs(Protocol):
    """Attempt directories under one root."""

    def enter(self, attempt: Attempt, execution_id: str) -> AttemptDir:
        """Make the directory and its marker; ``WorkspaceError`` when the root cannot be used."""

    def leave(self, attempt_dir: AttemptDir, timeout_seconds: float) -> None:
        """Remove the directory, or raise ``WorkspaceError`` when time is up."""


class InPlace(Protocol):
    """A workspace that is worked on where it is stored. Paths are those of the workspace."""

    @property
    def gateway(self) -> Gateway:
        """Return how its objects are reached."""

    @property
    def scratch(self) -> Path:
        """Name a directory of the attempt, for what an engine must put down somewhere."""

    @property
    def source(self) -> str:
        """Name the input, which never changes, as ``repository/ref/prefix/``."""

    @property
    def target(self) -> str | None:
        """Name where to write, in the same way; None when nothing may be written."""

    def paths(self, path: str = "") -> Sequence[str]:
        """Return the files at a path and below it, as they are now."""

    def entries(self, path: str = "") -> Manifest:
        """Return the same files with what is known of each."""

    def touched(self, path: str) -> bool:
        """Return whether this attempt has changed anything at a path or below it."""

    def remove(self, paths: Sequence[str]) -> None:
        """Remove files."""

    def bring(self, directory: Path, path: str, advance: Advance) -> Sequence[str]:
        """Write the files of a local directory, except leftovers, to a path; say which."""

    def changes(self) -> ChangeSet:
        """Compare with the input, after removing what Spark left beside data."""


@dataclass(frozen=True, slots=True)
class Site:
    """Where an attempt computes: its directory, what it was given, what it has changed so far.

    A workspace that stays in the store has no directory; it is reached as ``in_place``.
    """

    execution_id: str
    root: Path | None = None
    before: Manifest = field(default_factory=dict)
    changes: Callable[[], ChangeSet] = ChangeSet
    in_place: InPlace | None = None
    dropped: Callable[[Sequence[str]], None] = lambda _: None
    """Told which leftovers of an engine were removed."""
    starting: Callable[[], AbstractContextManager[None]] = nullcontext
    """Entered around the start of an engine that was not running yet."""
    step: str = ""
    """Names the step of the workflow: the same for every retry of it."""


class Engine(Protocol):
    """What one attempt computes with; nothing is started before it is asked for."""

    def session(self) -> object:
        """Return the Spark session of the attempt."""

    def workspace(self) -> object:
        """Return the workspace as Spark sees it."""

    def running(self) -> AbstractContextManager[None]:
        """Run a body inside: foreign errors are translated, leftovers are removed."""

    def measure(self, table: str, wanted: Sequence[Measure]) -> Table | None:
        """Measure a table of the workspace; None when there is none."""

    def close(self) -> None:
        """Give back what was opened."""


class Engines(Protocol):
    """Opens the engine that a task needs."""

    def open(self, need: SparkNeed | None, site: Site) -> Engine:
        """Choose by the need; ``RuntimeConfigError`` when it cannot be met here."""


@dataclass(frozen=True, slots=True)
class ProgramHome:
    """A directory of a program that outlives the attempt that started it."""

    path: Path
    leave: Callable[[], None]
    """Removes it and never raises: what stays is swept after the executor."""


@dataclass(frozen=True, slots=True)
class ProgramCall:
    """One attempt, as a program is told of it."""

    execution_id: str
    directory: Path
    """The attempt directory, in which it has a place of its own beside the workspace."""
    attempt: Mapping[str, object]
    """Which attempt it is."""
    tell: Callable[[ProgramEvent], None]
    """Takes what the program says on the way."""
    warn: Callable[[str, str], None]
    """Takes what was wrong with it and changes nothing: a sentence, and why."""
    enter: Callable[[], ProgramHome]
    """Makes a directory for a program that outlives the attempt."""
    workspace: Path | None = None
    params: Mapping[str, object] = field(default_factory=dict)


class Programs(Protocol):
    """Runs programs as bodies."""

    def run(self, program: Program, call: ProgramCall) -> Mapping[str, object]:
        """Run one; ``TaskFailed`` or ``TaskTerminalError`` as its end means (Q5).

        Nothing that it started is left when this returns or raises.
        """


class Clock(Protocol):
    """Time, so that tests can own it."""

    def now(self) -> float:
        """Return seconds since the epoch."""

    def monotonic(self) -> float:
        """Return seconds that never go back."""

    def sleep(self, seconds: float) -> None:
        """Wait."""


class Journal(Protocol):
    """The event log of one execution. Each event is also a named point where tests may crash."""

    def event(self, event: Event) -> None:
        """Record that a point was reached; its facts are plain JSON values, never secrets."""

    def progress(self, phase: str, done: int, total: int) -> None:
        """Tell a watcher how far a transfer is, in bytes; not recorded."""
