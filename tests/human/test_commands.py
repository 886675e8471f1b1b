"""``perago human`` as a person uses it, on the embedded store (Q10 to Q15)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from perago.human.directory import MARKER
from tests.environment import clean_environment
from tests.human.project import MANIFEST, Project, contents, snapshot, step
from tests.patience import LIMIT, until

CORRECT = "${correct.output.workspace}"


def test_q11_a_step_is_taken_done_and_submitted_and_the_run_goes_on(project: Project) -> None:
    run = project.run(step("correct"), step("title", ""))
    files = project.take("correct", "fix")
    assert contents(files) == {"song.txt": b"la la\n", "other.txt": b"other\n"}
    (files / "lyrics.txt").write_text("new\n")
    (files / "song.txt").write_text("la\n")
    (files / "other.txt").unlink()
    before = snapshot(files)

    found = project.perago("human", "diff", "fix", "--json").json
    assert (found["added"], found["changed"], found["removed"]) == (
        ["lyrics.txt"],
        ["song.txt"],
        ["other.txt"],
    )
    assert project.perago("human", "check", "fix").code == 0
    said = project.perago("human", "submit", "-r", "verses=2", at=files)
    assert said.code == 5, "the next step waits for a person, too"
    assert "✓ correct  published" in said.out
    assert "title: perago human show" in said.out
    assert project.files() == {"lyrics.txt": b"new\n", "song.txt": b"la\n"}
    assert snapshot(files) == before, "Q12: a person's files are never touched"

    said = project.perago("human", "submit", "title", "-r", "title=La", "--json")
    assert (said.code, said.json["run"]["status"]) == (0, "COMPLETED")
    assert said.json["output"] == {"result": {"title": "La"}, "person": "ada"}
    runs = project.perago("runs", "--json").json
    assert [(each["run"], each["status"]) for each in runs] == [(run, "COMPLETED")]


def test_q13_the_commit_and_the_output_say_who_it_was(project: Project) -> None:
    project.run(step("correct"))
    files = project.take("correct", "fix", person="ada")
    (files / "lyrics.txt").write_text("new\n")
    said = project.perago("human", "submit", "fix", "--json", person="ada")
    assert said.json["output"]["person"] == "ada"
    head = project.history()[0]
    assert head.metadata["perago.person"] == "ada"
    assert head.id == said.json["output"]["workspace"]["ref"]


def test_q13_the_second_who_takes_a_step_has_to_say_so(project: Project) -> None:
    project.run(step("correct"))
    project.take("correct", "fix", person="ada")
    said = project.perago("human", "take", "correct", "mine", person="ben")
    assert said.code == 2
    assert "is taken by ada" in said.err
    assert "--anyway" in said.err
    assert not (project.directory / "mine").exists()
    project.take("correct", "mine", "--anyway", person="ben")
    (listed,) = project.perago("human", "list", "--json").json
    assert listed["claimed_by"] == ["ada", "ben"]
    assert project.perago("human", "return", "correct", person="ada").code == 0
    (listed,) = project.perago("human", "list", "--json").json
    assert listed["claimed_by"] == ["ben"]


def test_q11_what_is_refused_is_not_reported_and_can_be_repeated(project: Project) -> None:
    project.run(step("correct"))
    files = project.take("correct", "fix")
    head = project.history()[0].id
    for words, problem in (
        ([], "lyrics.txt"),
        (["-r", "verses=many"], "verses"),
        (["-r", "unknown=1"], "unknown"),
    ):
        if words:
            (files / "lyrics.txt").write_text("new\n")
        said = project.perago("human", "submit", "fix", *words)
        assert (said.code, problem in said.err) == (1, True), said
        assert "your files are untouched" in said.err
        assert project.history()[0].id == head
        (listed,) = project.perago("human", "list", "--json").json
        assert listed["retry_count"] == 0
    assert project.perago("human", "submit", "fix").code == 0


@pytest.mark.parametrize("fence", ["head", "lineage", "hard"])
def test_q11_of_two_people_who_submit_one_step_one_completes_it(tmp_path: Path, fence: str) -> None:
    project = Project(tmp_path / "project", fence)
    project.run(step("correct"))
    for person in ("ada", "ben"):
        files = project.take("correct", person, "--anyway", person=person)
        (files / "lyrics.txt").write_text(person)
    assert project.perago("human", "submit", "ada", person="ada").code == 0
    late = project.perago("human", "submit", "ben", person="ben")
    assert late.code == 1
    assert "no longer open" in late.err
    assert contents(project.directory / "ben/workspace")["lyrics.txt"] == b"ben"
    assert project.files()["lyrics.txt"] == b"ada"


def test_q12_a_lost_attempt_keeps_the_directory_and_its_edits_go_to_the_next(
    project: Project,
) -> None:
    project.run(step("correct"))
    files = project.take("correct", "fix")
    (files / "lyrics.txt").write_text("mine\n")
    (files / "other.txt").unlink()
    before = snapshot(files)
    assert project.perago("human", "reject", "correct", "--reason", "again", person="ben").code == 5
    said = project.perago("human", "submit", "fix")
    assert said.code == 1
    assert f"--edits {project.directory / 'fix'}" in said.err
    taken = project.take("correct", "again", "--edits", "fix")
    assert contents(taken) == contents(files)
    assert snapshot(files) == before
    assert project.perago("human", "submit", "again").code == 0
    assert project.files() == contents(files)


def test_q12_edits_stop_at_a_conflict_that_is_named(project: Project) -> None:
    """The step is given out again by another run, on a head where the same file was changed."""
    project.run(step("correct"))
    files = project.take("correct", "fix")
    (files / "song.txt").write_text("mine\n")
    assert project.perago("cancel", "last").code == 0
    assert project.perago("human", "submit", "fix").code == 1
    (project.directory / "data/song.txt").write_text("theirs\n")
    project.run(step("correct"))
    said = project.perago("human", "take", "correct", "again", "--edits", "fix")
    assert said.code == 2
    assert "'song.txt' cannot be carried over" in said.err
    assert not (project.directory / "again/workspace").exists()
    assert (files / "song.txt").read_text() == "mine\n"
    (project.directory / "data/song.txt").write_text("la la\n")
    assert project.perago("cancel", "last").code == 0
    project.run(step("correct"))
    taken = project.take("correct", "third", "--edits", "fix")
    assert (taken / "song.txt").read_text() == "mine\n"


def test_q12_the_workflow_ends_while_a_person_edits(project: Project) -> None:
    project.run(step("correct"))
    files = project.take("correct", "fix")
    (files / "lyrics.txt").write_text("mine\n")
    before, head = snapshot(files), project.history()[0].id
    assert project.perago("cancel", "last").code == 0
    for command in ("submit", "check", "diff"):
        said = project.perago("human", command, "fix")
        assert (said.code, "your files are untouched" in said.err) == (1, True), said
    assert (snapshot(files), project.history()[0].id) == (before, head)


def test_q14_an_approval_is_bound_to_the_commit_it_shows(project: Project) -> None:
    project.run(step("correct"), step("release", CORRECT, base="main"))
    files = project.take("correct", "fix")
    (files / "lyrics.txt").write_text("new\n")
    assert project.perago("human", "submit", "fix").code == 5
    ref = project.history()[0].id
    shown = project.perago("human", "show", "release", "--json").json
    assert shown["difference"]["ref"] == ref
    assert project.perago("human", "approve", "release").code == 2, "there is no terminal"
    said = project.perago("human", "approve", "release", "--yes", "--comment", "fine", "--json")
    assert said.code == 0
    assert said.json["output"]["result"] == {"approved": True, "comment": "fine", "ref": ref}
    assert said.json["output"]["workspace"]["ref"] == ref


def test_q14_the_difference_is_that_to_the_parent_where_no_base_is_given(project: Project) -> None:
    project.run(step("release"))
    shown = project.perago("human", "show", "release", "--json").json["difference"]
    new, old = project.history()[:2]
    assert (shown["base"], shown["ref"]) == (old.id, new.id)
    assert shown["added"] == ["other.txt", "song.txt"]
    said = project.perago("human", "approve", "release", "--no", "--yes", "--json")
    assert (said.code, said.json["output"]["result"]["approved"]) == (0, False)


def test_q14_what_is_no_approval_cannot_be_approved(project: Project) -> None:
    project.run(step("correct"))
    said = project.perago("human", "approve", "correct", "--yes")
    assert (said.code, "is not an approval" in said.err) == (2, True)


def test_a_rejected_step_fails_and_a_terminal_one_ends_the_run(project: Project) -> None:
    project.run(step("correct"))
    said = project.perago("human", "reject", "correct", "--reason", "unreadable")
    assert said.code == 5, "the step waits again"
    assert project.perago("human", "list", "--json").json[0]["retry_count"] == 1
    words = ("reject", "correct", "--reason", "never", "--terminal")
    said = project.perago("human", *words, person="ben")
    assert said.code == 1
    assert "rejected by ben: never" in said.out


def test_q11_a_step_about_files_is_taken_before_it_is_submitted(project: Project) -> None:
    project.run(step("correct"))
    said = project.perago("human", "submit", "correct")
    assert said.code == 2
    assert "perago human take" in said.err


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        pytest.param(
            lambda fix: (fix / "workspace").rename(fix / "x"), "cannot be read", id="moved"
        ),
        pytest.param(lambda fix: (fix / MARKER).write_text("{}"), "not a marker", id="marker"),
        pytest.param(lambda fix: (fix / MARKER).unlink(), "was not taken", id="no marker"),
        pytest.param(
            lambda fix: (fix / "workspace/lyrics.txt").symlink_to("/etc/passwd"),
            "symlinks",
            id="link",
        ),
    ],
)
def test_q11_a_directory_that_is_not_as_it_was_is_refused_and_nothing_is_published(
    project: Project, spoil: object, problem: str
) -> None:
    project.run(step("correct"))
    project.take("correct", "fix")
    head = project.history()[0].id
    assert callable(spoil)
    spoil(project.directory / "fix")
    said = project.perago("human", "submit", "fix")
    assert (said.code in {1, 2}, problem in said.err) == (True, True), said
    assert project.history()[0].id == head
    assert len(project.perago("human", "list", "--json").json) == 1


def test_q11_an_empty_directory_removes_every_file_where_the_guards_allow_it(
    project: Project,
) -> None:
    manifest = project.directory / "songs.toml"
    manifest.write_text(
        manifest.read_text().replace('post = [{ require_file = "lyrics.txt" }]', "")
    )
    project.run(step("correct"))
    files = project.take("correct", "fix")
    for path in files.iterdir():
        path.unlink()
    assert project.perago("human", "submit", "fix").code == 0
    assert project.files() == {}


def test_q11_a_submit_without_a_change_publishes_nothing(project: Project) -> None:
    (project.directory / "data/lyrics.txt").write_text("old\n")
    project.run(step("correct"))
    project.take("correct", "fix")
    head = project.history()[0].id
    said = project.perago("human", "submit", "fix", "--json")
    assert (said.code, said.json["output"]["workspace"]["ref"]) == (0, head)


def test_a_directory_is_found_from_inside_and_the_project_from_anywhere(
    project: Project, tmp_path: Path
) -> None:
    project.run(step("correct"))
    away = tmp_path / "away"
    files = project.take("correct", str(away))
    (files / "lyrics.txt").write_text("new\n")
    (files / "deep/er").mkdir(parents=True)
    said = project.perago("human", "diff", "--json", at=files / "deep/er")
    assert said.json["added"] == ["lyrics.txt"]
    assert project.perago("human", "submit", str(away), at=tmp_path).code == 0


def test_q15_a_run_that_is_waited_for_goes_on_by_itself(project: Project) -> None:
    project.workflow(step("title", ""), {**step("title", ""), "taskReferenceName": "second"})
    words = [sys.executable, "-m", "perago", "run", "flow.json", "songs.toml", "--wait", "--json"]
    with subprocess.Popen(
        words, cwd=project.directory, env=clean_environment(), stdout=subprocess.PIPE, text=True
    ) as waiting:
        for name in ("title", "second"):
            until(partial(_waits, project, name), f"{name} waits")
            said = project.perago("human", "submit", name, "-r", "title=La", "--json")
            assert (said.code, "run" in said.json) == (0, False), said
        out, _ = waiting.communicate(timeout=LIMIT)
    assert json.loads(out)["status"] == "COMPLETED"


def _waits(project: Project, name: str) -> bool:
    return project.home.path.is_dir() and name in [task.step for task in project.waiting()]


@pytest.mark.parametrize("kind", ["SIMPLE", "HUMAN"])
def test_a_step_of_the_wrong_type_is_refused(project: Project, kind: str) -> None:
    (project.directory / "tasks.toml").write_text(
        '[[task]]\nname = "sort"\nowner_email = "a@example.com"\ncommand = ["true"]\n'
    )
    wrong = {**step("title", ""), "type": "SIMPLE"} if kind == "SIMPLE" else step("sort", "")
    project.workflow(wrong)
    for command in ("check", "run"):
        words = ["songs.toml", "tasks.toml"]
        place = ["flow.json", *words] if command == "run" else [*words, "flow.json"]
        said = project.perago(command, *place)
        assert said.code == 2, said
        assert "is done by a" in said.err
        assert 'write "type"' in said.err


def test_a_single_task_of_a_person_runs_as_any_other(project: Project) -> None:
    said = project.perago("run", "songs.toml:title", "--json")
    assert said.code == 5
    said = project.perago("human", "submit", "title", "-r", "title=La", "--json")
    assert said.json["run"]["output"]["result"] == {"title": "La"}


# --- what outsiders tried ----------------------------------------------------------------------


def test_q14_an_approval_is_answered_for_its_own_commit_only(project: Project) -> None:
    project.run(step("release"))
    for words in (
        ["-r", "approved=true", "-r", 'comment="x"', "-r", "ref=deadbeef"],
        ["-r", "approved=true"],
    ):
        said = project.perago("human", "submit", "release", *words)
        assert (said.code, "perago human approve" in said.err) == (2, True), said
    assert len(project.waiting()) == 1


def test_changes_of_a_step_that_only_reads_are_not_dropped_without_a_word(project: Project) -> None:
    manifest = project.directory / "songs.toml"
    text = manifest.read_text().replace("approval = true\n", "")
    manifest.write_text(text.replace('post = [{ require_file = "lyrics.txt" }]', ""))
    project.run(step("correct"), step("release", CORRECT))
    files = project.take("correct", "fix")
    (files / "song.txt").write_text("la\n")
    assert project.perago("human", "submit", "fix").code == 5
    said = project.perago("human", "take", "release", "look")
    assert "this step only reads" in said.err
    for words in (["release", "other", "--edits", "fix"],):
        refused = project.perago("human", "take", *words)
        assert (refused.code, "only reads" in refused.err) == (2, True)
    (project.directory / "look/workspace/song.txt").write_text("mine\n")
    for command in ("check", "submit"):
        said = project.perago("human", command, "look")
        assert (said.code, "only reads" in said.err) == (1, True), said


def test_edits_of_another_task_are_refused(project: Project) -> None:
    manifest = project.directory / "songs.toml"
    more = MANIFEST.partition("\n[[task]]")[2].partition("\n[[task]]")[0]
    manifest.write_text(
        manifest.read_text()
        + "\n[[task]]"
        + more.replace('"correct"', '"again"').replace("FENCE", "head")
    )
    project.run(step("correct"))
    project.take("correct", "fix")
    assert project.perago("cancel", "last").code == 0
    project.run(step("again"))
    said = project.perago("human", "take", "again", "other", "--edits", "fix")
    assert (said.code, "was taken for the task 'correct'" in said.err) == (2, True)


def test_q13_the_name_is_that_of_whoever_submits(project: Project) -> None:
    project.run(step("correct"))
    files = project.take("correct", "fix", person="ada")
    (files / "lyrics.txt").write_text("new\n")
    said = project.perago("human", "submit", "fix", "--json", person="ben")
    assert said.json["output"]["person"] == "ben"
    assert project.history()[0].metadata["perago.person"] == "ben"


@pytest.mark.parametrize("person", ["ada, ben", "a\x1bb", "x" * 200])
def test_q13_a_name_that_is_none_is_refused(project: Project, person: str) -> None:
    project.run(step("correct"))
    assert project.perago("human", "list", person=person).code == 3


def test_a_file_that_is_still_written_is_not_published(project: Project) -> None:
    """Half of a file would be published, with a success on the screen."""
    project.run(step("correct"))
    files = project.take("correct", "fix")
    head = project.history()[0].id
    ended = threading.Event()

    def write() -> None:
        with (files / "lyrics.txt").open("w") as lyrics:
            while not ended.wait(0.05):
                print("line", file=lyrics, flush=True)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        until((files / "lyrics.txt").exists, "a file")
        said = project.perago("human", "submit", "fix")
    finally:
        ended.set()
        writer.join()
    assert said.code == 1, said
    # It is told by the times of the file, or by its bytes if they change while they are read.
    assert "is being changed" in said.err or "changed while it was read; end what" in said.err
    assert project.history()[0].id == head
    assert project.perago("human", "submit", "fix").code == 0


def test_a_directory_is_not_taken_inside_of_another_or_of_the_home(project: Project) -> None:
    project.run(step("correct"))
    project.take("correct", "fix")
    for place in ("fix/workspace/x", "fix/y", ".perago/x"):
        said = project.perago("human", "take", "correct", place, "--anyway")
        assert (said.code, "name a place elsewhere" in said.err) == (2, True), said
    assert contents(project.directory / "fix/workspace").keys() == {"song.txt", "other.txt"}


def test_a_directory_may_be_named_by_a_link(project: Project) -> None:
    project.run(step("correct"))
    (project.directory / "target").mkdir()
    (project.directory / "link").symlink_to("target")
    project.take("correct", "link")
    (project.directory / "target/workspace/lyrics.txt").write_text("new\n")
    assert project.perago("human", "submit", "link").code == 0


def test_q15_a_run_that_waits_is_shown_as_waiting(project: Project) -> None:
    run = project.run(step("correct"))
    assert project.perago("runs", "--json").json[0]["status"] == "WAITING"
    said = project.perago("watch", run)
    assert (said.code, "waits for a person" in said.out) == (5, True), said
    assert project.perago("cancel", run).code == 0
    said = project.perago("restart", run, "--json")
    assert said.code == 5, said
    assert [each["step"] for each in said.json["waiting"]] == ["correct"]


def test_q15_a_run_that_was_left_behind_a_done_step_is_named(project: Project) -> None:
    run = project.run(step("correct"), step("title", ""))
    files = project.take("correct", "fix")
    (files / "lyrics.txt").write_text("new\n")
    project.killed("correct:0:after report", "human", "submit", "fix")
    said = project.perago("human", "submit", "fix")
    assert (said.code, f"perago run --resume {run}" in said.err) == (1, True), said
    assert "COMPLETED by ada" in said.err
    assert project.perago("run", "--resume", run).code == 5


def test_a_rejection_says_what_it_makes_abandoned(project: Project) -> None:
    project.run(step("correct"))
    files = project.take("correct", "fix")
    (files / "lyrics.txt").write_text("new\n")
    project.killed("correct:0:before report", "human", "submit", "fix")
    said = project.perago("human", "reject", "correct", "--reason", "again", person="ben")
    assert "what ada published for it" in said.out
    assert project.history()[0].id[:12] in said.out


def test_who_has_not_taken_a_step_cannot_give_it_back(project: Project) -> None:
    project.run(step("correct"))
    said = project.perago("human", "return", "correct")
    assert (said.code, "ada has not taken" in said.err) == (2, True)


def test_a_place_without_a_home_is_told_so(project: Project) -> None:
    said = project.perago("human", "list")
    assert (said.code, "there is no Perago home" in said.err) == (2, True)


def test_q16_people_count_as_writers(project: Project) -> None:
    """W9 and W9a: neither side by side with another writer, nor after one without reading it."""
    second = {**step("correct"), "taskReferenceName": "second"}
    beside = {
        "name": "fork",
        "taskReferenceName": "fork",
        "type": "FORK_JOIN",
        "forkTasks": [[step("correct")], [second]],
    }
    both = {
        "name": "join",
        "taskReferenceName": "join",
        "type": "JOIN",
        "joinOn": ["correct", "second"],
    }
    for steps, problem in (
        ([beside, both], "may run at the same time"),
        ([step("correct"), second], "second"),
    ):
        project.workflow(*steps)
        for words in (
            ["run", "flow.json", "songs.toml", "--from", "data"],
            ["check", "songs.toml", "flow.json"],
        ):
            said = project.perago(*words)
            assert (said.code, problem in said.err) == (2, True), said


def test_steps_of_local_runs_are_listed_when_conductor_is_away(project: Project) -> None:
    project.run(step("correct"))
    away = {"CONDUCTOR_SERVER_URL": "http://127.0.0.1:9/api"}
    said = project.perago("human", "list", "--json", more=away)
    assert (said.code, [each["step"] for each in said.json]) == (4, ["correct"])
    assert "BrokerUnavailableError" in said.err
    files = project.take("correct", "fix")
    (files / "lyrics.txt").write_text("new\n")
    assert project.perago("human", "submit", "fix", more=away).code == 0


def test_on_a_terminal_a_person_is_asked_for_the_result(project: Project) -> None:
    manifest = project.directory / "songs.toml"
    text = manifest.read_text()
    manifest.write_text(
        text.replace(
            'properties = { title = { type = "string" } }',
            'properties = { title = { type = "string", description = "its name" },'
            ' good = { type = "boolean" }, year = { type = "integer" }, more = {} }',
        )
    )
    project.run(step("title", ""), step("release"))
    shown = _typed(project, ["human", "submit", "title"], ["La la", "yes", "1984", ""])
    assert "title (its name):" in shown
    assert "✓ title  completed" in shown
    with_home = project.home
    (done,) = [
        task
        for task in with_home.state.tasks(with_home.state.runs()[0].id)
        if task.reference_name == "title"
    ]
    with_home.close()
    assert done.output["result"] == {"title": "La la", "good": True, "year": 1984}
    shown = _typed(project, ["human", "approve", "release"], ["n"])
    assert "approve" in shown
    assert [task.step for task in project.waiting()] == ["release"]
    assert "COMPLETED" in _typed(project, ["human", "approve", "release"], ["y"])


def _typed(project: Project, words: list[str], answers: list[str]) -> str:
    """Run a command on a terminal, type the answers, and return what was shown."""
    leader, terminal = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "perago", *words],
        cwd=project.directory,
        env=clean_environment() | {"PERAGO_PERSON": "ada", "TERM": "dumb"},
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
    ) as process:
        os.close(terminal)
        os.write(leader, "".join(f"{answer}\n" for answer in answers).encode())
        shown = b""
        with suppress(OSError):
            while read := os.read(leader, 4096):
                shown += read
        process.wait(LIMIT)
    os.close(leader)
    return shown.decode()
