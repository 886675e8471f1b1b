"""Trees of ranges behave like a plain dictionary, and the same content is the same tree."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perago.protocol.values import Entry
from perago.stores.embedded import ranges, trees
from perago.stores.embedded.trees import KeyChange, Tree

KEYS = st.one_of(
    st.from_regex(r"[ab/]{1,4}", fullmatch=True),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6),
    st.integers(0, 300).map(lambda n: f"part-{n:04d}"),
)
ENTRIES = st.integers(0, 3).map(lambda n: Entry(n * 2**33, f"sha256:{n:064x}"))
MODELS = st.dictionaries(KEYS, ENTRIES, max_size=120)
EDITS = st.dictionaries(KEYS, st.none() | ENTRIES, max_size=40)


@pytest.fixture(autouse=True, scope="module")
def _short_ranges() -> Iterator[None]:
    """Let a hundred keys make many ranges, some of them cut by length."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranges, "EVERY", 4)
        patch.setattr(ranges, "LONGEST", 7)
        yield


class Shelf:
    """Range bodies by id, counting reads."""

    def __init__(self) -> None:
        self.bodies: dict[str, bytes] = {}
        self.reads = 0

    def load(self, range_id: str) -> bytes:
        self.reads += 1
        return self.bodies[range_id]

    def edit(self, tree: Tree, edits: dict[str, Entry | None]) -> Tree:
        result = []
        for piece, body in trees.edit(tree, self.load, sorted(edits.items())):
            if body is not None:
                self.bodies[piece.id] = body
            result.append(piece)
        return tuple(result)

    def build(self, model: dict[str, Entry]) -> Tree:
        return self.edit((), dict(model))


def edited(model: dict[str, Entry], edits: dict[str, Entry | None]) -> dict[str, Entry]:
    after: dict[str, Entry | None] = {**model, **edits}
    return {key: entry for key, entry in after.items() if entry is not None}


@given(MODELS)
def test_a_tree_holds_what_was_put_in_sorted(model: dict[str, Entry]) -> None:
    shelf = Shelf()
    tree = shelf.build(model)
    assert list(trees.scan(tree, shelf.load, "")) == sorted(model.items())
    assert sum(each.count for each in tree) == len(model)
    assert trees.decode(trees.encode(tree)) == tree


@given(MODELS, EDITS)
def test_an_edit_is_a_dictionary_update(
    model: dict[str, Entry], edits: dict[str, Entry | None]
) -> None:
    shelf = Shelf()
    tree = shelf.edit(shelf.build(model), edits)
    assert dict(trees.scan(tree, shelf.load, "")) == edited(model, edits)


@given(MODELS, st.lists(EDITS, max_size=5))
def test_same_content_same_tree_whatever_led_to_it(
    model: dict[str, Entry], steps: list[dict[str, Entry | None]]
) -> None:
    shelf = Shelf()
    tree = shelf.build(model)
    for step in steps:
        tree = shelf.edit(tree, step)
        model = edited(model, step)
    assert trees.tree_id(tree) == trees.tree_id(shelf.build(model))


@given(MODELS, EDITS)
def test_an_edit_and_its_undo_lead_back_to_the_same_id(
    model: dict[str, Entry], edits: dict[str, Entry | None]
) -> None:
    shelf = Shelf()
    tree = shelf.build(model)
    undo = {key: model.get(key) for key in edits}
    assert shelf.edit(shelf.edit(tree, edits), undo) == tree


@given(MODELS, KEYS)
def test_scan_by_prefix_is_startswith(model: dict[str, Entry], root: str) -> None:
    shelf = Shelf()
    found = list(trees.scan(shelf.build(model), shelf.load, root))
    assert found == sorted(item for item in model.items() if item[0].startswith(root))


@given(MODELS, st.lists(KEYS))
def test_find_is_lookup(model: dict[str, Entry], keys: list[str]) -> None:
    shelf = Shelf()
    wanted = [*keys, *sorted(model)[::3]]
    found = trees.find(shelf.build(model), shelf.load, wanted)
    assert found == {key: model[key] for key in wanted if key in model}


@given(MODELS, EDITS, st.sampled_from(["", "a", "part-00"]))
def test_diff_names_every_key_that_differs(
    model: dict[str, Entry], edits: dict[str, Entry | None], root: str
) -> None:
    shelf = Shelf()
    left = shelf.build(model)
    after = edited(model, edits)
    expected = [
        KeyChange(key, model.get(key), after.get(key))
        for key in sorted(model.keys() | after.keys())
        if model.get(key) != after.get(key) and key.startswith(root)
    ]
    assert list(trees.diff(left, shelf.edit(left, edits), shelf.load, root)) == expected


@given(MODELS, EDITS)
def test_no_range_is_longer_than_the_longest(
    model: dict[str, Entry], edits: dict[str, Entry | None]
) -> None:
    shelf = Shelf()
    tree = shelf.edit(shelf.build(model), edits)
    assert all(each.count <= ranges.LONGEST for each in tree)


def test_a_small_change_reads_and_writes_only_what_it_touches() -> None:
    shelf = Shelf()
    one = Entry(1, f"sha256:{1:064x}")
    before = shelf.build({f"key-{n:05d}": one for n in range(5000)})
    written, shelf.reads = len(shelf.bodies), 0
    after = shelf.edit(before, {"key-02500": Entry(2, one.checksum)})
    assert len(shelf.bodies) - written <= 2
    assert shelf.reads <= 3
    shelf.reads = 0
    assert [each.key for each in trees.diff(before, after, shelf.load)] == ["key-02500"]
    assert shelf.reads <= 4
    shelf.reads = 0
    assert len(list(trees.scan(after, shelf.load, "key-0123"))) == 10
    assert shelf.reads <= 12


@pytest.mark.parametrize("text", ["n\0l", "\N{REPLACEMENT CHARACTER}", "é" * 500, "\U0010ffff"])
def test_any_key_survives_packing(text: str) -> None:
    items = [(text, Entry(2**40, "sha256:" + "ab" * 32))]
    assert list(ranges.unpack(ranges.pack(items))) == items
