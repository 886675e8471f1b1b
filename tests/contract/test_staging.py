"""Private branches: create, write, seal, drop (rules S)."""

from __future__ import annotations

import pytest

from perago.errors import (
    AlreadyExistsError,
    NotFoundError,
    StoreError,
    UnpublishableFileError,
)
from perago.ports import Put
from perago.protocol.publication import Merge
from perago.protocol.values import StagedWorkspace, Staging
from tests.contract.backend import entry_of
from tests.contract.scene import FILES, Scene


def test_s1_a_staging_branch_starts_at_the_input_ref(scene: Scene) -> None:
    scene.backend.seed(scene.repository, {"later": b"x"})
    staging = scene.staging()
    scene.store.open_staging(staging, scene.a.id)
    assert scene.store.head(scene.repository, staging.branch).id == scene.a.id


def test_s1_a_branch_that_exists_is_never_reused(scene: Scene) -> None:
    staging = scene.staging()
    scene.store.open_staging(staging, scene.a.id)
    with pytest.raises(AlreadyExistsError):
        scene.store.open_staging(staging, scene.a.id)
    with pytest.raises(AlreadyExistsError):
        scene.store.open_staging(Staging(scene.repository, "main"), scene.a.id)


def test_s1_a_branch_needs_a_commit_to_start_from(scene: Scene) -> None:
    with pytest.raises(NotFoundError):
        scene.store.open_staging(scene.staging(), "0" * 64)


def test_s2_new_changed_and_vanished_files_and_nothing_else(scene: Scene) -> None:
    staged = scene.stage({"ws/raw/one.txt": b"ONE", "ws/new": b""}, deletes=("ws/raw/two.txt",))
    assert scene.keys(staged.commit) == ["top.txt", "ws/new", "ws/raw/one.txt", "ws2/other.txt"]
    assert scene.content(staged.commit, "ws/raw/one.txt") == b"ONE"
    assert scene.content(staged.commit, "ws/new") == b""
    assert scene.content(staged.commit, "ws2/other.txt") == FILES["ws2/other.txt"]


def test_s2_writing_the_same_twice_is_the_same_as_once(scene: Scene) -> None:
    staging = scene.staging()
    scene.store.open_staging(staging, scene.a.id)
    puts = [scene.put("ws/new", b"new"), scene.put("ws/copy", FILES["top.txt"])]
    for _ in range(2):
        scene.store.write(staging, puts, ["ws/raw/one.txt", "ws/never-there"], scene.advance)
    sealed = scene.store.seal(staging, "m", {})
    assert scene.keys(sealed.commit, "ws/") == ["ws/copy", "ws/new", "ws/raw/two.txt"]
    assert scene.content(sealed.commit, "ws/copy") == FILES["top.txt"]


def test_s2_nothing_is_visible_on_the_target_before_publication(scene: Scene) -> None:
    scene.stage({"ws/new": b"new"})
    assert scene.head() == scene.a.id
    assert not scene.store.dirty(scene.repository, "main")


def test_s3_symlinks_are_refused_before_any_upload(scene: Scene) -> None:
    staging = scene.staging()
    scene.store.open_staging(staging, scene.a.id)
    link = scene.place / "link"
    link.symlink_to(scene.file(b"target"))
    put = Put("ws/link", entry_of(scene.store, b"target"), link)
    with pytest.raises(UnpublishableFileError, match="does not support symlinks"):
        scene.store.write(staging, [put], [], scene.advance)


@pytest.mark.parametrize("now", [b"longer than it was", b"ten", b""])
def test_s3_a_file_that_changed_since_it_was_scanned_is_refused(scene: Scene, now: bytes) -> None:
    staging = scene.staging()
    scene.store.open_staging(staging, scene.a.id)
    quiet, restless = scene.put("ws/quiet", b"quiet"), scene.put("ws/restless", b"one")
    restless.source.write_bytes(now)
    with pytest.raises(UnpublishableFileError, match="changed while it was read"):
        scene.store.write(staging, [quiet, restless], [], scene.advance)
    assert "ws/restless" not in scene.keys(staging.branch)


def test_s3_known_content_does_not_excuse_a_changed_file(scene: Scene) -> None:
    staging = scene.staging()
    scene.store.open_staging(staging, scene.a.id)
    put = scene.put("ws/again", FILES["top.txt"])
    put.source.write_bytes(b"pot")
    with pytest.raises(UnpublishableFileError):
        scene.store.write(staging, [put], [], scene.advance)


def test_s3_a_vanished_file_is_refused(scene: Scene) -> None:
    staging = scene.staging()
    scene.store.open_staging(staging, scene.a.id)
    put = scene.put("ws/gone", b"gone")
    put.source.unlink()
    with pytest.raises(UnpublishableFileError):
        scene.store.write(staging, [put], [], scene.advance)


def test_s4_a_sealed_branch_is_a_value_with_a_commit_on_the_input(scene: Scene) -> None:
    staging = scene.staging()
    scene.store.open_staging(staging, scene.a.id)
    scene.store.write(staging, [scene.put("ws/new", b"new")], [], scene.advance)
    said = {"perago.phase": "try", "perago.execution_id": "e1"}
    sealed = scene.store.seal(staging, "staged by e1", said)
    commit = scene.store.commit(scene.repository, sealed.commit)
    assert sealed == StagedWorkspace(staging.repository, staging.branch, commit.id)
    assert commit.parents == (scene.a.id,)
    assert commit.message == "staged by e1"
    assert said.items() <= commit.metadata.items()
    assert not scene.store.dirty(scene.repository, staging.branch)


def test_g1_sealing_without_a_change_makes_no_commit(scene: Scene) -> None:
    staging = scene.staging()
    scene.store.open_staging(staging, scene.a.id)
    with pytest.raises(StoreError):
        scene.store.seal(staging, "empty", {})
    assert scene.store.head(scene.repository, staging.branch).id == scene.a.id


def test_s2_upload_progress_counts_every_byte(scene: Scene) -> None:
    scene.stage({"ws/new": b"12345", "ws/known": FILES["top.txt"]})
    assert scene.moved == 5 + len(FILES["top.txt"])


def test_drop_removes_branch_and_changes_and_is_fine_twice(scene: Scene) -> None:
    staging = scene.staging()
    scene.store.open_staging(staging, scene.a.id)
    scene.store.write(staging, [scene.put("ws/new", b"new")], [], scene.advance)
    for _ in range(2):
        scene.store.drop(staging)
    with pytest.raises(NotFoundError):
        scene.store.head(scene.repository, staging.branch)
    scene.store.open_staging(staging, scene.a.id)
    assert not scene.store.dirty(scene.repository, staging.branch)


def test_p5_a_staged_commit_outlives_its_branch(scene: Scene) -> None:
    staged = scene.stage({"ws/new": b"new"})
    scene.store.drop(Staging(staged.repository, staged.branch))
    published = scene.publish(Merge(scene.a.id, staged.commit))
    assert scene.content(published.ref, "ws/new") == b"new"
