"""The embedded store after a power cut at every request to the disk (V3, V4, V5).

A shim below the store records what is written, synced, named and removed; for each moment the
states are laid out that a disk may then have, and the store is opened on them. What was
acknowledged must be there, whole; whatever else is there must be whole too; and work goes on.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from perago.errors import NotFoundError
from perago.stores.embedded import EmbeddedStore
from tests import injection
from tests.embedded.contents import check_objects
from tests.faults.paths import ALL
from tests.power import disk
from tests.power.disk import Op, State
from tests.power.writer import BRANCH, REPOSITORY

HERE = Path(__file__).parent
SHARES = 8
"""In how many tests the moments are parted."""
pytestmark = pytest.mark.timeout(600)


@dataclass(frozen=True)
class Recording:
    """What was asked of the disk, below which directory."""

    place: Path
    ops: Sequence[Op]

    def promised(self, upto: int) -> dict[str, Any] | None:
        """Return the last thing that was acknowledged before a moment."""
        marks = [op.data for op in self.ops[:upto] if op.kind == "mark"]
        return json.loads(marks[-1]) if marks else None


def compiled(directory: Path) -> Path:
    """Build the shim; without a compiler nothing can be said, and that is a failure."""
    compiler = shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc")
    if compiler is None:
        pytest.fail("no C compiler: install gcc, or name one with CC, to test power cuts")
    shim = directory / "shim.so"
    words = [compiler, "-shared", "-fPIC", "-O1", "-o", str(shim), str(HERE / "shim.c")]
    subprocess.run([*words, "-ldl", "-lpthread"], check=True)
    return shim


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    directory = tmp_path_factory.mktemp("power")
    place, work, log = (directory / name for name in ("place", "work", "log"))
    for one in (place, work):
        one.mkdir()
    more = {"LD_PRELOAD": str(compiled(directory)), "POWER_ROOT": place, "POWER_LOG": log}
    done = subprocess.run(
        [sys.executable, "-m", "tests.power.writer", str(place / "store"), str(work)],
        env=os.environ | {name: str(text) for name, text in more.items()},
        cwd=HERE.parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return Recording(place, disk.read(log.read_bytes()))


def test_the_recording_is_what_is_on_the_disk(recording: Recording) -> None:
    """The shim misses nothing: all requests together give the files that are there."""
    (found,) = [
        state for state in disk.states(recording.ops, each=True) if state.how == "all of it"
    ]
    wanted = {
        str(path): None if path.is_dir() else path.read_bytes()
        for path in recording.place.rglob("*")
    }
    assert found.tree == wanted


@pytest.fixture
def scratch(tmp_path: Path) -> Iterator[Path]:
    """Give a place for thousands of short-lived stores: in memory, where there is such a place."""
    memory = Path("/dev/shm")  # noqa: S108 - that is where it is
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as place:
        yield Path(place)


@pytest.mark.parametrize("share", range(SHARES), ids="power/share {}/cut/embedded".format)
def test_power(recording: Recording, scratch: Path, share: int) -> None:
    seen: set[tuple[str, str]] = set()
    moments = range(len(recording.ops) + 1)
    first = len(moments) * share // SHARES
    last = len(moments) * (share + 1) // SHARES
    for upto in moments[first:last]:
        promised = recording.promised(upto)
        for state in disk.states(recording.ops[:upto], each=ALL):
            key = (state.key, json.dumps(promised))
            if key in seen:
                continue
            seen.add(key)
            where = f"after request {upto} ({_told(recording.ops, upto)}), {state.how}"
            injection.inject("power cut", lambda: None)
            survives(recording, state, promised, scratch / str(len(seen)), where)
    assert seen


def _told(ops: Sequence[Op], upto: int) -> str:
    return f"{ops[upto - 1].kind} {ops[upto - 1].path}" if upto else "nothing"


def survives(
    recording: Recording, state: State, promised: dict[str, Any] | None, root: Path, where: str
) -> None:
    root.mkdir()
    disk.lay_out(state, recording.place, root)
    try:
        store = EmbeddedStore(root / "store")
        try:
            _keeps(store, promised)
            check_objects(store)
            _goes_on(store)
            check_objects(store)
        finally:
            store.close()
    except BaseException as error:
        raise AssertionError(f"power cut {where}: {error!r}") from error
    shutil.rmtree(root)


def _keeps(store: EmbeddedStore, promised: dict[str, Any] | None) -> None:
    """V3: what was acknowledged is on the branch, or was when the next step, which had begun, was.

    A replaced or relocated publication leaves the branch and stays readable (P10).
    """
    if promised is None:
        return
    head = promised["head"]
    assert store.commit(REPOSITORY, head).id == head
    found = {info.key: info.checksum for info in store.listing(REPOSITORY, head, "")}
    assert found == promised["tree"]
    store.head(REPOSITORY, BRANCH)


def _goes_on(store: EmbeddedStore) -> None:
    """V5: the next one can work."""
    try:
        store.head(REPOSITORY, BRANCH)
    except NotFoundError:
        store.create_repository(REPOSITORY)
    store.put(REPOSITORY, BRANCH, "next", b"next")
    store.put(REPOSITORY, BRANCH, "same", b"abandoned" * 1000)
    store.commit_branch(REPOSITORY, BRANCH, "next", allow_empty=True)
