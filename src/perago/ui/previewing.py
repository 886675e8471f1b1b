"""Has files read for a page by a process of their own; what goes wrong there is one sentence."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from perago.errors import PeragoError

Found = Mapping[str, Any]
"""What was found in a file; ``problem`` says why that is nothing."""
Prepare = Callable[[Path], Mapping[str, object]]
"""Puts files into a private directory, and says what is to be done with them."""
_BEGIN: Final = "import sys; sys.path[:] = sys.argv[1:]; from perago.ui.preview import main; main()"
_HANDED_ON: Final = ("LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "TZ")
_QUIET: Final = {"OPENBLAS_NUM_THREADS": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"}
"""So that libraries do not set memory aside for threads that are never started."""
_KEPT: Final = 64
_BUSY: Final = "too many previews are being made: reload the page in a moment"


@dataclass(frozen=True, slots=True)
class Bounds:
    """What one preview may use."""

    memory: int = 1 << 30
    """Of addresses, of which Python and Arrow take a third before they read anything."""
    seconds: int = 20
    at_once: int = 2
    answer: int = 4 << 20


@dataclass
class Previewer:
    """Starts the processes, a few at a time, and remembers what the last ones found."""

    bounds: Bounds = field(default_factory=Bounds)

    def __post_init__(self) -> None:
        self._turns = threading.BoundedSemaphore(self.bounds.at_once)
        self._lock = threading.Lock()
        self._known: OrderedDict[Hashable, Found] = OrderedDict()

    def find(self, name: Hashable, prepare: Prepare) -> Found:
        """Have a preview made, or take the one of the same name: contents never change."""
        with self._lock:
            if name in self._known:
                self._known.move_to_end(name)
                return self._known[name]
        if not self._turns.acquire(timeout=self.bounds.seconds):
            return {"problem": _BUSY}
        try:
            with TemporaryDirectory(prefix="perago-preview-") as scratch:
                found = self._run(Path(scratch), prepare(Path(scratch)))
        except PeragoError as error:  # It could not be fetched, or not all of it.
            return {"problem": error.message}
        except OSError as error:
            return {"problem": f"it cannot be put down here to be read: {error.strerror}"}
        finally:
            self._turns.release()
        if "problem" not in found:  # What failed may go better next time.
            with self._lock:
                self._known[name] = found
                while len(self._known) > _KEPT:
                    self._known.popitem(last=False)
        return found

    def _run(self, scratch: Path, request: Mapping[str, object]) -> Found:
        limits = {
            "memory": self.bounds.memory,
            "seconds": self.bounds.seconds,
            "answer": self.bounds.answer,
        }
        told = json.dumps({**request, **limits}).encode()
        path = scratch / "answer.json"
        with path.open("wb") as answer:
            try:
                code = subprocess.run(  # noqa: S603 - our own module
                    [sys.executable, "-I", "-c", _BEGIN, *filter(os.path.isabs, sys.path)],
                    input=told,
                    stdout=answer,
                    stderr=subprocess.DEVNULL,
                    timeout=self.bounds.seconds,
                    check=False,
                    cwd="/",
                    env=environment_of(os.environ),
                    start_new_session=True,
                ).returncode
            except subprocess.TimeoutExpired:
                return {"problem": f"it took more than {self.bounds.seconds} seconds to read"}
            except OSError as error:
                return {"problem": f"no process could be started to read it: {error.strerror}"}
        with path.open("rb") as file:
            return judge_answer(code, file.read(self.bounds.answer))


def judge_answer(code: int, said: bytes) -> Found:
    """Read what a process said before it ended with a code. Pure."""
    if code:
        how = f"by signal {-code}" if code < 0 else f"with {code}"
        return {"problem": f"reading it ended {how}: it needs too much memory, or is damaged"}
    try:
        found = json.loads(said)
    except ValueError:
        return {"problem": "reading it gave no answer"}
    return found if isinstance(found, dict) else {"problem": "reading it gave no answer"}


def environment_of(environ: Mapping[str, str]) -> dict[str, str]:
    """Hand on what a library needs to start, and no key. Pure."""
    return {name: environ[name] for name in _HANDED_ON if name in environ} | _QUIET
