"""One attempt after the other, on a real store; each test names the rule it checks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from perago.protocol.values import Phase, Status
from perago.stores.embedded import EmbeddedStore
from perago.testing import POINTS, FailAt, Lab, LoseAnswer, ManualClock, MoveHeadAt, StaleAt
from tests.faults.paths import POINTS_OF, REPORT
from tests.lakefs_lab import ArrangedLakeFS, new_name
from tests.lifecycle import tasks
from tests.lifecycle.tasks import GIVEN

PATHS = {tasks.write: "merge", tasks.touch: "no-op", tasks.look: "read-only"}
BEFORE_PUBLISH = POINTS[: POINTS.index("before second attempt fence") + 1]


@pytest.fixture(params=["embedded", "lakefs"])
def lab(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lab]:
    """Give a lab with files on it, once on each store."""
    store, name = None, "lab"
    if request.param == "lakefs":
        store = ArrangedLakeFS(request.getfixturevalue("lakefs_server"), tmp_path / "worker")
        name = new_name()
    lab = Lab(tmp_path / "lab", store=store, repository=name)
    lab.commit(GIVEN)
    yield lab
    lab.close()


def leftovers(lab: Lab) -> list[str]:
    """V7: attempt directories and staging branches that are still there."""
    attempt_dirs = [path.name for path in lab.attempt_dirs.glob("*/")]
    branches = [branch.name for branch in lab.store.branches(lab.repository, hidden=True)]
    return attempt_dirs + [name for name in branches if name.startswith("perago-staging-")]


# --- the plain paths ----------------------------------------------------------------------------


def test_p1_a_change_is_published_as_one_child_of_the_input(lab: Lab) -> None:
    run = lab.run(tasks.write, {"text": "hello"})
    assert run.completed
    assert [commit.id for commit in run.history] == [run.ref, run.workspace and run.workspace.ref]
    assert run.history[0].parents == (run.history[1].id,)
    assert run.files == {key: value.encode() for key, value in GIVEN.items()} | {
        "ws/out.txt": b"hello"
    }
    assert leftovers(lab) == []


@pytest.mark.parametrize("path", ["cache", "old/x", "Cache/x"])
def test_d2_a_file_that_nobody_could_download_again_is_not_staged(lab: Lab, path: str) -> None:
    """What the task does not see is in the commit all the same."""
    lab.commit({"ws/cache/x": "kept", "ws/Old/x": "kept"})
    run = lab.run(tasks.beside, {"text": path})
    assert run.status is Status.FAILED
    assert repr(path) in run.reason
    assert "branch created" not in run.events
    assert lab.run(tasks.beside, {"text": "fine"}).completed
    assert leftovers(lab) == []


def test_section_4_phases_come_in_the_order_of_the_specification(lab: Lab) -> None:
    run = lab.run(tasks.write)
    phases = [name.removeprefix("after ") for name in run.events if name.startswith("after ")]
    assert phases == [str(phase) for phase in Phase]


def test_i3_the_output_is_the_input_with_another_ref(lab: Lab) -> None:
    run = lab.run(tasks.write)
    assert run.outcome
    assert run.workspace
    assert run.outcome.output == {
        "workspace": run.workspace.at(lab.head.id).as_json(),
        "result": {"length": 3},
    }


def test_k4_the_published_commit_says_which_attempt_made_it(lab: Lab) -> None:
    run = lab.run(tasks.write)
    said = run.history[0].metadata
    assert said["perago.phase"] == "confirm"
    assert said["perago.task_id"] == run.attempt.task_id
    assert said["perago.logical_task_key"] == run.attempt.logical_task_key
    assert said["perago.expected_head"] == run.history[1].id
    assert said["perago.supersedes"] == ""
    assert said["perago.prefix"] == "/ws"
    assert {"perago.staging_branch", "perago.staging_commit", "perago.input_ref"} <= said.keys()


def test_n1_no_change_makes_no_commit_and_touched_files_are_no_change(lab: Lab) -> None:
    run = lab.run(tasks.touch)
    assert run.completed
    assert run.ref == lab.head.id == (run.workspace and run.workspace.ref)
    assert "branch created" not in run.events


def test_s2_a_file_may_become_a_directory_and_a_directory_a_file(lab: Lab) -> None:
    turned = lab.run(tasks.turn, {"text": "in.txt"})
    assert turned.completed, turned.reason
    assert turned.files.keys() == {"ws/in.txt/deep", "other/kept.txt", "ws2/near.txt"}
    back = lab.run(tasks.turn, {"text": "in.txt"})
    assert back.completed, back.reason
    assert back.files.keys() == {"ws/in.txt", "other/kept.txt", "ws2/near.txt"}


def test_step_7_read_only_neither_publishes_nor_asks(lab: Lab) -> None:
    run = lab.run(tasks.look, faults=[MoveHeadAt("after body"), StaleAt("after input")])
    assert run.status is Status.COMPLETED
    assert run.ref == (run.workspace and run.workspace.ref)
    assert lab.broker.asked == 0
    assert "ws/scratch.txt" not in run.files


def test_i5_a_task_without_workspace_takes_params_and_returns_result(lab: Lab) -> None:
    run = lab.run(tasks.pure, {"text": "four"})
    assert run.outcome
    assert run.outcome.output == {"result": {"length": 4}}
    assert run.events.count("metric") == 2


def test_the_marker_is_invisible_and_a_body_that_deletes_everything_leaks_nothing(
    lab: Lab,
) -> None:
    run = lab.run(tasks.no_json)
    assert run.completed, run.reason
    assert set(run.files) == {"ws/out.txt", "other/kept.txt", "ws2/near.txt"}
    assert leftovers(lab) == []


def test_the_process_never_changes_its_working_directory(lab: Lab) -> None:
    before = os.getcwd()  # noqa: PTH109 - the plain call is what is promised
    lab.run(tasks.write)
    assert os.getcwd() == before  # noqa: PTH109


# --- results (section 10) -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "status", "reason"),
    [
        ("fail", "FAILED", "body: TaskFailed: not today"),
        ("terminal", "FAILED_WITH_TERMINAL_ERROR", "body: TaskTerminalError: never"),
        ("raise", "FAILED", "body: ZeroDivisionError"),
        ("exit", "FAILED", "body: SystemExit: 3"),
        ("result", "FAILED", "result model: ResultError: task 'misbehave' returned str"),
        ("symlink", "FAILED", "workspace publication does not support symlinks: link"),
        ("vanish", "FAILED", "directory '.' cannot be read"),
        ("rmdir", "FAILED", "directory '.' cannot be read"),
        ("base", "FAILED", "body: TaskFailed: the body raised Gone: out of reach"),
        ("generator exit", "FAILED", "body: TaskFailed: the body raised GeneratorExit"),
        ("mute", "FAILED", "body: MuteError"),
        ("surrogate", "FAILED", "body: ValueError: half \\ud800"),
        ("memory", "FAILED", "body: MemoryError"),
        ("recursion", "FAILED", "body: RecursionError"),
    ],
)
def test_section_10_a_failing_body(lab: Lab, how: str, status: str, reason: str) -> None:
    head = lab.head
    run = lab.run(tasks.misbehave, {"how": how})
    assert run.status == status
    assert reason in run.reason
    assert lab.head == head
    assert leftovers(lab) == []


@pytest.mark.parametrize(
    ("mood", "status", "reason"),
    [
        ("violate", "FAILED_WITH_TERMINAL_ERROR", "PreGuardrailViolation: moody: the mood is bad"),
        ("bug", "FAILED", "pre guardrail: KeyError"),
        ("terminal error", "FAILED", "pre guardrail: TaskFailed: guard moody raised TaskTerminal"),
        ("task failed", "FAILED", "guard moody raised TaskFailed: not today; correct the guard"),
        ("system exit", "FAILED", "pre guardrail: SystemExit: 3"),
        ("base", "FAILED", "pre guardrail: TaskFailed: guard moody raised Gone: out of reach"),
        ("generator exit", "FAILED", "guard moody raised GeneratorExit"),
        ("mute", "FAILED", "pre guardrail: MuteError"),
        ("surrogate", "FAILED", "pre guardrail: ValueError: half \\ud800"),
    ],
)
def test_t3_a_guards_violation_is_terminal_and_its_bug_is_not(
    lab: Lab, mood: str, status: str, reason: str
) -> None:
    run = lab.run(tasks.guarded, files={"ws/in.txt": mood})
    assert run.status == status
    assert reason in run.reason
    assert "before body" not in run.events


def test_t3_a_missing_input_is_terminal_and_a_missing_result_is_not(lab: Lab) -> None:
    lab.store.remove(lab.repository, "main", "ws/in.txt")
    lab.store.commit_branch(lab.repository, "main", "without input", {})
    assert lab.run(tasks.write).status is Status.FAILED_WITH_TERMINAL_ERROR
    without = lab.head
    run = lab.run(tasks.forgetful)
    assert run.status is Status.FAILED
    assert "post guardrail: PostGuardrailViolation: require_file('out.txt')" in run.reason
    assert lab.head == without


def test_invalid_params_are_terminal_and_their_values_are_not_told(lab: Lab) -> None:
    run = lab.run(tasks.write, {"text": ["secret"]})
    assert run.status is Status.FAILED_WITH_TERMINAL_ERROR
    assert "text: input should be a valid string" in run.reason
    assert "secret" not in run.reason


def test_s3_nothing_under_the_servers_actions_may_be_written(lab: Lab) -> None:
    run = lab.run(tasks.root)
    assert run.status is Status.FAILED
    assert "_lakefs_actions" in run.reason


def test_r1_the_traceback_is_in_the_event_log_not_in_the_reason(lab: Lab) -> None:
    run = lab.run(tasks.misbehave, {"how": "raise"})
    assert "traceback" in run.events
    assert "Traceback" not in run.reason


def test_r2_a_lost_completion_is_logged_as_such(lab: Lab) -> None:
    run = lab.run(tasks.write, faults=[StaleAt("before report")])
    assert run.completed
    assert run.events[-1] == "lost completion"
    assert lab.broker.reports == []


# --- fences -------------------------------------------------------------------------------------


@pytest.mark.parametrize("point", BEFORE_PUBLISH)
def test_f2_an_attempt_that_became_stale_publishes_nothing(lab: Lab, point: str) -> None:
    head = lab.head
    run = lab.run(tasks.write, faults=[StaleAt(point)])
    assert run.status is Status.FAILED
    assert "StaleAttemptError" in run.reason
    assert lab.head == head
    assert leftovers(lab) == []


def test_f2_a_silent_broker_is_asked_again_and_then_means_no(perago_lab: Lab) -> None:
    perago_lab.clock = ManualClock()
    perago_lab.commit(GIVEN)
    perago_lab.broker.fall_silent(2)
    assert perago_lab.run(tasks.write).completed
    perago_lab.broker.fall_silent(3)
    run = perago_lab.run(tasks.write, {"text": "other"})
    assert "first attempt fence: BrokerUnavailableError" in run.reason


def test_p3_a_foreign_commit_two_steps_ahead_is_refused_with_the_remedy(lab: Lab) -> None:
    faults = [
        MoveHeadAt("after body", {"x": "1"}),
        MoveHeadAt("after diff", {"x": "2"}),
    ]
    run = lab.run(tasks.write, faults=faults)
    assert run.status is Status.FAILED
    assert "start a new workflow from the current head" in run.reason
    assert "ws/out.txt" not in run.files
    assert leftovers(lab) == []


def test_f3_a_head_that_moves_around_the_second_fence_is_refused(lab: Lab) -> None:
    run = lab.run(tasks.write, faults=[MoveHeadAt("after second attempt fence")])
    assert run.status is Status.FAILED
    assert "foreign.txt" in run.files
    if isinstance(lab.store, EmbeddedStore):
        assert "LostRaceError" in run.reason
        assert "ws/out.txt" not in run.files
    else:  # The window that remains under a soft fence; P5 does not call it a success.
        assert "cannot be verified" in run.reason


@pytest.mark.parametrize("task", [tasks.write, tasks.touch], ids=["P4-change", "N1-no-change"])
def test_p4_uncommitted_changes_on_the_target_stop_writes_only(lab: Lab, task: object) -> None:
    lab.store.put(lab.repository, "main", "dirty.txt", b"dirt")
    run = lab.run(task)  # type: ignore[arg-type]
    if task is tasks.touch:
        assert run.completed
    else:
        assert "uncommitted changes" in run.reason
        assert leftovers(lab) == []


def test_i4_a_branch_name_is_no_input_ref(lab: Lab) -> None:
    run = lab.run(tasks.write)
    assert run.workspace
    again = lab._attempt(  # noqa: SLF001 - an input no caller can make otherwise
        run.task, run.attempt, run.workspace.at("main"), {}, ()
    )
    assert "is not a full commit id" in again.reason


# --- crashes and retries ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "point"),
    [
        (task, point)
        for task, path in PATHS.items()
        for point in POINTS
        if point in {*POINTS_OF[path], *REPORT}
    ],
)
def test_v1_v2_v5_killed_anywhere_the_retry_completes(lab: Lab, task: object, point: str) -> None:
    crashed = lab.run(task, {"text": "first"}, faults=[FailAt(point)])  # type: ignore[arg-type]
    retried = crashed.retry()
    assert retried.completed, retried.reason
    assert retried.ref == lab.head.id
    history = [commit.id for commit in retried.history]
    start = retried.workspace.ref if retried.workspace else None
    assert history in ([lab.head.id, start], [start])
    if task is tasks.write:
        assert retried.files["ws/out.txt"] == b"first"
        assert len(history) == 2


def test_p2_a_retry_replaces_an_abandoned_publication(lab: Lab) -> None:
    abandoned = lab.run(tasks.write, faults=[FailAt("after publish")])
    old = lab.head
    retried = abandoned.retry()
    assert retried.completed
    assert lab.head.parents == old.parents
    assert lab.head.id != old.id
    assert lab.store.commit(lab.repository, old.id) == old  # P10: not deleted


def test_n2_a_retry_without_change_takes_an_abandoned_publication_back(lab: Lab) -> None:
    first = lab.run(tasks.misbehave, faults=[MoveHeadAt("before second attempt fence")])
    assert first.completed
    assert first.ref == lab.head.id == (first.workspace and first.workspace.ref)
    assert "foreign.txt" not in first.files


# --- lineage ------------------------------------------------------------------------------------


def test_k2_a_retry_publishes_on_its_own_earlier_publication(lab: Lab) -> None:
    first = lab.run(tasks.write_lineage, {"text": "one"}, faults=[FailAt("after publish")])
    old = lab.head
    second = lab._attempt(  # noqa: SLF001 - the next attempt with other params
        first.task,
        first.attempt.__class__(
            first.attempt.workflow_instance_id, "other", 1, "lineage", "lineage", 1
        ),
        first.workspace,
        {"text": "two"},
        (),
    )
    assert second.completed, second.reason
    assert lab.head.parents == (old.id,)
    assert lab.head.metadata["perago.supersedes"] == old.id
    assert second.files["ws/out.txt"] == b"two"


def test_k2_what_is_already_published_is_the_output(lab: Lab) -> None:
    first = lab.run(tasks.write_lineage, faults=[FailAt("after publish")])
    old = lab.head
    second = first.retry()
    assert second.completed, second.reason
    assert second.ref == lab.head.id == old.id


def test_k2_another_writer_in_the_range_is_refused(lab: Lab) -> None:
    run = lab.run(tasks.write_lineage, faults=[MoveHeadAt("after body")])
    assert "left no logical task key" in run.reason
    assert "ws/out.txt" not in run.files


# --- lost answers (P6, P11) ---------------------------------------------------------------------


def test_p6_a_publication_whose_answer_was_lost_is_found_landed(lab: Lab) -> None:
    run = lab.run(tasks.write, faults=[LoseAnswer("apply")])
    assert run.completed
    assert len(run.history) == 2
    assert "outcome unknown" in run.events


def test_p6_a_replacement_whose_answer_was_lost_is_found_landed(lab: Lab) -> None:
    run = lab.run(tasks.write, faults=[FailAt("after publish")])
    retried = run.retry(faults=[LoseAnswer("apply")])
    assert retried.completed
    assert len(retried.history) == 2


def test_p11_a_head_that_never_moves_fails_when_the_margin_is_over(tmp_path: Path) -> None:
    clock = ManualClock()
    lab = Lab(tmp_path, clock)
    run = lab.run(tasks.write, files=GIVEN, faults=[LoseAnswer("apply", applied=False)])
    assert run.status is Status.FAILED
    assert "publish: OutcomeUnknownError" in run.reason
    assert sum(clock.slept) >= 20
    assert leftovers(lab) == []
    assert run.retry().completed
    lab.close()


def test_s4_after_a_lost_answer_to_create_the_own_branch_is_deleted(lab: Lab) -> None:
    run = lab.run(tasks.write, faults=[LoseAnswer("open_staging")])
    assert run.status is Status.FAILED
    assert leftovers(lab) == []


def test_step_13_a_failing_cleanup_never_changes_the_result(lab: Lab) -> None:
    run = lab.run(tasks.write, faults=[LoseAnswer("drop", applied=False)])
    assert run.completed
    assert "warning" in run.events
    assert [name for name in leftovers(lab) if not name.startswith("perago-staging-")] == []
