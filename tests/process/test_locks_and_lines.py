from __future__ import annotations

import os
import signal
import subprocess
import sys
from multiprocessing import Pipe
from pathlib import Path

import pytest

from perago.process.lines import LineReader
from perago.process.lock import FileLock, await_gone, executor_lock, tidy_locks
from perago.redaction import keep_secret
from tests.patience import LIMIT

HOLDER = """
import sys, time
from pathlib import Path
from perago.process.lock import FileLock
assert FileLock(Path(sys.argv[1])).acquire()
print("held", flush=True)
time.sleep(600)
"""


def test_one_holder_at_a_time_also_when_the_file_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "sub" / "x.lock"
    one, other = FileLock(path), FileLock(path)
    assert one.acquire()
    assert not other.acquire()
    assert not other.acquire(0.1)
    one.release(remove=True)
    one.release()
    assert other.acquire()
    assert not one.acquire()
    path.unlink()
    assert one.acquire(), "a lock on a file that is gone holds nobody up"
    other.release()
    assert path.exists()
    one.release()


def test_a_killed_holder_holds_nothing(tmp_path: Path) -> None:
    lock = executor_lock(tmp_path, "abc")
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, lock.path], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    with holder, holder.stdout:
        assert holder.stdout.readline() == b"held\n"
        tidy_locks(tmp_path)
        assert not await_gone(tmp_path, "abc", 0.1)
        holder.send_signal(signal.SIGKILL)
        assert await_gone(tmp_path, "abc", LIMIT)
    assert not lock.path.exists()
    assert await_gone(tmp_path, "abc", 0)
    assert await_gone(tmp_path, "", 0)


def test_locks_of_the_dead_are_tidied(tmp_path: Path) -> None:
    executor_lock(tmp_path, "dead").path.touch()
    (tmp_path / "run-1.lock").touch()
    tidy_locks(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["run-1.lock"]


def test_lines_are_read_without_blocking() -> None:
    read_end, write_end = Pipe(duplex=False)
    reader = LineReader("stdout", read_end)
    assert reader.read() == []
    os.write(write_end.fileno(), b"one\ntw")
    assert reader.read() == ["one"]
    os.write(write_end.fileno(), b"o\r\n\xff\n")
    assert reader.read() == ["two", "\ufffd"]
    os.write(write_end.fileno(), b"unfinished")
    assert reader.drain() == ["unfinished"]
    assert not reader.at_end
    write_end.close()
    assert reader.read() == []
    assert reader.at_end
    reader.close()


def test_an_endless_line_is_cut() -> None:
    read_end, write_end = Pipe(duplex=False)
    reader = LineReader("stdout", read_end)
    lines: list[str] = []
    for _ in range(40):
        os.write(write_end.fileno(), b"x" * 4096)
        lines += reader.read()
    lines += reader.drain()
    assert sum(map(len, lines)) == 40 * 4096
    assert 1 < len(lines) < 5
    write_end.close()
    reader.close()


@pytest.mark.parametrize("lead", [65_500, 65_515, 65_530, 69_600, 69_615, 69_628])
def test_v8_an_endless_line_is_not_cut_inside_a_key(lead: int) -> None:
    key = "k3y-of-an-endless-line-0123456789"
    keep_secret(key)
    read_end, write_end = Pipe(duplex=False)
    reader = LineReader("stdout", read_end)
    said = b"x" * lead + key.encode() + b"y" * 10_000
    lines: list[str] = []
    for start in range(0, len(said), 4096):
        os.write(write_end.fileno(), said[start : start + 4096])
        lines += reader.read()
    lines += reader.drain()
    assert "".join(lines) == said.decode()
    assert len(lines) > 1
    assert sum(key in line for line in lines) == 1
    write_end.close()
    reader.close()
