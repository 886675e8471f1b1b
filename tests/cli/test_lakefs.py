"""The commands on a real lakeFS server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perago.dev import LakeFSEndpoint
from perago.stores.lakefs.client import Ask
from perago.stores.lakefs.errors import Call
from perago.transfer.wire import path_of
from tests.cli.conftest import Perago
from tests.lakefs_lab import ArrangedLakeFS, new_name

FILES = {"harbour.txt": b"boats and lamps and boats\n"}


@pytest.fixture
def server(
    lakefs_server: LakeFSEndpoint, tmp_path_factory: pytest.TempPathFactory
) -> ArrangedLakeFS:
    return ArrangedLakeFS(lakefs_server, tmp_path_factory.mktemp("looker"))


@pytest.fixture
def repository(project: Path, perago: Perago, server: ArrangedLakeFS) -> str:
    """Configure the project for the server, and make a repository with a text on it."""
    assert perago("init", ".").code == 0
    endpoint = server._endpoint  # noqa: SLF001 - the keys of the server under test
    (project / ".env").write_text(
        f"LAKECTL_SERVER_ENDPOINT_URL={endpoint.endpoint}\n"
        f"LAKECTL_CREDENTIALS_ACCESS_KEY_ID={endpoint.access_key_id}\n"
        f"LAKECTL_CREDENTIALS_SECRET_ACCESS_KEY={endpoint.secret}\n"
        f"PERAGO_CACHE_ROOT={project / 'cache'}\n"
    )
    name = new_name()
    made = perago("repo", "init", name, "--json")
    assert made.json["made"], made
    for key, content in FILES.items():
        server.put(name, "main", key, content)
    server.commit_branch(name, "main", "texts")
    return name


def test_a_workflow_publishes_on_lakefs(
    perago: Perago, server: ArrangedLakeFS, repository: str
) -> None:
    run = ("run", "workflow.json", "tasks", "--store", "lakefs", "--repo", repository)
    first = perago(*run, "--json")
    assert first.code == 0, first
    assert first.json["output"]["words"] == ["boats", "lamps"]
    head = server.head(repository, "main")
    assert head.id == first.json["output"]["workspace"]["ref"]
    assert head.metadata["perago.phase"] == "confirm"
    assert "nothing to publish" in perago(*run).out


def test_a_killed_attempt_is_replaced_and_leaves_no_branch(
    project: Path, perago: Perago, server: ArrangedLakeFS, repository: str
) -> None:
    run = ("run", "workflow.json", "tasks", "--store", "lakefs", "--repo", repository)
    before = server.head(repository, "main")
    answer = perago(*run, env={"PERAGO_KILL_AT": "count:0:after publish"})
    assert "killed by SIGKILL" in answer.out
    assert "replaced an abandoned publication with" in answer.out
    assert server.head(repository, "main").parents == (before.id,)
    assert [branch.name for branch in server.branches(repository, hidden=True)] == ["main"]
    collected = perago("gc", "--json")
    assert collected.json["branches"] == []


def test_a_stopped_run_goes_on_where_it_was(perago: Perago, repository: str) -> None:
    failed = perago(
        *("run", "tasks:count_words", "--store", "lakefs", "--repo", repository),
        *("--params", '{"min_length": 0}', "--json"),
    )
    assert failed.code == 1
    resumed = perago("run", "--resume", failed.json["run"], "--json")
    assert resumed.code == 1
    assert "min_length" in resumed.json["reason"]


def test_doctor_finds_everything_well_and_says_what_is_not(
    perago: Perago, server: ArrangedLakeFS, repository: str
) -> None:
    well = perago("doctor", "--repo", repository, "--json")
    assert well.code == 0, well
    assert well.json["healthy"]
    assert [branch.name for branch in server.branches(repository, hidden=True)] == ["main"]
    wrong = {"LAKECTL_CREDENTIALS_SECRET_ACCESS_KEY": "wrong"}
    ill = perago("doctor", "--json", env=wrong)
    assert ill.code == 1
    bad = [finding for finding in ill.json["findings"] if finding["health"] == "bad"]
    assert [finding["what"] for finding in bad] == ["lakeFS"]
    assert bad[0]["remedy"]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("run", "tasks:count_words", "--store", "lakefs"), "which repository"),
        (("run", "tasks:count_words", "--store", "lakefs", "--repo", "no-such"), "no-such"),
        (("run", "tasks:count_words", "--store", "x"), "embedded or lakefs"),
        (("repo", "init", "No!"), "small letters"),
    ],
)
def test_mistakes_on_lakefs_get_one_sentence(
    perago: Perago, repository: str, arguments: tuple[str, ...], word: str
) -> None:
    answer = perago(*arguments)
    assert answer.code in {2, 4}
    assert answer.err.count("\n") == 1
    assert word in answer.err


def test_without_configuration_lakefs_is_refused(project: Path, perago: Perago) -> None:
    assert perago("init", ".").code == 0
    answer = perago("run", "workflow.json", "tasks", "--store", "lakefs", "--repo", "any")
    assert answer.code == 3
    assert "LAKECTL_SERVER_ENDPOINT_URL" in answer.err
    assert json.loads(perago("doctor", "--json").out)["healthy"]


def test_files_of_a_directory_are_committed_first(
    project: Path, perago: Perago, server: ArrangedLakeFS, repository: str
) -> None:
    (project / "new" / "deep").mkdir(parents=True)
    (project / "new" / "deep" / "gulls [red].txt").write_text("gulls gulls\n")
    (project / "new" / "mountain.txt").write_text("rocks and boats\n")
    before = server.head(repository, "main")
    run = ("run", "workflow.json", "tasks", "--store", "lakefs", "--repo", repository)
    first = perago(*run, "--from", "new", "--json")
    assert first.code == 0, first
    published, imported, found = list(server.history(repository, "main"))[:3]
    assert published.id == first.json["output"]["workspace"]["ref"]
    assert (imported.message, found.id) == ("files from new", before.id)
    added = server.diff(repository, before.id, imported.id, "").added
    assert sorted(added) == ["deep/gulls [red].txt", "mountain.txt"]
    again = perago(*run, "--from", "new")
    assert again.code == 0, again
    assert server.head(repository, "main").id == published.id, "the same files are no change"
    assert [branch.name for branch in server.branches(repository, hidden=True)] == ["main"]


def test_a_branch_under_the_hard_fence_takes_files_too(
    project: Path, perago: Perago, server: ArrangedLakeFS, repository: str
) -> None:
    assert perago("repo", "init", repository, "--fence", "hard").code == 0
    run = ("run", "workflow.json", "tasks", "--store", "lakefs", "--repo", repository)
    done = perago(*run, "--from", "data", "--json")
    assert done.code == 0, done
    assert "files from data" in [each.message for each in server.history(repository, "main")]


@pytest.mark.parametrize("problem", ["link", "changes", "action", "nowhere"])
def test_files_that_cannot_be_committed_change_nothing(
    project: Path, perago: Perago, server: ArrangedLakeFS, repository: str, problem: str
) -> None:
    (project / "new").mkdir()
    (project / "new" / "a.txt").write_text("a\n")
    target = repository
    if problem == "link":
        (project / "new" / "b.txt").symlink_to("a.txt")
    elif problem == "changes":
        server.put(repository, "main", "loose.txt", b"x")
    elif problem == "action":
        (project / "new" / "_lakefs_actions").mkdir()
        (project / "new" / "_lakefs_actions" / "x.yaml").write_text("x")
    else:
        target = "no-such-repository"
    before = server.head(repository, "main")
    run = ("run", "workflow.json", "tasks", "--store", "lakefs", "--repo", target)
    answer = perago(*run, "--from", "new")
    assert answer.code in {1, 2}, answer
    assert answer.err.count("\n") == 1
    word = {"link": "link", "changes": "uncommitted", "action": "_lakefs_actions"}
    assert word.get(problem, "perago repo init no-such-repository") in answer.err
    assert server.head(repository, "main").id == before.id
    assert [branch.name for branch in server.branches(repository, hidden=True)] == ["main"]


@pytest.mark.parametrize("state", ["not configured", "not running"])
def test_gc_cleans_what_it_can_without_the_server(
    project: Path, perago: Perago, repository: str, state: str
) -> None:
    run = ("run", "workflow.json", "tasks")
    assert perago(*run, "--store", "lakefs", "--repo", repository).code == 0
    kill = {"PERAGO_KILL_AT": "count:0:after publish"}
    assert "replaced" in perago(*run, "--from", "data", env=kill).out
    if state == "not configured":
        (project / ".env").unlink()
        elsewhere: dict[str, str] = {}
    else:
        elsewhere = {"LAKECTL_SERVER_ENDPOINT_URL": "http://127.0.0.1:9"}
    shown = perago("gc", env=elsewhere)
    assert "not looked at: staging branches of " + repository in shown.out
    assert "LAKECTL_SERVER_ENDPOINT_URL" in shown.out
    answer = perago("gc", "--older-than", "0s", "--delete", "--json", env=elsewhere)
    assert answer.code == shown.code == (0 if state == "not configured" else 4)
    assert answer.json["commits"] >= 1
    (skipped,) = answer.json["skipped"]
    assert repository in skipped["what"]
    assert "LAKECTL_SERVER_ENDPOINT_URL" in skipped["remedy"]


def test_gc_does_not_ask_for_a_repository_that_is_gone(
    project: Path, perago: Perago, server: ArrangedLakeFS, repository: str
) -> None:
    run = ("run", "workflow.json", "tasks", "--store", "lakefs", "--repo", repository)
    assert perago(*run).code == 0
    server.client.ask(Ask("delete", "DELETE", path_of("repositories", repository), Call.PRIVATE))
    answer = perago("gc", "--delete", "--json")
    assert answer.code == 0
    assert answer.json["skipped"] == [], "nothing is left of what is gone"


def test_every_command_that_looks_takes_the_store_and_the_repository(
    project: Path, perago: Perago, server: ArrangedLakeFS, repository: str
) -> None:
    before = server.head(repository, "main").id
    place = ("--store", "lakefs", "--repo", repository)
    ran = perago("run", "workflow.json", "tasks", *place)
    hint = f"perago log --store lakefs --repo {repository}"
    assert hint in ran.out
    assert perago(*hint.split()[1:]).out.splitlines()[2].split()[3] == "count"
    (project / "elsewhere").mkdir()
    away = {"PERAGO_HOME": str(project / "elsewhere" / "home")}
    head = server.head(repository, "main").id
    assert perago("log", *place, "--json", env=away).json["publications"][0]["commit"] == head
    assert perago("diff", before, *place, "--json", env=away).json["added"] == ["counts.csv"]
    assert perago("inspect", head, *place, "--json", env=away).json["commit"]["id"] == head
    assert perago("checkout", "out", *place, "--json", env=away).json["files"] == 2
    assert (project / "out" / "harbour.txt").read_bytes() == FILES["harbour.txt"]
    assert perago("verify", *place, "--json", env=away).json["objects"] == 2
    assert not (project / "elsewhere" / "home").exists(), "looking makes nothing"
    two = perago("log", "other", *place)
    assert (two.code, two.err.count("\n")) == (2, 1)
    assert "two repositories" in two.err
