"""Nothing that a program started outlives its attempt (Q7)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from perago.programs import launching
from perago.protocol.values import Status
from perago.tasks.cancellation import CancellationToken, holding
from perago.testing import Lab
from tests.patience import until
from tests.programs.conftest import Declare

LATE = "the file that comes late"
LEAVES = {
    "a child": "subprocess.Popen(late)",
    "a child in a session of its own": "subprocess.Popen(late, start_new_session=True)",
    "a double fork": """
if not os.fork():
    os.setsid()
    if not os.fork():
        os.execvp(late[0], late)
    os._exit(0)
os.wait()
""",
    "one that ignores signals": """
subprocess.Popen(["sh", "-c", "trap '' TERM HUP INT; " + late[2]], start_new_session=True)
""",
    "a chain that goes on": """
subprocess.Popen([sys.executable, "-c", '''
import os, time
while True:
    if os.fork():
        os._exit(0)
    os.setsid()
    time.sleep(0.001)
'''], start_new_session=True)
""",
}


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state != "Z"


def processes_with(word: str) -> list[int]:
    """Find processes by a word of their command or environment."""
    found = []
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            try:
                if word.encode() in (each / "environ").read_bytes():
                    found.append(int(each.name))
            except OSError:
                continue
    return [pid for pid in found if alive(pid)]


@pytest.mark.parametrize("leave", LEAVES.values(), ids=LEAVES.keys())
def test_q7_what_a_program_leaves_is_ended_before_the_attempt_goes_on(
    lab: Lab, declare: Declare, tmp_path: Path, leave: str
) -> None:
    late = ["sh", "-c", f"sleep 0.5; touch '{LATE}'; sleep 1000"]
    run = lab.run(
        declare(
            f"import os, subprocess, sys\nlate = {late!r}\n{leave}\n"
            "open('done.txt', 'w').write('x')\n"
        )
    )
    assert run.completed, run.reason
    assert run.files == {"done.txt": b"x"}
    assert processes_with(str(tmp_path / "lab")) == []


def cancelled_when(ready: Path, lab: Lab, act: Callable[[], None]) -> threading.Thread:
    """Cancel once a body has begun."""

    def wait() -> None:
        until(ready.exists, "the program has begun")
        act()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def test_q7_a_lost_attempt_is_asked_to_end(lab: Lab, declare: Declare, tmp_path: Path) -> None:
    ready, asked = tmp_path / "ready", tmp_path / "asked"
    step = declare(
        f"""
        import signal, sys, time
        def ask(*_):
            open({str(asked)!r}, "w").write("x")
            sys.exit(0)
        signal.signal(signal.SIGTERM, ask)
        open({str(ready)!r}, "w").write("x")
        time.sleep(1000)
        """
    )
    token = CancellationToken()
    thread = cancelled_when(ready, lab, token.cancel)
    with holding(token, whole_process=False):
        run = lab.run(step)
    thread.join()
    assert asked.exists()
    assert run.result == {}, "it ended in good order, and the runtime decides what that is worth"


def test_q7_one_that_does_not_listen_is_ended_after_a_grace(
    lab: Lab, declare: Declare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launching, "GRACE_SECONDS", 0.2)
    ready = tmp_path / "ready"
    step = declare(
        f"""
        import signal, subprocess, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        subprocess.Popen(["sleep", "1000"], start_new_session=True)
        open({str(ready)!r}, "w").write("x")
        while True:
            time.sleep(1000)
        """
    )
    token = CancellationToken()
    thread = cancelled_when(ready, lab, token.cancel)
    with holding(token, whole_process=False):
        run = lab.run(step)
    thread.join()
    assert run.status == Status.FAILED
    assert "was ended by SIGKILL" in run.reason
    assert processes_with(str(tmp_path / "lab")) == []


def test_q7_cancelled_before_it_began_it_ends_at_once(lab: Lab, declare: Declare) -> None:
    token = CancellationToken()
    token.cancel()
    with holding(token, whole_process=False):
        run = lab.run(declare("import time; time.sleep(1000)"))
    assert "was ended by SIGTERM" in run.reason


@pytest.mark.parametrize("victim", ["executor", "launcher", "program"])
def test_q7_nothing_is_left_whoever_is_killed(
    declare: Declare, tmp_path: Path, victim: str
) -> None:
    ready = tmp_path / "ready"
    step = declare(
        f"""
        import os, subprocess, time
        left = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        open({str(ready)!r} + ".new", "w").write(f"{{os.getppid()}} {{os.getpid()}} {{left.pid}}")
        os.rename({str(ready)!r} + ".new", {str(ready)!r})
        time.sleep(1000)
        """
    )
    words = (
        "from pathlib import Path\n"
        "from perago.testing import Lab\n"
        f"lab = Lab(Path({str(tmp_path / 'lab')!r}))\n"
        f"run = lab.run({step!r})\n"
        "print(run.reason)\n"
    )
    executor = subprocess.Popen(
        [sys.executable, "-c", words],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    until(lambda: ready.exists() or executor.poll() is not None, "the program has begun")
    launcher, program, left = map(int, ready.read_text().split())
    os.kill({"executor": executor.pid, "launcher": launcher, "program": program}[victim], 9)
    out, _ = executor.communicate()
    until(lambda: not alive(program), "the end of the program")
    until(lambda: not alive(left), "the end of what it started")
    if victim == "launcher":
        assert "launcher of the program was ended" in out
    if victim == "program":
        assert "was ended by SIGKILL" in out


def test_a_body_that_goes_on_writing_is_not_in_the_commit(lab: Lab, declare: Declare) -> None:
    """The program has ended, what it started has not: half of its file must not be published."""
    run = lab.run(
        declare(
            """
            import subprocess
            subprocess.Popen(["sh", "-c", "while :; do echo x >> grows.txt; done"])
            while True:
                try:
                    if len(open("grows.txt").read()) > 1000: break
                except FileNotFoundError: pass
            """
        )
    )
    assert run.completed, run.reason
    assert set(run.files["grows.txt"].splitlines()) == {b"x"}


def test_the_process_that_forks_launchers_is_started_again(lab: Lab, declare: Declare) -> None:
    step = declare("open('done.txt', 'w').write('x')")
    assert lab.run(step).completed
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    (mother,) = [
        int(pid) for pid in children if b"launcher.py" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]
    os.kill(mother, signal.SIGKILL)
    until(lambda: not alive(mother), "its end")
    assert lab.run(step).completed


def test_q7_cancelled_after_its_end_it_is_not_told(
    lab: Lab, declare: Declare, tmp_path: Path
) -> None:
    """The descriptor that would tell it belongs to another file by then: of an upload, for one."""
    token = CancellationToken()
    with holding(token, whole_process=False):
        assert lab.run(declare("pass")).completed
    others = [(tmp_path / f"other{number}").open("wb") for number in range(20)]
    token.cancel()
    for other in others:
        other.close()
        assert Path(other.name).read_bytes() == b""
