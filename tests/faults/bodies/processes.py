"""Bodies that harm the process they run in: descriptors, signals, ends, limits, places."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import resource
import shutil
import signal
import sys
import threading
import time
from typing import Any

from tests.faults.bodies.body import (
    EITHER,
    FAILED,
    FAILS,
    TIMED_OUT,
    Body,
    Scene,
    body,
)
from tests.faults.bodies.content import KEPT

__all__ = ["Body"]
DIED = r"^executor died.*{}"
FAILS_SOMEWHERE = r"^(body|result model|post guardrail|diff|stage|publish|executor)"


# --- places ---------------------------------------------------------------------------------------


@body("place/chdir into the workspace", everywhere=True, worker=True)
def chdir(scene: Scene) -> None:
    os.chdir(scene.workspace)


@body("place/chdir into a directory that is removed then", quick=True, everywhere=True)
def chdir_removed(scene: Scene) -> None:
    gone = scene.elsewhere / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()


@body("place/chdir into the attempt directory, which is removed then", FAILS, FAILS_SOMEWHERE)
def chdir_room(scene: Scene) -> None:
    os.chdir(scene.workspace)
    shutil.rmtree(scene.attempt_dir)


@body("place/chdir outside")
def chdir_outside(scene: Scene) -> None:
    os.chdir(scene.outside)


@body("place/a directory is kept open")
def directory_open(scene: Scene) -> None:
    KEPT.append(os.open(scene.workspace, os.O_RDONLY))


# --- descriptors ----------------------------------------------------------------------------------


@body("descriptors/0 to 2 closed", worker=True)
def standard_closed(scene: Scene) -> None:
    """The next file that is opened gets the number of stdout."""
    for fd in range(3):
        os.close(fd)


@body("descriptors/0 to 2 closed, and printing")
def closed_and_printing(scene: Scene) -> None:
    standard_closed(scene)
    file = (scene.workspace / "in.bin").open("rb")
    KEPT.append(file)
    try:
        sys.stdout.write("into whatever is number 1 now\n" * 100)
        sys.stdout.flush()
    except OSError:
        return


@body("descriptors/all closed", FAILS, FAILS_SOMEWHERE, quick=True, worker=True)
def all_closed(scene: Scene) -> None:
    os.closerange(0, 4096)


@body("descriptors/all but the standard ones closed", FAILS, FAILS_SOMEWHERE, worker=True)
def most_closed(scene: Scene) -> None:
    os.closerange(3, 4096)


@body("descriptors/all but the standard ones are /dev/null", EITHER, FAILS_SOMEWHERE, worker=True)
def replaced(scene: Scene) -> None:
    """What was a pipe or a database swallows everything and has nothing to say."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in map(int, os.listdir("/proc/self/fd")):
        if fd > 2 and fd != null:
            try:
                os.fstat(fd)
            except OSError:
                continue
            os.dup2(null, fd)


@body("descriptors/all used up", EITHER, FAILS_SOMEWHERE, worker=True)
def used_up(scene: Scene) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    while True:
        try:
            KEPT.append(os.open(scene.workspace / "in.txt", os.O_RDONLY))
        except OSError:
            return


@body("descriptors/noise of the kind that travels on the channel", EITHER, worker=True)
def noise(scene: Scene) -> None:
    """A stray write to a number that is not the author's own."""
    for fd in map(int, os.listdir("/proc/self/fd")):
        try:
            if fd > 2 and os.readlink(f"/proc/self/fd/{fd}").startswith(("socket:", "pipe:")):
                os.write(fd, b"\x00\x00\x00\x09not our words")
        except OSError:
            continue


# --- ends -----------------------------------------------------------------------------------------


@body("end/os._exit(0)", FAILS, DIED.format("exit code 0"), quick=True, worker=True)
def exit_zero(scene: Scene) -> None:
    """R3: an executor that ends well has not completed anything."""
    os._exit(0)


@body("end/os._exit(3)", FAILS, DIED.format("exit code 3"))
def exit_three(scene: Scene) -> None:
    os._exit(3)


@body("end/os._exit in a thread, later", EITHER, FAILS_SOMEWHERE)
def exit_later(scene: Scene) -> None:
    timer = threading.Timer(0.02, os._exit, (0,))
    timer.daemon = True
    timer.start()


@body("end/os.abort", FAILS, DIED.format("SIGABRT"))
def abort(scene: Scene) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.abort()


@body("end/segmentation fault", FAILS, DIED.format("SIGSEGV"))
def segfault(scene: Scene) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    ctypes.string_at(0)


@body("end/sys.exit(0)", FAILS, "^body: SystemExit")
def system_exit(scene: Scene) -> None:
    sys.exit(0)


@body("end/sys.exit with words", FAILS, "^body: SystemExit.*words")
def system_exit_words(scene: Scene) -> None:
    sys.exit("words")


@body("end/another program in its place", FAILS, DIED.format(""), worker=True)
def execute(scene: Scene) -> None:
    os.execv("/bin/true", ["true"])


@body("end/another program that stays", FAILS, DIED.format(""), worker=True)
def execute_and_stay(scene: Scene) -> None:
    os.execv("/bin/sleep", ["sleep", "3"])


@body("end/faulthandler ends it later", EITHER, FAILS_SOMEWHERE)
def fault_handler(scene: Scene) -> None:
    faulthandler.dump_traceback_later(0.02, exit=True)


@body("end/deep recursion without a limit", FAILS, FAILS_SOMEWHERE)
def recursion_segfault(scene: Scene) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.setrecursionlimit(10**9)
    nested: list[Any] = []
    for _ in range(1_000_000):
        nested = [nested]
    repr(nested)


@body("end/recursion error", FAILS, "^body: RecursionError")
def recursion(scene: Scene) -> None:
    def down(n: int) -> int:
        return down(n + 1)

    down(0)


@body("end/memory error", FAILS, "^body: MemoryError")
def memory(scene: Scene) -> None:
    bytearray(1 << 50)


# --- signals --------------------------------------------------------------------------------------


@body("signal/SIGTERM to itself", FAILS, DIED.format("SIGTERM"), worker=True)
def sigterm(scene: Scene) -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(10)  # until it is ended


@body("signal/SIGKILL to its group", FAILS, DIED.format("SIGKILL"), worker=True)
def sigkill_group(scene: Scene) -> None:
    os.killpg(0, signal.SIGKILL)


@body("signal/SIGINT to itself", EITHER, FAILS_SOMEWHERE)
def sigint(scene: Scene) -> None:
    signal.raise_signal(signal.SIGINT)


@body("signal/SIGSTOP to itself", frozenset({FAILED, TIMED_OUT}), task="timed", worker=True)
def sigstop(scene: Scene) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


@body("signal/SIGSTOP to its group", frozenset({FAILED, TIMED_OUT}), task="timed")
def sigstop_group(scene: Scene) -> None:
    os.killpg(0, signal.SIGSTOP)


@body("signal/SIGALRM soon, nobody expects it", EITHER, FAILS_SOMEWHERE)
def alarm(scene: Scene) -> None:
    signal.setitimer(signal.ITIMER_REAL, 0.01)


def _raise(*_: object) -> None:
    raise InterruptedError("the alarm of the body")


@body("signal/SIGALRM once, its handler raises", EITHER, FAILS_SOMEWHERE, quick=True)
def alarm_raises(scene: Scene) -> None:
    """An exception in the middle of what comes after the body."""
    signal.signal(signal.SIGALRM, _raise)
    signal.setitimer(signal.ITIMER_REAL, 0.01)


@body("signal/SIGALRM again and again, its handler raises", EITHER, FAILS_SOMEWHERE, worker=True)
def alarms_raise(scene: Scene) -> None:
    signal.signal(signal.SIGALRM, _raise)
    signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)


@body("signal/SIGALRM again and again, its handler returns")
def alarms(scene: Scene) -> None:
    """Every system call is interrupted."""
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)


@body("signal/SIGCHLD ignored", worker=True)
def sigchld(scene: Scene) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)


@body("signal/all blocked")
def blocked(scene: Scene) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())


@body("signal/SIGPIPE ends the process", EITHER, FAILS_SOMEWHERE)
def sigpipe(scene: Scene) -> None:
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)


@body("signal/SIGTERM to the parent", EITHER, interrupts=True)
def parent_sigterm(scene: Scene) -> None:
    os.kill(os.getppid(), signal.SIGTERM)
    time.sleep(10)  # until it is ended with its parent


@body("signal/SIGKILL to the parent", EITHER, interrupts=True)
def parent_sigkill(scene: Scene) -> None:
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(10)  # until it is ended with its parent


@body("signal/SIGCHLD and SIGWINCH to the parent")
def parent_harmless(scene: Scene) -> None:
    for number in (signal.SIGCHLD, signal.SIGWINCH, signal.SIGURG, signal.SIGCONT):
        os.kill(os.getppid(), number)


@body("signal/it leaves its process group")
def new_group(scene: Scene) -> None:
    """Whoever ends its group by its number does not find it there."""
    os.setpgid(0, os.getpgid(os.getppid()))


# --- limits ---------------------------------------------------------------------------------------


def _limit(which: int, value: int) -> None:
    """Lower it for good: an ordinary process cannot take a hard limit back."""
    resource.setrlimit(which, (value, value))


@body("limit/umask 0777", worker=True)
def umask_all(scene: Scene) -> None:
    os.umask(0o777)


@body("limit/umask 0")
def umask_nothing(scene: Scene) -> None:
    os.umask(0)


@body("limit/16 descriptors", EITHER, FAILS_SOMEWHERE, quick=True, worker=True)
def few_files(scene: Scene) -> None:
    _limit(resource.RLIMIT_NOFILE, 16)


@body("limit/files of no size", EITHER, FAILS_SOMEWHERE, worker=True)
def no_size(scene: Scene) -> None:
    _limit(resource.RLIMIT_FSIZE, 0)


@body("limit/memory as it is now", EITHER, FAILS_SOMEWHERE, worker=True)
def no_memory(scene: Scene) -> None:
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[0])
    _limit(resource.RLIMIT_AS, pages * resource.getpagesize() + (1 << 20))


@body("limit/no more processes", EITHER, FAILS_SOMEWHERE)
def no_processes(scene: Scene) -> None:
    _limit(resource.RLIMIT_NPROC, 0)


@body("limit/one second of CPU", EITHER, FAILS_SOMEWHERE)
def no_time(scene: Scene) -> None:
    used = int(time.process_time()) + 1
    _limit(resource.RLIMIT_CPU, used)


@body("limit/small stack for new threads", EITHER, FAILS_SOMEWHERE)
def small_stacks(scene: Scene) -> None:
    threading.stack_size(32_768)


@body("limit/recursion of 60", EITHER, FAILS_SOMEWHERE, worker=True)
def low_recursion(scene: Scene) -> None:
    """As low as it may be at this depth."""
    for limit in range(20, 200, 5):
        try:
            sys.setrecursionlimit(limit)
        except RecursionError:
            continue
        return


@body("limit/least priority", tree=lambda tree: tree)
def nice(scene: Scene) -> None:
    os.nice(19)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


@body("limit/another user from now on", EITHER, FAILS_SOMEWHERE, needs="root", worker=True)
def another_user(scene: Scene) -> None:
    """What was made as root cannot be removed any more."""
    os.setresuid(65534, 65534, 65534)
