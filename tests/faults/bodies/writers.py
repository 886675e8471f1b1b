"""Bodies that leave somebody behind: threads, children, mappings that write on.

What is published is one whole state of each file, or the attempt is refused; the attempts that
follow are none of their business.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

from tests.faults.bodies.body import EITHER, FAILS, Body, Register, Scene, body
from tests.faults.bodies.content import BIN, KEPT, _mapped

__all__ = ["Body"]
TICK = b"tick\n"
LATE = "late-"
CHANGED = r"^(body|diff|stage): "


def ticks(path: str, content: bytes) -> bool:
    """Say what somebody who writes on may have added: any beginning of an endless row of ticks."""
    name = path.removeprefix("data/")
    if not name.startswith(LATE):
        return False
    return (TICK * (len(content) // len(TICK) + 1)).startswith(content)


def leaving(
    name: str, reason: str = CHANGED, *, quick: bool = False, worker: bool = False
) -> Register:
    return body(
        f"left behind/{name}",
        EITHER,
        reason,
        valid=ticks,
        stays=True,
        quick=quick,
        worker=worker,
    )


def _write_on(scene: Scene) -> None:
    """Append to one file, and make new ones, until told to stop."""
    going_on, number = scene.going_on(), 0
    here = str(scene.workspace)
    while going_on():
        number += 1
        with suppress(OSError):
            fd = os.open(f"{here}/{LATE}log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            os.write(fd, TICK)
            os.close(fd)
            fd = os.open(f"{here}/{LATE}{number % 50}", os.O_WRONLY | os.O_CREAT, 0o644)
            os.write(fd, TICK)
            os.close(fd)
        time.sleep(0.0005)  # others run too


@leaving("thread that writes on")
def daemon_thread(scene: Scene) -> None:
    threading.Thread(target=_write_on, args=(scene,), daemon=True).start()


@leaving("thread that is no daemon")
def plain_thread(scene: Scene) -> None:
    threading.Thread(target=_write_on, args=(scene,), daemon=False).start()


@leaving("thread of a pool")
def pool_thread(scene: Scene) -> None:
    pool = concurrent.futures.ThreadPoolExecutor(2)
    KEPT.append((pool, pool.submit(_write_on, scene)))


@leaving("thread that appends by an open descriptor")
def open_descriptor(scene: Scene) -> None:
    file = (scene.workspace / f"{LATE}open").open("ab", buffering=0)
    KEPT.append(file)
    going_on = scene.going_on()

    def append() -> None:
        while going_on():
            file.write(TICK)
            time.sleep(0.0002)  # others run too

    threading.Thread(target=append, daemon=True).start()


@body(
    "left behind/thread that writes through a mapping",
    EITHER,
    CHANGED,
    tree=lambda tree: {path: content for path, content in tree.items() if path != "data/in.bin"},
    valid=lambda path, content: path == "data/in.bin" and content[1:] == BIN[1:],
    everywhere=True,
)
def open_mapping(scene: Scene) -> None:
    """The one byte may have any value; the file is there, whole, and nothing else is."""
    mapped, going_on = _mapped(scene.workspace / "in.bin"), scene.going_on()
    KEPT.append(mapped)

    def turn() -> None:
        number = 0
        while going_on():
            number = (number + 1) % 256
            mapped[0] = number

    threading.Thread(target=turn, daemon=True).start()


@leaving("thread that makes the directory again when it is gone")
def making_again(scene: Scene) -> None:
    """A removal that finds it full again must not be the end of the executor."""
    going_on, here = scene.going_on(), str(scene.workspace)

    def make() -> None:
        number = 0
        while going_on():
            number += 1
            with suppress(OSError):
                os.makedirs(here, exist_ok=True)
                fd = os.open(f"{here}/{LATE}{number % 20}", os.O_WRONLY | os.O_CREAT, 0o644)
                os.write(fd, TICK)
                os.close(fd)

    threading.Thread(target=make, daemon=True).start()


@leaving("thread that truncates and writes a file")
def truncating(scene: Scene) -> None:
    going_on, path = scene.going_on(), f"{scene.workspace}/{LATE}cut"

    def cut() -> None:
        while going_on():
            with suppress(OSError):
                fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
                os.write(fd, TICK * 1000)
                os.close(fd)

    threading.Thread(target=cut, daemon=True).start()


@leaving("program that writes on", worker=True)
def program(scene: Scene) -> None:
    """A shell in the executor's process group."""
    subprocess.Popen(_shell(scene), stdin=subprocess.DEVNULL)


@leaving("daemon of its own session, deaf to SIGTERM", worker=True)
def daemon(scene: Scene) -> None:
    subprocess.Popen(
        ["setsid", "--fork", *_shell(scene, "trap '' TERM HUP INT;")], stdin=subprocess.DEVNULL
    )


def _shell(scene: Scene, before: str = "") -> list[str]:
    loop = (
        f'n=0; while [ $n -lt 4000 ] && [ ! -e "$2/stop" ]; do n=$((n+1));'
        f' printf "tick\\n" >> "$1/{LATE}shell"; sleep 0.005; done'
    )
    return ["sh", "-c", f"{before} {loop}", "sh", str(scene.workspace), str(scene.scratch)]


@leaving("child that holds the pipes of the executor")
def holding_pipes(scene: Scene) -> None:
    """The output of an executor does not end while somebody has it open."""
    subprocess.Popen(["setsid", "--fork", "sleep", "25"], close_fds=False)


@leaving("double fork that writes on", r"^(body|diff|stage|executor)", worker=True)
def double_fork(scene: Scene) -> None:
    if (child := os.fork()) == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            _write_on(scene)
        os._exit(0)
    os.waitpid(child, 0)


@leaving("fork that writes on", r"^(body|diff|stage|executor)")
def fork(scene: Scene) -> None:
    if os.fork() == 0:
        _write_on(scene)
        os._exit(0)


@body("left behind/fork whose child returns too", FAILS, "copy", quick=True, worker=True)
def fork_returns(scene: Scene) -> None:
    """Two processes come out of one body: only one may go on."""
    os.fork()


@body("left behind/fork whose child returns later", FAILS, "copy", worker=True)
def fork_returns_later(scene: Scene) -> None:
    if os.fork() == 0:
        time.sleep(1.5)  # later than its parent


@body("left behind/fork whose child raises", FAILS, "copy|enough")
def fork_raises(scene: Scene) -> None:
    if os.fork() == 0:
        raise RuntimeError("enough")


@body("left behind/fork whose child exits with sys.exit", FAILS, "copy")
def fork_exits(scene: Scene) -> None:
    if os.fork() == 0:
        sys.exit(0)


@body("left behind/double fork whose grandchild returns", EITHER, "copy|grandchild|process")
def double_fork_returns(scene: Scene) -> None:
    """It is no child of the executor any more: nobody need notice it, and it ends where it returns.

    What it could do until then is what every process left behind could do, and is found as that.
    """
    if (child := os.fork()) == 0:
        if os.fork():
            os._exit(0)
        time.sleep(0.3)  # until its parent is gone
        return
    os.waitpid(child, 0)


@body("left behind/fork in a thread, whose child returns", EITHER, "copy|process")
def fork_in_thread(scene: Scene) -> None:
    thread = threading.Thread(target=os.fork)
    thread.start()
    thread.join()


@leaving("multiprocessing pool", r"^(body|executor)")
def pool(scene: Scene) -> None:
    made = multiprocessing.get_context("fork").Pool(2)
    KEPT.append(made)


@leaving("multiprocessing pool that works on", r"^(body|diff|stage|executor)")
def busy_pool(scene: Scene) -> None:
    made = multiprocessing.get_context("fork").Pool(2)
    KEPT.append((made, made.apply_async(_write_on, (scene,))))


@leaving("spawned process that works on", r"^(body|diff|stage|executor)")
def spawned(scene: Scene) -> None:
    context = multiprocessing.get_context("spawn")
    made = context.Process(target=time.sleep, args=(25,))
    made.start()
    KEPT.append(made)


@leaving("event loop in a thread")
def event_loop(scene: Scene) -> None:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()

    async def write() -> None:
        going_on = scene.going_on()
        while going_on():
            with suppress(OSError), (scene.workspace / f"{LATE}async").open("ab") as file:
                file.write(TICK)
            await asyncio.sleep(0.001)

    KEPT.append((loop, asyncio.run_coroutine_threadsafe(write(), loop)))


@body("left behind/event loop with tasks that nobody awaits")
def pending_tasks(scene: Scene) -> None:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    KEPT.append((loop, loop.create_task(asyncio.sleep(3600))))
    loop.run_until_complete(asyncio.sleep(0))


@body("left behind/handlers at exit that write, raise and wait")
def at_exit(scene: Scene) -> None:
    def write() -> None:
        scene.workspace.mkdir(parents=True, exist_ok=True)
        (scene.workspace / "at-exit").write_bytes(b"x")

    atexit.register(time.sleep, 5)
    atexit.register(write)
    atexit.register(sys.exit, 3)


@body("left behind/five hundred threads")
def many_threads(scene: Scene) -> None:
    going_on = scene.going_on()

    def wait() -> None:
        while going_on():
            time.sleep(1)  # between two looks

    for _ in range(500):
        threading.Thread(target=wait, daemon=True).start()
