"""kill -9 between every two steps of a person's submit: nothing is lost, and it can be repeated."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from perago.protocol.points import POINTS
from perago.protocol.values import Phase
from tests import injection
from tests.human.project import Project, contents, snapshot, step

FENCES = ("head", "lineage", "hard")


def prepared(directory: Path, fence: str) -> tuple[Project, Path]:
    """Give a project whose step was taken and done."""
    project = Project(directory, fence)
    project.run(step("correct"))
    files = project.take("correct", "fix")
    (files / "lyrics.txt").write_text("mine\n")
    (files / "other.txt").unlink()
    return project, files


def check_completed(project: Project, files: Path, base: str) -> None:
    """The person's files are published once, on top of what the step began with (V1 to V4)."""
    assert project.files() == contents(files)
    if project.fence != "lineage":  # K2 publishes on what only this step has advanced.
        assert project.history()[1].id == base, "never A -> H -> C"
    assert project.waiting() == []
    left = project.home.attempt_dirs
    assert [each for each in left.iterdir() if not each.name.startswith(".")] == []


@pytest.mark.parametrize("fence", FENCES)
def test_q11_a_submit_that_is_killed_anywhere_is_repeated_and_loses_nothing(
    tmp_path: Path, fence: str
) -> None:
    points = POINTS if fence == "head" else POINTS[POINTS.index("before publish") :]
    for number, point in enumerate(points):
        project, files = prepared(tmp_path / str(number), fence)
        base, before = project.history()[0].id, snapshot(files)
        said = project.killed(f"correct:0:{point}", "human", "submit", "fix")
        assert injection.OFF or said.code == -signal.SIGKILL, (point, said)
        assert snapshot(files) == before, point
        head = project.history()[0]
        assert head.id == base or head.parents == (base,), point
        if head.id != base:
            assert project.files() == contents(files), f"{point}: visible, so it is whole (V2)"
        # What was edited after the kill is what counts: nothing is adopted from the dead submit.
        (files / "lyrics.txt").write_text(f"again {number}\n")
        said = project.perago("human", "submit", "fix")
        if point == f"after {Phase.REPORT}":
            assert "no longer open" in said.err, (point, said)
            (files / "lyrics.txt").write_text("mine\n")
            assert project.perago("run", "--resume", "last").code == 0, point
            continue
        assert said.code == 0, (point, said)
        check_completed(project, files, base)


@pytest.mark.parametrize("fence", FENCES)
def test_q11_what_one_person_published_and_could_not_report_is_not_replaced_by_another(
    tmp_path: Path, fence: str
) -> None:
    project, files = prepared(tmp_path / "p", fence)
    other = project.take("correct", "hers", "--anyway", person="ben")
    (other / "lyrics.txt").write_text("hers\n")
    project.killed(f"correct:0:before {Phase.REPORT}", "human", "submit", "fix")
    published = project.history()[0].id
    said = project.perago("human", "submit", "hers", person="ben")
    assert said.code == 1
    assert "published by" in said.err
    assert project.history()[0].id == published
    assert (other / "lyrics.txt").read_text() == "hers\n"
    assert project.perago("human", "submit", "fix").code == 0
    assert project.files() == contents(files)


def test_q11_two_people_who_submit_at_the_same_moment_publish_one_work(tmp_path: Path) -> None:
    for number in range(6):
        project, files = prepared(tmp_path / str(number), FENCES[number % 3])
        other = project.take("correct", "hers", "--anyway", person="ben")
        (other / "lyrics.txt").write_text("hers\n")
        base = project.history()[0].id
        with ThreadPoolExecutor(2) as both:
            said = [
                *both.map(
                    lambda who, project=project: project.perago(
                        "human", "submit", who[0], person=who[1]
                    ),
                    (("fix", "ada"), ("hers", "ben")),
                )
            ]
        done = [each.code for each in said].count(0)
        while done == 0:
            # Each met the other's moving branch, and was refused: both can try again.
            done = [
                project.perago("human", "submit", each, person=who).code
                for each, who in (("fix", "ada"), ("hers", "ben"))
            ].count(0)
        assert done == 1, said
        winner = contents(files) if said[0].code == 0 else None
        assert project.files() in ([winner] if winner else [contents(files), contents(other)])
        assert base in [commit.id for commit in project.history()[1:3]]


@pytest.mark.parametrize("point", ["before body", "after body"])
def test_a_take_that_is_cut_short_leaves_nothing_that_looks_taken(
    project: Project, point: str
) -> None:
    """A full disk while files are copied: the directory is not there, the step waits on."""
    project.run(step("correct"))
    target = project.directory / "fix"
    if point == "before body":
        target.write_text("a file is in the way")
    else:
        target.mkdir()
        (target / "something").write_text("mine")
    said = project.perago("human", "take", "correct", "fix")
    assert said.code == 2, said
    assert project.waiting()[0].claimed_by == ()
    assert project.perago("human", "take", "correct", "fix2").code == 0
