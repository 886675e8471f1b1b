"""Factories for executors under test; children import this module by name."""

from __future__ import annotations

import io
import os
import resource
import signal
import stat
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from perago.errors import TaskDefinitionError
from perago.process import process_state
from perago.process.reports import Send, Work
from perago.protocol.outcome import Outcome
from perago.protocol.values import Attempt, Claim, Status
from perago.tasks.cancellation import cancelled, on_cancel
from tests.patience import until


def claim(execution_id: str, **given: object) -> Claim:
    attempt = Attempt("run-1", f"task-{execution_id}", 0, "ref", "t")
    return Claim(attempt=attempt, input=given, execution_id=execution_id)


def work(send: Send) -> Work:
    """Do what the input says."""

    def run(claim: Claim) -> Outcome:
        given: Any = claim.input
        for name, value in given.items():
            DEEDS[name](value, send)
        return Outcome(Status.COMPLETED, output={"pid": os.getpid(), "in": dict(given)})

    return run


def _raise(_: object, send: Send) -> None:
    raise RuntimeError("out of order")


def _exit(code: Any, send: Send) -> None:
    os._exit(code)


def _system_exit(code: Any, send: Send) -> None:
    sys.exit(code)


def _signal(number: Any, send: Send) -> None:
    os.kill(os.getpid(), number)


def _sleep(seconds: Any, send: Send) -> None:
    send({"sleeping": True, "pid": os.getpid()})
    time.sleep(seconds)  # what it is for


def _say(items: Any, send: Send) -> None:
    for item in items:
        send({"item": item})


def _say_from_threads(count: Any, send: Send) -> None:
    threads = [threading.Thread(target=send, args=({"item": n},)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _print(text: Any, send: Send) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stderr.write("problem\n")
    subprocess.run(["/bin/sh", "-c", "echo from a child"], check=True)


def _flood(lines: Any, send: Send) -> None:
    for number in range(lines):
        sys.stdout.write(f"line {number:06} {'x' * 80}\n")


def _grandchild(seconds: Any, send: Send) -> None:
    process = subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({seconds})"])
    send({"grandchild": process.pid, "pid": os.getpid()})
    time.sleep(seconds)  # what it is for


def _big(size: Any, send: Send) -> None:
    send({"bytes": "x" * size})


def _unpicklable(_: object, send: Send) -> None:
    send({"function": lambda: None})


def _touch(path: Any, send: Send) -> None:
    Path(path).touch()


def _until_cancelled(path: Any, send: Send) -> None:
    on_cancel(lambda: Path(path).touch())
    send({"waiting": True})
    until(cancelled, "that it is cancelled")


def _wait_for(path: Any, send: Send) -> None:
    send({"waiting": True})
    until(Path(path).exists, path)


def _not_cancelled(_: object, send: Send) -> None:
    assert not cancelled()


def channel() -> int:
    """Find this executor's end of the line: its only socket."""
    found = [int(name) for name in os.listdir("/proc/self/fd")]  # noqa: PTH208 - numbers
    (line,) = [fd for fd in found if _is_socket(fd)]
    return line


def _is_socket(fd: int) -> bool:
    try:
        return stat.S_ISSOCK(os.fstat(fd).st_mode)
    except OSError:
        return False


def _write(data: Any, send: Send) -> None:
    """Write into the channel, behind its owner's back."""
    time.sleep(0.3)  # After what was said before.
    os.write(channel(), bytes(data))
    time.sleep(600)  # until its owner ends it


def _half_and_fork(_: object, send: Send) -> None:
    """Send half a message and die; a copy that holds the channel lives on."""
    time.sleep(0.3)  # After what was said before.
    os.write(channel(), struct.pack(">I", 1000) + b'["said"')
    if os.fork() == 0:
        os.setsid()
        time.sleep(20)  # holds it, while the owner has to notice the death
        os._exit(0)
    os._exit(4)


def _half_and_stop(_: object, send: Send) -> None:
    time.sleep(0.3)  # After what was said before.
    os.write(channel(), struct.pack(">I", 1000) + b'["said"')
    os.kill(os.getpid(), signal.SIGSTOP)


def _close_all(_: object, send: Send) -> None:
    os.closerange(0, 1000)
    time.sleep(600)  # until its owner ends it


def _replace_line(_: object, send: Send) -> None:
    """Put something that swallows all in the place of the line, as a body may."""
    with process_state.own().kept():
        os.dup2(os.open(os.devnull, os.O_RDWR), channel())


def _close_and_reuse(path: Any, send: Send) -> None:
    """Close the channel and open a file, which gets its number."""
    line = channel()
    os.close(line)
    while (taken := os.open(path, os.O_WRONLY | os.O_CREAT)) != line:
        assert taken < line
    time.sleep(600)  # until its owner ends it


def _nested(depth: Any, send: Send) -> None:
    deep: list[object] = []
    for _ in range(depth):
        deep = [deep]
    send({"event": "deep", "value": deep})


def _lower(_: object, send: Send) -> None:
    """Lower a limit for good, as a body does; what cannot be raised again ends the executor."""
    with process_state.own().kept():
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))


def _change(_: object, send: Send) -> None:
    """Change what belongs to the whole process, and look at it when it was given back."""
    before = _state()
    with process_state.own().kept():
        os.umask(0o777)
        signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals))
        signal.signal(signal.SIGUSR1, lambda *_: None)
        signal.alarm(600)
        sys.setrecursionlimit(5000)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 64), hard))
        sys.stdout = sys.stderr = io.StringIO()
        for descriptor in range(3):
            os.close(descriptor)
    assert _state() == before
    assert not signal.alarm(0)
    sys.stdout.write("still heard\n")


def _state() -> list[object]:
    mask = os.umask(0)
    os.umask(mask)
    return [
        mask,
        signal.pthread_sigmask(signal.SIG_BLOCK, ()),
        signal.getsignal(signal.SIGUSR1),
        sys.getrecursionlimit(),
        resource.getrlimit(resource.RLIMIT_NOFILE),
        sys.stdout,
        sys.stderr,
        [os.fstat(descriptor).st_ino for descriptor in range(3)],
    ]


DEEDS: dict[str, Callable[[Any, Send], None]] = {
    "raise": _raise,
    "exit": _exit,
    "system_exit": _system_exit,
    "signal": _signal,
    "sleep": _sleep,
    "say": _say,
    "say_from_threads": _say_from_threads,
    "print": _print,
    "flood": _flood,
    "grandchild": _grandchild,
    "big": _big,
    "unpicklable": _unpicklable,
    "touch": _touch,
    "write": _write,
    "half_and_fork": _half_and_fork,
    "half_and_stop": _half_and_stop,
    "close_all": _close_all,
    "close_and_reuse": _close_and_reuse,
    "replace_line": _replace_line,
    "nested": _nested,
    "lower": _lower,
    "change": _change,
    "given": lambda value, send: None,
    "wait_for": _wait_for,
    "until_cancelled": _until_cancelled,
    "not_cancelled": _not_cancelled,
    "n": lambda value, send: None,
}


def unpicklable_output(send: Send) -> Work:
    return lambda claim: Outcome(Status.COMPLETED, output={"f": lambda: None})


def import_error(send: Send) -> Work:
    import module_that_does_not_exist  # type: ignore[import-not-found]  # noqa: F401, PLC0415

    raise AssertionError


def definition_error(send: Send) -> Work:
    raise TaskDefinitionError("task 'x' has no params", remedy="add a params argument")


def exit_at_import(send: Send) -> Work:
    sys.exit("I am a script")


def hard_exit_at_import(send: Send) -> Work:
    os._exit(9)
