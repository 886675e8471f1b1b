"""Resolving, listing, comparing, downloading (rules D, I4)."""

from __future__ import annotations

from pathlib import Path

import pytest

from perago.errors import CorruptObjectError, NotFoundError, PeragoError
from perago.ports import Fetch, Store
from perago.protocol.values import ChangeSet, Entry
from tests.contract.backend import Backend, entry_of
from tests.contract.scene import FILES, Scene


def wanted(scene: Scene, to: Path, keys: tuple[str, ...] = tuple(FILES)) -> list[Fetch]:
    return [Fetch(key, entry_of(scene.store, FILES[key]), to / key) for key in keys]


def test_a_backend_is_a_store(backend: Backend) -> None:
    store: Store = backend.store
    assert store.checksum in {"sha256", "md5"}


def test_i4_only_the_full_id_of_a_commit_equals_its_ref(scene: Scene) -> None:
    for ref in ("main", scene.a.id, scene.a.id[:12]):
        assert scene.store.commit(scene.repository, ref).id == scene.a.id
    assert scene.store.commit(scene.repository, scene.a.id) == scene.a


@pytest.mark.parametrize("ref", ["nowhere", "0" * 64, "abcdef0123", ""])
def test_i4_an_unknown_ref_is_not_found(scene: Scene, ref: str) -> None:
    with pytest.raises(NotFoundError):
        scene.store.commit(scene.repository, ref)


def test_unknown_repository_and_branch_are_not_found(scene: Scene) -> None:
    with pytest.raises(NotFoundError):
        scene.store.head("no-such-repository", "main")
    with pytest.raises(NotFoundError):
        scene.store.head(scene.repository, "no-such-branch")
    with pytest.raises(NotFoundError):
        scene.store.dirty(scene.repository, "no-such-branch")


def test_a_branch_name_is_not_an_id_for_head(scene: Scene) -> None:
    with pytest.raises(NotFoundError):
        scene.store.head(scene.repository, scene.a.id)


def test_head_is_read_fresh_after_every_move(scene: Scene) -> None:
    before = scene.head()
    after = scene.backend.seed(scene.repository, {"more": b"x"})
    assert (before, scene.head()) == (scene.a.id, after.id)


def test_history_walks_first_parents_newest_first(scene: Scene) -> None:
    later = scene.backend.seed(scene.repository, {"more": b"x"})
    assert scene.history()[:2] == [later.id, scene.a.id]
    assert later.parent == scene.a.id


def test_d1_a_prefix_never_matches_its_longer_neighbour(scene: Scene) -> None:
    assert scene.keys(scene.a.id, "ws/") == ["ws/raw/one.txt", "ws/raw/two.txt"]


def test_d1_the_empty_root_lists_everything_sorted(scene: Scene) -> None:
    assert scene.keys(scene.a.id) == sorted(FILES)


def test_d1_a_commit_does_not_show_later_or_uncommitted_changes(scene: Scene) -> None:
    scene.backend.seed(scene.repository, {"ws/later.txt": b"x"})
    scene.backend.put_uncommitted(scene.repository, "main", "ws/loose.txt", b"x")
    assert scene.keys(scene.a.id, "ws/") == ["ws/raw/one.txt", "ws/raw/two.txt"]
    assert "ws/loose.txt" not in scene.keys(scene.head())


def test_d2_hostile_keys_are_listed_raw_for_the_plan_to_refuse(scene: Scene) -> None:
    hostile = [
        "../x",
        "/etc/passwd",
        "a//b",
        "dir/",
        "p",
        "p/q",
        "Case",
        "case",
        "n\N{COMBINING ACUTE ACCENT}",
    ]
    at = scene.backend.seed(scene.repository, {f"h/{key}": b"!" for key in hostile})
    assert scene.keys(at.id, "h/") == sorted(f"h/{key}" for key in hostile)


def test_d3_listing_gives_size_and_content_checksum(scene: Scene) -> None:
    listed = {
        info.key: Entry(info.size, info.checksum)
        for info in scene.store.listing(scene.repository, scene.a.id, "")
    }
    assert listed == {key: entry_of(scene.store, content) for key, content in FILES.items()}


def test_d3_fetched_files_have_the_bytes_and_every_byte_is_counted(scene: Scene) -> None:
    to = scene.place / "room" / "deep"
    scene.store.fetch(scene.repository, scene.a.id, wanted(scene, to), scene.advance)
    assert {key: (to / key).read_bytes() for key in FILES} == FILES
    assert scene.moved == sum(map(len, FILES.values()))


def test_d3_an_object_that_is_not_what_was_planned_is_refused_by_name(scene: Scene) -> None:
    to = scene.place / "room" / "one"
    wrong = Fetch("ws/raw/one.txt", entry_of(scene.store, b"eno"), to)
    with pytest.raises(CorruptObjectError, match=r"ws/raw/one\.txt"):
        scene.store.fetch(scene.repository, scene.a.id, [wrong], scene.advance)
    assert not to.exists()


def test_d3_a_key_that_is_not_there_is_not_found(scene: Scene) -> None:
    missing = Fetch("ws/none", entry_of(scene.store, b""), scene.place / "none")
    with pytest.raises(NotFoundError):
        scene.store.fetch(scene.repository, scene.a.id, [missing], scene.advance)


def test_fetched_files_belong_to_the_task(scene: Scene) -> None:
    """Writing into them changes nothing in the store."""
    to = scene.place / "room"
    scene.store.fetch(scene.repository, scene.a.id, wanted(scene, to), scene.advance)
    mine = to / "top.txt"
    assert mine.stat().st_nlink == 1
    with mine.open("r+b") as opened:
        opened.write(b"TOP")
    assert scene.content(scene.a.id, "top.txt") == b"top"


def test_d2_a_file_or_link_in_the_way_is_never_written_through(scene: Scene) -> None:
    to = scene.place / "room"
    (to / "ws/raw").mkdir(parents=True)
    outside = scene.place / "outside"
    outside.write_bytes(b"precious")
    (to / "ws/raw/one.txt").symlink_to(outside)
    with pytest.raises(PeragoError):
        scene.store.fetch(
            scene.repository, scene.a.id, wanted(scene, to, ("ws/raw/one.txt",)), scene.advance
        )
    assert outside.read_bytes() == b"precious"


def test_diff_compares_by_content_below_a_root(scene: Scene) -> None:
    staged = scene.stage(
        {"ws/raw/one.txt": b"ONE", "ws/new.txt": b"new", "ws2/other.txt": b"changed"},
        deletes=("ws/raw/two.txt",),
    )
    found = scene.store.diff(scene.repository, scene.a.id, staged.commit, "ws/")
    assert found == ChangeSet(
        added=("ws/new.txt",), changed=("ws/raw/one.txt",), removed=("ws/raw/two.txt",)
    )
    assert not scene.store.diff(scene.repository, scene.a.id, scene.a.id, "")


def test_a_failing_progress_watcher_stops_the_download(scene: Scene) -> None:
    def lost(_: int) -> None:
        raise TimeoutError("the lease is gone")

    with pytest.raises(TimeoutError):
        scene.store.fetch(scene.repository, scene.a.id, wanted(scene, scene.place / "r"), lost)
