"""A huge prefix, a part at a time: X6, on every store."""

from __future__ import annotations

from pathlib import Path

import pytest

from perago.ports import PagedListing
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
