"""``perago branch`` on both stores."""

from __future__ import annotations

from pathlib import Path

import pytest

from perago.dev import LakeFSEndpoint
from perago.protocol.names import STAGING
from perago.protocol.values import Staging
from perago.stores.embedded import EmbeddedStore
from tests.cli.conftest import Perago
from tests.lakefs_lab import ArrangedLakeFS, new_name

Place = tuple[tuple[str, ...], EmbeddedStore | ArrangedLakeFS, str]


@pytest.fixture(params=["embedded", "lakefs"])
def place(
    request: pytest.FixtureRequest, project: Path, tmp_path_factory: pytest.TempPathFactory
) -> Place:
    """Give a repository with one file, and the options that name it."""
    name = new_name()
    store: EmbeddedStore | ArrangedLakeFS
    if request.param == "embedded":
        (project / ".perago").mkdir(mode=0o700)
        store = EmbeddedStore(project / ".perago" / "store")
    else:
        server: LakeFSEndpoint = request.getfixturevalue("lakefs_server")
        store = ArrangedLakeFS(server, tmp_path_factory.mktemp("looker"))
        (project / ".env").write_text(
            f"LAKECTL_SERVER_ENDPOINT_URL={server.endpoint}\n"
            f"LAKECTL_CREDENTIALS_ACCESS_KEY_ID={server.access_key_id}\n"
            f"LAKECTL_CREDENTIALS_SECRET_ACCESS_KEY={server.secret}\n"
            f"PERAGO_CACHE_ROOT={project / 'cache'}\n"
        )
    store.create_repository(name)
    store.put(name, "main", "a.txt", b"a")
    store.commit_branch(name, "main", "begin", {})
    return ("--store", request.param, "--repo", name), store, name


def test_a_branch_is_made_listed_and_deleted(inside: Perago, place: Place) -> None:
    options, store, name = place
    head = store.head(name, "main").id
    store.open_staging(Staging(name, f"{STAGING}x-exec-y"), head)
    made = inside("branch", "create", "trial", *options)
    assert made.code == 0, made
    assert head[:12] in made.out
    assert inside("branch", "create", "old", "--from", head, *options, "--json").code == 0
    listed = inside("branch", "list", *options, "--json").json
    assert (listed["repository"], listed["default"]) == (name, "main")
    assert [each["branch"] for each in listed["branches"]] == ["main", "old", "trial"]
    assert {each["head"] for each in listed["branches"]} == {head}
    assert "perago-staging" not in inside("branch", "list", *options).out
    gone = inside("branch", "delete", "trial", *options)
    assert gone.code == 0, gone
    assert head in gone.out
    assert inside("branch", "delete", "trial", *options).code == 4
    listed = inside("branch", "list", *options, "--json").json
    assert [each["branch"] for each in listed["branches"]] == ["main", "old"]


def test_what_must_stay_is_not_deleted(inside: Perago, place: Place) -> None:
    options, store, name = place
    head = store.head(name, "main").id
    private = f"{STAGING}x-exec-y"
    store.open_staging(Staging(name, private), head)
    inside("branch", "create", "changed", *options)
    store.put(name, "changed", "b.txt", b"b")
    for words, said in (
        (("delete", "main"), "default branch"),
        (("delete", private), "private branch"),
        (("create", private), "private branch"),
        (("delete", "perago-probe-1-x"), "private branch"),
        (("delete", "changed"), "uncommitted"),
        (("create", "[red]a:fire:"), "is not a branch name"),
        (("create", "x" * 600), "is not a branch name"),
    ):
        answer = inside("branch", *words, *options)
        assert (answer.code, answer.err.count("\n")) == (2, 1), answer
        assert said in answer.err
    taken = inside("branch", "create", "changed", *options)
    assert taken.code == 4
    assert "changed" in taken.err
    nowhere = inside("branch", "create", "new", "--from", "no-such-ref", *options)
    assert (nowhere.code, nowhere.err.count("\n")) == (4, 1)
    assert store.head(name, private).id == head
