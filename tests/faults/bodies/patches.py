"""Bodies that change the interpreter they share with us and do not put it back.

An author's library does such things: it freezes the time, turns warnings into errors, clears the
environment. What is published then is exact, or the attempt fails; the next one is not harmed.
"""

from __future__ import annotations

import builtins
import contextlib
import decimal
import gc
import hashlib
import json
import locale
import logging
import os
import pathlib
import pickle
import random
import shutil
import socket
import sqlite3
import sys
import tempfile
import threading
import time
import uuid
import warnings
from typing import Any

from tests.faults.bodies.body import DONE, EITHER, Body, Register, Scene, body

__all__ = ["Body"]
SOMEWHERE = r"^(body|result model|post guardrail|diff|first|stage|second|publish|executor)"


def patching(name: str, *, quick: bool = False, statuses: frozenset[str] = EITHER) -> Register:
    return body(f"patch/{name}", statuses, SOMEWHERE, quick=quick)


def _refuse(*_: object, **__: object) -> Any:
    raise RuntimeError("patched by the body")


@patching("os.unlink is None", quick=True)
def unlink(scene: Scene) -> None:
    os.unlink = os.remove = None  # type: ignore[assignment]


@patching("os.scandir raises")
def scandir(scene: Scene) -> None:
    os.scandir = _refuse


@patching("os.open raises")
def os_open(scene: Scene) -> None:
    os.open = _refuse


@patching("os.stat and os.lstat raise")
def stat(scene: Scene) -> None:
    os.stat = os.lstat = os.fstat = _refuse


@patching("os.rename is something else")
def rename(scene: Scene) -> None:
    os.rename = os.replace = lambda *_, **__: None


@patching("os.getpid is a constant")
def getpid(scene: Scene) -> None:
    os.getpid = lambda: 1


@patching("open raises")
def opened(scene: Scene) -> None:
    builtins.open = _refuse


@patching("methods of Path raise")
def paths(scene: Scene) -> None:
    for name in ("open", "exists", "is_dir", "iterdir", "mkdir", "unlink", "read_text", "rename"):
        setattr(pathlib.Path, name, _refuse)


@patching("shutil.rmtree and tempfile raise")
def rmtree(scene: Scene) -> None:
    shutil.rmtree = shutil.copyfile = tempfile.mkdtemp = _refuse  # type: ignore[assignment]


@patching("json.dumps gives nothing")
def dumps(scene: Scene) -> None:
    json.dumps = lambda *_, **__: "null"


@patching("json.loads raises")
def loads(scene: Scene) -> None:
    json.loads = _refuse


@patching("pickle.dumps raises")
def pickled(scene: Scene) -> None:
    pickle.dumps = _refuse


class _Constant:
    name = "sha256"
    digest_size = 32
    block_size = 64

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def update(self, _: object) -> None:
        pass

    def hexdigest(self) -> str:
        return "0" * 64

    def digest(self) -> bytes:
        return bytes(32)

    def copy(self) -> _Constant:
        return self


@patching("every hash is the same")
def hashes(scene: Scene) -> None:
    hashlib.sha256 = hashlib.md5 = hashlib.new = hashlib.sha1 = _Constant  # type: ignore[assignment]
    hashlib.file_digest = _Constant  # type: ignore[assignment]


@patching("the time stands still")
def frozen(scene: Scene) -> None:
    now, ns = time.time(), time.time_ns()
    time.time = lambda: now
    time.time_ns = lambda: ns
    time.monotonic = lambda: now
    time.perf_counter = lambda: now


@patching("the time is 1970")
def past(scene: Scene) -> None:
    time.time = lambda: 0.0
    time.time_ns = lambda: 0


@patching("time.sleep returns at once")
def sleepless(scene: Scene) -> None:
    time.sleep = lambda _: None


@patching("time.monotonic goes backwards")
def backwards(scene: Scene) -> None:
    state = [time.monotonic()]

    def back() -> float:
        state[0] -= 10
        return state[0]

    time.monotonic = back


@patching("uuid and random are constants")
def constants(scene: Scene) -> None:
    fixed = uuid.uuid4()
    uuid.uuid4 = lambda: fixed
    random.random = lambda: 0.0
    random.seed(0)


@patching("sqlite3.connect raises")
def sqlite(scene: Scene) -> None:
    sqlite3.connect = _refuse


@patching("socket.socket raises")
def sockets(scene: Scene) -> None:
    socket.socket = _refuse  # type: ignore[assignment,misc]
    socket.getaddrinfo = _refuse


@patching("no thread can be started")
def threads(scene: Scene) -> None:
    threading.Thread.start = _refuse  # type: ignore[method-assign]


@patching("contextlib.suppress suppresses nothing")
def suppress(scene: Scene) -> None:
    contextlib.suppress.__exit__ = lambda *_: False  # type: ignore[method-assign]


@patching("warnings are errors", statuses=DONE)
def warned(scene: Scene) -> None:
    warnings.simplefilter("error")


@patching("logging is off, and its handlers raise", statuses=DONE)
def logs(scene: Scene) -> None:
    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise RuntimeError("patched by the body")

    logging.getLogger().addHandler(Handler())
    logging.getLogger().setLevel(0)
    logging.raiseExceptions = True
    logging.shutdown()


@patching("the locale is another", statuses=DONE)
def localised(scene: Scene) -> None:
    for name in ("tr_TR.UTF-8", "de_DE.UTF-8", "C"):
        with contextlib.suppress(locale.Error):
            locale.setlocale(locale.LC_ALL, name)
    os.environ["LC_ALL"] = os.environ["LANG"] = "tr_TR.ISO-8859-9"


@patching("numbers have one digit")
def decimals(scene: Scene) -> None:
    decimal.getcontext().prec = 1
    decimal.getcontext().traps[decimal.Inexact] = True


@patching("sys.path is empty", statuses=DONE)
def path(scene: Scene) -> None:
    """What was not imported yet cannot be found any more."""
    sys.path.clear()
    sys.path_importer_cache.clear()


@patching("nothing can be imported")
def imports(scene: Scene) -> None:
    sys.meta_path.clear()


@patching("modules are forgotten")
def modules(scene: Scene) -> None:
    for name in [name for name in sys.modules if name.startswith(("perago", "pydantic"))]:
        del sys.modules[name]


@patching("the environment is empty", statuses=DONE)
def environment(scene: Scene) -> None:
    os.environ.clear()


@patching("the environment names other places", statuses=DONE)
def other_environment(scene: Scene) -> None:
    nowhere = str(scene.scratch / "nowhere")
    for name in ("HOME", "TMPDIR", "PATH", "PERAGO_HOME", "PERAGO_WORKSPACE_ROOT", "PYTHONPATH"):
        os.environ[name] = nowhere
    for name in ("PERAGO_CACHE_ROOT", "PERAGO_LOG_ROOT", "XDG_CACHE_HOME"):
        os.environ[name] = nowhere
    os.environ["LAKECTL_SERVER_ENDPOINT_URL"] = "http://127.0.0.1:9"
    os.environ["LAKECTL_CREDENTIALS_SECRET_ACCESS_KEY"] = "another"
    os.environ["CONDUCTOR_SERVER_URL"] = "http://127.0.0.1:9"
    tempfile.tempdir = nowhere


@patching("sys.stdout is None", statuses=DONE)
def no_stdout(scene: Scene) -> None:
    sys.stdout = sys.stderr = sys.stdin = None


class _Hostile:
    def __getattr__(self, name: str) -> Any:
        raise SystemExit("patched by the body")


@patching("sys.stdout ends the program")
def hostile_stdout(scene: Scene) -> None:
    """A flush of it raises what is no Exception."""
    sys.stdout = sys.stderr = _Hostile()


@patching("sys.stdout is closed", statuses=DONE)
def closed_stdout(scene: Scene) -> None:
    sys.stdout.close()
    sys.stderr.close()


@patching("sys.stdout blocks", statuses=DONE)
def odd_stdout(scene: Scene) -> None:
    """Descriptor 1 does not wait for its reader any more."""
    os.set_blocking(1, False)
    os.set_blocking(2, False)


@patching("gc is off", statuses=DONE)
def collector(scene: Scene) -> None:
    gc.disable()
    gc.freeze()


@patching("gc raises")
def hostile_collector(scene: Scene) -> None:
    gc.callbacks.append(_refuse)


@patching("every call is traced, and the tracer raises")
def tracer(scene: Scene) -> None:
    count = [0]

    def trace(frame: Any, event: str, arg: object) -> Any:
        count[0] += 1
        if count[0] == 200:
            raise RuntimeError("patched by the body")
        return trace

    sys.settrace(trace)


@patching("every call is profiled", statuses=DONE)
def profiler(scene: Scene) -> None:
    sys.setprofile(lambda *_: None)
    threading.setprofile(lambda *_: None)


@patching("threads take turns after a minute", statuses=DONE)
def turns(scene: Scene) -> None:
    sys.setswitchinterval(60)


@patching("hooks for exceptions exit")
def hooks(scene: Scene) -> None:
    sys.excepthook = threading.excepthook = lambda *_: os._exit(4)  # type: ignore[assignment]
    sys.unraisablehook = lambda *_: os._exit(4)


@patching("audit hook refuses")
def audit(scene: Scene) -> None:
    """Such a hook can never be removed: the executor is spoiled for good."""

    def hook(event: str, args: object) -> None:
        if event in {"os.remove", "os.rmdir", "sqlite3.connect"}:
            raise RuntimeError("patched by the body")

    sys.addaudithook(hook)


@patching("at fork raises", statuses=DONE)
def at_fork(scene: Scene) -> None:
    os.register_at_fork(before=_refuse, after_in_parent=_refuse)


@patching("integers are short")
def digits(scene: Scene) -> None:
    sys.set_int_max_str_digits(640)
