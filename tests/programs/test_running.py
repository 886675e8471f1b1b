"""One program, one attempt: what it is told, what its end means, what it may say (Q3 to Q6)."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from perago.history.event_log import EventLog
from perago.programs.launching import Forwarded
from perago.protocol.events import Warned
from perago.protocol.values import Status
from perago.testing import Lab
from perago.testing.lab import Run
from tests.filesystems import CannotMount, fill, mounted
from tests.programs.conftest import Declare

TERMINAL = Status.FAILED_WITH_TERMINAL_ERROR


def told(run: Run) -> list[str]:
    """Read the warnings of an attempt."""
    with closing(EventLog(run.lab.attempt_dirs.parent / "events.sqlite")) as log:
        found = [one.event for one in log.of_execution(run.execution_id)]
    return [event.text for event in found if isinstance(event, Warned)]


# --- where there is no room ----------------------------------------------------------------------


@pytest.mark.parametrize("workspace", ["", "[task.workspace]"])
def test_a_full_disk_is_said_in_one_sentence(
    lab: Lab, tmp_path: Path, declare: Declare, workspace: str
) -> None:
    """Whatever it was that found no more room: the attempt directory, a file, the params."""
    step, reasons = declare("", "", workspace), []
    lab.commit({"a": b"a" * 5000})
    try:
        with mounted("tmpfs", tmp_path / "disk", "256k") as disk:
            lab.attempt_dirs = disk / "rooms"
            for pages in range(12):
                filler = fill(disk, pages)
                outcome = lab.run(step, {"n": "n" * 9_000}).outcome
                assert outcome is not None
                reasons.append(outcome.reason)
                filler.unlink()
    except CannotMount as why:
        pytest.skip(str(why))
    assert reasons[-1] == ""
    failed = [reason for reason in reasons if reason]
    assert any("params.json" in reason for reason in failed)
    for reason in failed:
        assert "WorkspaceError: " in reason
        assert str(disk) in reason
        assert "No space left on device; " in reason


# --- Q3: how it is started ------------------------------------------------------------------------


def test_q3_it_has_nothing_of_the_workers_environment_but_what_it_declares(
    lab: Lab, declare: Declare, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUDIO_PROFILE", "loud")
    monkeypatch.setenv("SOMETHING_ELSE", "secret")
    monkeypatch.setenv("LAKECTL_CREDENTIALS_SECRET_ACCESS_KEY", "secret")
    step = declare(
        """
        import json, os
        open(os.environ["PERAGO_RESULT"], "w").write(json.dumps({"names": dict(os.environ)}))
        """,
        'env = ["AUDIO_PROFILE", "NOT_SET"]',
    )
    run = lab.run(step)
    names = run.result["names"]
    ours = {f"PERAGO_{name}" for name in ("WORKSPACE", "PARAMS", "RESULT", "ATTEMPT", "EVENTS")}
    assert set(names) - {"LC_CTYPE"} == {"PATH", "LANG", "HOME", "TMPDIR", "AUDIO_PROFILE"} | ours
    beside = Path(names["PERAGO_WORKSPACE"]).parent
    for name in ("HOME", "TMPDIR", "PERAGO_PARAMS", "PERAGO_RESULT", "PERAGO_ATTEMPT"):
        assert beside in Path(names[name]).parents
    assert names["PERAGO_EVENTS"] == "3"


def test_q3_it_starts_in_the_workspace_without_input_and_leads_a_group(
    lab: Lab, declare: Declare
) -> None:
    step = declare(
        """
        import json, os, sys
        found = {
            "here": sorted(os.listdir()),
            "read": sys.stdin.read(),
            "leads": os.getpgid(0) == os.getpid(),
            "ignored": [line for line in open("/proc/self/status") if line.startswith("SigIgn")],
            "open": sorted(int(each) for each in os.listdir("/proc/self/fd")),
        }
        open(os.environ["PERAGO_RESULT"], "w").write(json.dumps(found))
        """
    )
    found = lab.run(step, files={"a.txt": "a"}).result
    ignored = int(found.pop("ignored")[0].split()[1], 16)
    # Python itself ignores SIGPIPE and SIGXFSZ; 32 and 33 are the C library's, and cannot be set.
    assert ignored & ~(1 << 31 | 1 << 32) == 1 << 12 | 1 << 24
    opened = [number for number in found.pop("open") if number <= 3]
    assert opened == [0, 1, 2, 3]
    assert found == {"here": ["a.txt"], "read": "", "leads": True}


def test_q3_it_is_handed_no_other_descriptor(lab: Lab, declare: Declare) -> None:
    step = declare(
        """
        import json, os
        found = [os.readlink(f"/proc/self/fd/{each}") for each in os.listdir("/proc/self/fd")
                 if int(each) > 3 and os.path.exists(f"/proc/self/fd/{each}")]
        open(os.environ["PERAGO_RESULT"], "w").write(json.dumps({"more": found}))
        """
    )
    more = lab.run(step).result["more"]
    assert [each for each in more if "/proc/" not in each] == []


def test_q3_params_and_the_attempt_are_files(lab: Lab, declare: Declare) -> None:
    step = declare(
        """
        import json, os
        read = lambda name: json.load(open(os.environ[name]))
        found = {"params": read("PERAGO_PARAMS"), "attempt": read("PERAGO_ATTEMPT")}
        open(os.environ["PERAGO_RESULT"], "w").write(json.dumps(found))
        """
    )
    run = lab.run(step, {"n": 3})
    assert run.workspace is not None
    assert run.result["params"] == {"n": 3}
    assert run.result["attempt"] == {
        "workflow_instance_id": run.attempt.workflow_instance_id,
        "task_id": run.attempt.task_id,
        "task": "step",
        "step": "step",
        "retry_count": 0,
        "execution_id": run.execution_id,
        "input_ref": run.workspace.ref,
        "deadline": None,
    }


def test_q3_a_task_without_a_workspace_runs_in_its_scratch(lab: Lab, declare: Declare) -> None:
    script = """
        import json, os
        given = os.environ
        found = {"told": "PERAGO_WORKSPACE" in given, "home": os.getcwd() == given["HOME"]}
        open(os.environ["PERAGO_RESULT"], "w").write(json.dumps(found))
        """
    run = lab.run(declare(script, workspace=""))
    assert run.result == {"told": False, "home": True}
    assert [each for each in lab.attempt_dirs.iterdir() if each.is_dir()] == []


# --- Q4, Q5: how it ends --------------------------------------------------------------------------


def test_q4_an_unmodified_program_is_a_node(lab: Lab, declare: Declare) -> None:
    step = declare(more='command = ["sort", "-o", "clean.csv", "raw.csv"]')
    run = lab.run(step, files={"raw.csv": "b\na\n"})
    assert run.completed
    assert run.result == {}
    assert run.files == {"raw.csv": b"b\na\n", "clean.csv": b"a\nb\n"}


ENDS = {
    "exit 1": ("sys.exit(1)", Status.FAILED, "ended with exit code 1 and wrote nothing"),
    "last words": (
        "print('one', file=sys.stderr); print('two\\n', file=sys.stderr); sys.exit(3)",
        Status.FAILED,
        "exit code 3: two",
    ),
    "exit 65": ("sys.exit('never again') if 0 else os._exit(65)", TERMINAL, "exit code 65"),
    "signal": ("os.kill(os.getpid(), 11)", Status.FAILED, "was ended by SIGSEGV"),
    "own words": ("say(error='no song'); sys.exit(1)", Status.FAILED, "TaskFailed: no song"),
    "own words, terminal": (
        "say(error='no song', terminal=True); sys.exit(1)",
        TERMINAL,
        "TaskTerminalError: no song",
    ),
    "own words, not terminal": (
        "say(error='busy', terminal=False); sys.exit(65)",
        Status.FAILED,
        "TaskFailed: busy",
    ),
    "own words, 65": ("say(error='never'); sys.exit(65)", TERMINAL, "never"),
    "no words of its own": ("say(eror='x'); sys.exit(1)", Status.FAILED, "exit code 1"),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS.keys())
def test_q5_the_exit_code_is_the_status(
    lab: Lab, declare: Declare, end: tuple[str, Status, str]
) -> None:
    code, status, reason = end
    run = lab.run(
        declare(
            f"""
            import json, os, sys
            def say(**words): open(os.environ["PERAGO_RESULT"], "w").write(json.dumps(words))
            open("new.txt", "w").write("x")
            {code}
            """
        )
    )
    assert run.status == status
    assert reason in run.reason
    assert run.reason.startswith("body: ")
    assert run.files == {}


RESULTS = {
    "not JSON": "put('{')",
    "not an object": "put('[1]')",
    "not UTF-8": "open(path, 'wb').write(b'\\xff')",
    "too deep": "put('{\"a\":' * 3000 + '1' + '}' * 3000)",
    "too large": "put('{\"a\": \"' + 'x' * 17_000_000 + '\"}')",
    "a link": "os.symlink('/etc/passwd', path)",
    "a pipe": "os.mkfifo(path)",
    "a directory": "os.mkdir(path)",
    "NaN": "put('{\"a\": NaN}')",
}


@pytest.mark.parametrize("write", RESULTS.values(), ids=RESULTS.keys())
def test_q5_a_result_that_is_none_fails_the_attempt(lab: Lab, declare: Declare, write: str) -> None:
    run = lab.run(
        declare(
            f"""
            import os
            path = os.environ["PERAGO_RESULT"]
            def put(text): open(path, "w").write(text)
            open("new.txt", "w").write("x")
            {write}
            """
        )
    )
    assert run.status == Status.FAILED, run.reason
    assert "result" in run.reason or "returned" in run.reason
    assert run.files == {}


def test_q2_params_and_result_are_validated_with_the_statuses_of_models(
    lab: Lab, declare: Declare
) -> None:
    step = declare(
        """
        import json, os
        n = json.load(open(os.environ["PERAGO_PARAMS"]))["n"]
        open(os.environ["PERAGO_RESULT"], "w").write(json.dumps({"m": "text" if n > 9 else n}))
        """,
        """
        params = { type = "object", properties = { n = { type = "integer" } }, required = ["n"] }
        result = { type = "object", properties = { m = { type = "integer" } } }
        """,
    )
    assert lab.run(step, {"n": 1}).result == {"m": 1}
    refused = lab.run(step, {"n": "a secret"})
    assert refused.status == TERMINAL
    assert "n: it is not of type integer" in refused.reason
    assert "secret" not in refused.reason
    wrong = lab.run(step, {"n": 10})
    assert wrong.status == Status.FAILED
    assert wrong.reason.startswith("result model: ")


@pytest.mark.parametrize("command", ["/no/such/program", "no-such-program", "/etc"])
def test_a_program_that_cannot_be_started_is_named(
    lab: Lab, declare: Declare, command: str
) -> None:
    run = lab.run(declare(more=f'command = ["{command}"]'))
    assert run.status == Status.FAILED
    assert "the program cannot be started" in run.reason
    assert "install it" in run.reason


def test_an_attempt_can_be_retried_after_each_of_them(lab: Lab, declare: Declare) -> None:
    step = declare(
        """
        import json, os, sys
        retry = json.load(open(os.environ["PERAGO_ATTEMPT"]))["retry_count"]
        open("retry.txt", "w").write(str(retry))
        sys.exit(0 if retry else 1)
        """
    )
    first = lab.run(step)
    assert first.status == Status.FAILED
    assert first.retry().completed
    assert first.files == {"retry.txt": b"1"}


# --- Q6: what it says on the way ------------------------------------------------------------------


def tell(*lines: str) -> str:
    said = "\n".join(lines)
    return f"""
import os
with os.fdopen(int(os.environ["PERAGO_EVENTS"]), "w") as events:
    events.write({said!r} + chr(10))
"""


def test_q6_metrics_are_recorded_and_logs_are_printed(
    lab: Lab, declare: Declare, capsys: pytest.CaptureFixture[str]
) -> None:
    step = declare(
        tell(
            '{"type": "metric", "name": "songs", "value": 3, "labels": {"kind": "flac"}}',
            '{"type": "log", "level": "warning", "message": "quiet"}',
            '{"type": "log", "message": "loud"}',
            '{"type": "progress", "done": 1, "total": 2, "unit": "songs"}',
            '{"type": "something new", "x": 1}',
        )
    )
    run = lab.run(step)
    assert run.completed
    assert run.events.count("metric") == 1
    assert told(run) == []
    printed = capsys.readouterr()
    assert "warning: quiet" in printed.err
    assert "info: loud" in printed.out


BAD = (
    "junk",
    "[]",
    "{}",
    '{"type": 1}',
    '{"type": "metric", "name": "x"}',
    '{"type": "metric", "name": "", "value": 1}',
    '{"type": "metric", "name": "x", "value": true}',
    '{"type": "metric", "name": "x", "value": 1e999}',
    '{"type": "metric", "name": "x", "value": 1, "labels": []}',
    '{"type": "metric", "kind": "odd", "name": "x", "value": 1}',
    '{"type": "progress", "done": 1}',
    '{"type": "progress", "done": 1, "total": ' + "9" * 400 + "}",
    '{"type": "metric", "name": "x", "value": ' + "9" * 400 + "}",
    '{"type": "log", "level": "loud", "message": "x"}',
    '{"type": "log"}',
    '{"type": "log", "message": "' + "x" * 70_000 + '"}',
)


def test_q6_bad_lines_are_counted_and_told_once(lab: Lab, declare: Declare) -> None:
    run = lab.run(declare(tell(*BAD)))
    assert run.completed
    assert told(run) == [f"{len(BAD)} lines of events cannot be read"]


def test_q6_a_flood_is_bounded(lab: Lab, declare: Declare) -> None:
    step = declare(
        """
        import os
        with os.fdopen(int(os.environ["PERAGO_EVENTS"]), "w") as events:
            for n in range(5000):
                events.write('{"type": "metric", "name": "x", "value": 1}' + chr(10))
            events.write("y" * 3_000_000)
        print("z" * 3_000_000)
        """
    )
    run = lab.run(step)
    assert run.completed
    assert run.events.count("metric") == 1000
    assert told(run) == ["1 lines of events cannot be read", "4000 metrics were left out"]


def test_output_is_passed_on_as_it_is(
    lab: Lab, declare: Declare, capfd: pytest.CaptureFixture[str]
) -> None:
    step = declare(
        """
        import sys
        print("schön"); sys.stdout.flush()
        sys.stderr.buffer.write(b"half \\xff line")
        """
    )
    assert lab.run(step).completed
    printed = capfd.readouterr()
    assert printed.out == "schön\n"
    assert printed.err == "half \\xff line\n"


def test_the_end_of_a_stream_adds_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    stream = Forwarded(-1, "stdout")
    stream.take(b"whole\n")
    stream.take(b"")
    stream.flush()
    assert capsys.readouterr().out == "whole\n"


def test_guards_fences_and_read_only_hold_for_programs(lab: Lab, declare: Declare) -> None:
    spec = """
        [task.workspace]
        prefix = "/in"
        pre = [{ require_file = "raw.csv" }]
        post = [{ forbid_glob = "*.tmp" }]
        """
    step = declare("open('x.tmp', 'w').write('x')", workspace=spec)
    missing = lab.run(step, files={"other.csv": ""})
    assert missing.status == TERMINAL
    assert "pre guardrail" in missing.reason
    left = lab.run(step, files={"in/raw.csv": "1"})
    assert left.status == Status.FAILED
    assert "post guardrail" in left.reason
    only = declare("open('x.tmp', 'w').write('x')", workspace="[task.workspace]\nread_only = true")
    read = lab.run(only)
    assert read.completed
    assert "x.tmp" not in json.dumps([*read.files])
