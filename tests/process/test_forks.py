from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from perago.errors import TaskFailed
from perago.process.forks import CAME_BACK, ForkWatch

WATCH = ForkWatch()


def test_a_body_that_forks_nothing_is_left_alone() -> None:
    with WATCH.alone():
        pass


def test_programs_and_copies_that_were_waited_for_are_fine() -> None:
    with WATCH.alone():
        subprocess.run([sys.executable, "-c", ""], check=True)
        if (pid := os.fork()) == 0:
            os._exit(0)
        os.waitpid(pid, 0)


def test_a_program_that_runs_on_is_the_authors_own_affair() -> None:
    with WATCH.alone():
        program = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    program.kill()
    program.wait()


@pytest.mark.parametrize("seconds", [0, 0.2])
def test_a_copy_that_leaves_the_body_ends_there_and_the_attempt_fails(seconds: float) -> None:
    before = os.getpid()
    with pytest.raises(TaskFailed, match=r"a forked copy|left a copy"), WATCH.alone():  # noqa: PT012 - as a body does
        if os.fork() == 0:
            time.sleep(seconds)  # the copy lives on for a while, or not
    assert os.getpid() == before, "the copy must never get here"


def test_a_copy_that_raises_does_not_come_back_either() -> None:
    with WATCH.alone():
        pid = os.fork()
        if pid == 0:
            with WATCH.alone():
                raise RuntimeError
        _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) != 0


def test_a_copy_left_behind_is_killed() -> None:
    with pytest.raises(TaskFailed, match="left a copy") as caught, WATCH.alone():  # noqa: PT012
        pid = os.fork()
        if pid == 0:
            time.sleep(600)  # until it is killed
            os._exit(0)
    assert str(pid) in str(caught.value)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    assert CAME_BACK == 71
