"""W8, V8: JSON lines with identity, rotation, retention, private files, no secret."""

from __future__ import annotations

import json
import os
import resource
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from perago.clock import SystemClock
from perago.errors import RuntimeConfigError
from perago.observe.logfiles import LogFiles
from perago.observe.logs import JsonLog
from perago.observe.secrets import Secrets
from perago.protocol.worker_events import WorkerEvent
from perago.testing.clock import ManualClock
from tests.observe import told
from tests.patience import LIMIT

IDENTITY = (
    "workflow_instance_id", "task_id", "retry_count", "execution_id", "reference_task_name",
    "task_def_name", "worker_id",
)  # fmt: skip


def open_log(root: Path, clock: ManualClock | None = None, max_bytes: int = 10**6) -> LogFiles:
    return LogFiles(
        root, "one", clock or SystemClock(), max_bytes=max_bytes, retention_seconds=3600
    )


def watcher(directory: Path) -> tuple[JsonLog, LogFiles]:
    files = open_log(directory / "logs")
    secrets = Secrets.of(told.settings(directory))
    return JsonLog(files, SystemClock(), secrets, "one"), files


def lines(root: Path) -> list[dict[str, Any]]:
    texts = [path.read_text() for path in sorted(root.glob("*.jsonl"))]
    return [json.loads(line) for line in "".join(texts).splitlines()]


def test_w8_each_line_carries_the_identity_of_its_attempt(tmp_path: Path) -> None:
    log, _ = watcher(tmp_path)
    claim = told.claim(retry=2)
    told.completed(log, claim)
    log.output(claim, "w-0001", "stdout", "hello")
    log.close(1)
    found = lines(tmp_path / "logs")
    for line in found:
        assert {name: line[name] for name in IDENTITY} == {
            "workflow_instance_id": claim.attempt.workflow_instance_id,
            "task_id": claim.attempt.task_id,
            "retry_count": 2,
            "execution_id": claim.execution_id,
            "reference_task_name": "double_ref",
            "task_def_name": "double",
            "worker_id": "w-0001",
        }
        assert line["instance_id"] == "one"
        assert line["at"].endswith("Z")
    ended = next(line for line in found if line["event"] == "attempt ended")["facts"]
    assert ended["status"] == "COMPLETED"
    assert ended["phases"]["body"] == 0.5
    assert (ended["added"], ended["removed"], ended["ref"]) == (2, 1, "c1")
    assert found[-1]["facts"] == {"stream": "stdout", "text": "hello"}


def test_v8_no_secret_params_or_result_in_a_line(tmp_path: Path) -> None:
    log, files = watcher(tmp_path)
    told.completed(log, told.claim())
    told.failed(log, told.claim(), error=ValueError(told.SECRETS[1]))
    log.output(None, "w-0001", "stderr", f"url http://u:{told.SECRETS[1].replace('/', '%2F')}@h")
    log.output(told.claim(), "w-0001", "stderr", f"key {told.SECRETS[0]} and {told.SECRETS[3]}")
    log.worker(
        WorkerEvent.STARTED, {"settings": {"auth": told.SECRETS[2]}, "list": [told.SECRETS[3]]}
    )
    log.close(1)
    text = files.path.read_text()
    for secret in (*told.SECRETS, "canary-param", "canary-result", "canary%2F"):
        assert secret not in text
    assert "[hidden]" in text
    assert "Traceback" in text


def test_v8_the_files_are_for_the_worker_alone(tmp_path: Path) -> None:
    umask = os.umask(0)
    try:
        files = open_log(tmp_path / "deep" / "logs")
    finally:
        os.umask(umask)
    assert stat.S_IMODE(files.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(files.path.parent.stat().st_mode) == 0o700
    files.close()


def test_a_directory_that_everybody_can_write_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(RuntimeConfigError, match=r"everybody can write .* chmod 700"):
        open_log(tmp_path)


def test_a_root_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RuntimeConfigError, match="PERAGO_LOG_ROOT"):
        open_log(tmp_path / "file" / "logs")


def test_w8_a_file_is_rotated_at_its_size_and_no_line_is_lost(tmp_path: Path) -> None:
    files = open_log(tmp_path / "logs", max_bytes=1000)
    for number in range(100):
        files.write(json.dumps({"number": number, "text": "x" * 50}))
    files.close()
    found = sorted((tmp_path / "logs").iterdir())
    assert len(found) > 5
    assert all(path.stat().st_size <= 1000 for path in found)
    assert all(str(os.getpid()) in path.name and "one" in path.name for path in found)
    assert [line["number"] for line in lines(tmp_path / "logs")] == list(range(100))


def test_a_line_longer_than_a_file_is_still_written(tmp_path: Path) -> None:
    files = open_log(tmp_path / "logs", max_bytes=100)
    files.write("x" * 500)
    files.write("y")
    files.close()
    assert sum(path.stat().st_size for path in (tmp_path / "logs").iterdir()) == 503


def test_w8_old_files_go_also_those_of_dead_processes(tmp_path: Path) -> None:
    root = tmp_path / "logs"
    root.mkdir(mode=0o700)
    old, young = root / "perago-two-1-1.0000.jsonl", root / "perago-two-1-1.0001.jsonl"
    foreign = root / "notes.txt"
    for path in (old, young, foreign):
        path.write_text("{}\n")
    for path in (old, foreign):
        os.utime(path, (1, 1))
    files = open_log(root)
    assert set(root.iterdir()) == {young, foreign, files.path}
    files.close()


def test_w8_the_open_file_of_a_living_process_stays_however_old(tmp_path: Path) -> None:
    root = tmp_path / "logs"
    program = (
        "import sys, time, pathlib\n"
        "from perago.clock import SystemClock\n"
        "from perago.observe.logfiles import LogFiles\n"
        "files = LogFiles(pathlib.Path(sys.argv[1]), 'idle', SystemClock(), max_bytes=1000,\n"
        "                 retention_seconds=3600)\n"
        "print(files.path, flush=True)\n"
        "time.sleep(100)\n"
    )
    idle = subprocess.Popen(
        [sys.executable, "-c", program, str(root)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert idle.stdout
        path = Path(idle.stdout.readline().strip())
        os.utime(path, (1, 1))
        files = open_log(root)
        assert path.exists()
        idle.send_signal(signal.SIGKILL)
        idle.wait(LIMIT)
        assert files.sweep() == [path]
        files.close()
    finally:
        idle.kill()
        idle.communicate(timeout=LIMIT)


def test_w8_a_long_running_worker_sweeps_again(tmp_path: Path) -> None:
    clock = ManualClock(start=10**9)
    files = open_log(tmp_path / "logs", clock)
    old = tmp_path / "logs" / "perago-x-1-1.0000.jsonl"
    old.write_text("{}\n")
    os.utime(old, (1, 1))
    files.write("{}")
    assert old.exists()
    clock.advance(3601)
    files.write("{}")
    assert not old.exists()
    files.close()


def test_a_full_disk_loses_lines_and_says_so_but_never_raises(tmp_path: Path) -> None:
    """A limit on the size of files stands for a disk that takes no more."""
    clock = ManualClock()
    said: list[str] = []
    files = LogFiles(
        tmp_path / "logs", "one", clock, max_bytes=10**6, retention_seconds=10**10,
        complain=said.append,
    )  # fmt: skip
    files.write("before")
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
        for _ in range(3):
            files.write("a line that does not fit any more")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert files.dropped == 3
    assert len(said) == 1
    clock.advance(31)
    files.write("after")
    files.close()
    assert files.path.read_text() == "after\n"


@pytest.mark.parametrize(
    "name", ["perago-notes.jsonl", "perago-report-2024.jsonl", "perago-a-1-1.jsonl", "x.jsonl"]
)
def test_retention_removes_only_files_that_a_worker_has_named(tmp_path: Path, name: str) -> None:
    root = tmp_path / "logs"
    root.mkdir(mode=0o700)
    mine = root / name
    mine.write_text("of the operator")
    os.utime(mine, (1, 1))
    open_log(root).close()
    assert mine.read_text() == "of the operator"


def test_retention_leaves_what_is_behind_a_link_and_what_is_no_file(tmp_path: Path) -> None:
    root, precious = tmp_path / "logs", tmp_path / "precious.jsonl"
    root.mkdir(mode=0o700)
    precious.write_text("of the operator")
    os.utime(precious, (1, 1))
    (root / "perago-two-1-1.0000.jsonl").symlink_to(precious)
    (root / "perago-two-1-1.0001.jsonl").mkdir()
    os.mkfifo(root / "perago-two-1-1.0002.jsonl")
    os.utime(root / "perago-two-1-1.0002.jsonl", (1, 1))
    files = open_log(root)
    assert files.sweep() == []
    files.close()
    assert precious.read_text() == "of the operator"
