"""A huge prefix, a part at a time: X6, on every store."""

from __future__ import annotations

from pathlib import Path

import pytest

from perago.errors import NotFoundError
from perago.ports import PagedListing, StoreView
from perago.protocol.key_ranges import KeyRange
from perago.protocol.values import ObjectInfo
from perago.stores.key_ranges import Listed
from tests.contract.backend import Backend
from tests.contract.scene import FILES, Scene


@pytest.fixture
def shelf(backend: Backend) -> PagedListing:
    store: object = backend.store
    assert hasattr(store, "page")
    return store  # type: ignore[return-value]


def test_x6_pages_are_the_listing_in_parts(scene: Scene, shelf: PagedListing) -> None:
    whole = list(scene.store.listing(scene.repository, scene.a.id, ""))
    here = Listed(shelf, scene.repository, scene.a.id)
    for step in (1, 2, 3, 100):
        assert list(here.walk(step=step)) == whole
    assert [info.key for info in here.walk(KeyRange("top.txt", "ws/raw/two.txt"), 1)] == [
        "ws/raw/one.txt",
        "ws/raw/two.txt",
    ]


@pytest.mark.parametrize("root", ["", "ws/", "ws", "ws/raw/t", "nothing/"])
@pytest.mark.parametrize("after", ["", "a", "ws", "ws/", "ws/raw/one.txt", "ws2/", "zz"])
def test_x6_a_page_begins_after_a_key_and_stays_below_the_root(
    scene: Scene, shelf: PagedListing, root: str, after: str
) -> None:
    found = shelf.page(scene.repository, scene.a.id, root, after, 10)
    assert [info.key for info in found] == [
        key for key in sorted(FILES) if key.startswith(root) and key > after
    ]


def test_x6_odd_keys_are_paged_by_code_point(backend: Backend, shelf: PagedListing) -> None:
    repository = backend.new_repository()
    keys = ["a b/c+d", "a/é", "a/e\u0301", "a/中文", "a/\U0001f600", "a/\ufb01", "A/b", "~"]
    commit = backend.seed(repository, {key: key.encode() for key in keys})
    here = Listed(shelf, repository, commit.id)
    for step in (1, 3):
        assert [info.key for info in here.walk(step=step)] == sorted(keys)


def test_x6_an_object_is_what_its_listing_says(
    scene: Scene, shelf: PagedListing, tmp_path: Path
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    for info in scene.store.listing(scene.repository, scene.a.id, ""):
        assert shelf.check(scene.repository, scene.a.id, info, scratch) is None
    assert list(scratch.iterdir()) == []


def test_x6_another_content_is_corrupt_and_no_content_is_missing(
    scene: Scene, shelf: PagedListing, tmp_path: Path
) -> None:
    other = f"{scene.store.checksum}:{'0' * (64 if scene.store.checksum == 'sha256' else 32)}"
    promised = ObjectInfo("top.txt", 3, other)
    found = shelf.check(scene.repository, scene.a.id, promised, tmp_path)
    assert found is not None
    # The embedded store keeps contents by checksum, so it has none of that name.
    assert found.problem == ("missing" if scene.store.checksum == "sha256" else "corrupt")
    gone = ObjectInfo("no/such", 3, other)
    found = shelf.check(scene.repository, scene.a.id, gone, tmp_path)
    assert found is not None
    assert found.problem == "missing"


@pytest.fixture
def view(backend: Backend) -> StoreView:
    store: object = backend.store
    assert hasattr(store, "diff_page")
    return store  # type: ignore[return-value]


@pytest.mark.parametrize("root", ["", "ws/", "nothing/"])
@pytest.mark.parametrize("limit", [1, 2, 100])
def test_z5_pages_of_a_comparison_are_the_comparison_in_parts(
    scene: Scene, view: StoreView, root: str, limit: int
) -> None:
    staged = scene.stage({"ws/raw/one.txt": b"other", "ws/new": b"n", "zz": b"z"}, ("top.txt",))
    whole = scene.store.diff(scene.repository, scene.a.id, staged.commit, root)
    found: list[tuple[str, str]] = []
    after = ""
    while True:
        part = view.diff_page(scene.repository, scene.a.id, staged.commit, root, after, limit)
        keys = [(key, kind) for kind, keys in part.as_json().items() for key in keys]
        found += sorted(keys)
        if len(keys) < limit:
            break
        after = found[-1][0]
    assert found == sorted((key, kind) for kind, keys in whole.as_json().items() for key in keys)


def test_z4_the_beginning_of_an_object(scene: Scene, view: StoreView) -> None:
    content = bytes(range(256)) * 20_000
    staged = scene.stage({"ws/large": content, "ws/empty": b""})
    for most in (1, 1000, 100_000, len(content) + 1):
        found = view.beginning(scene.repository, staged.commit, "ws/large", most)
        assert found == content[:most]
    assert view.beginning(scene.repository, staged.commit, "ws/empty", 10) == b""
    with pytest.raises(NotFoundError):
        view.beginning(scene.repository, staged.commit, "ws/nothing", 10)
