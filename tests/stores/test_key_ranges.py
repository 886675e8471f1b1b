"""Cutting a listing that nobody has counted: X6."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perago.ports import Damage
from perago.protocol.key_ranges import KeyRange
from perago.protocol.values import ObjectInfo
from perago.stores import key_ranges
from perago.stores.key_ranges import Listed

KEYS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)


class Sorted:
    """A shelf made of keys; counts what is asked of it."""

    readers = 1

    def __init__(self, keys: Sequence[str]) -> None:
        self.keys = sorted(keys)
        self.asked = 0

    def page(
        self, repository: str, ref: str, root: str, after: str, limit: int
    ) -> list[ObjectInfo]:
        self.asked += 1
        found = (ObjectInfo(key, 1, "x:1") for key in self.keys[self._at(after) :])
        return list(itertools.islice((info for info in found if info.key.startswith(root)), limit))

    def check(self, repository: str, ref: str, info: ObjectInfo, scratch: Path) -> Damage | None:
        return None

    def _at(self, after: str) -> int:
        return bisect.bisect_right(self.keys, after)


def listed(keys: Sequence[str], root: str = "") -> Listed:
    return Listed(Sorted(keys), "repo", "a" * 64, root)


@given(st.sets(KEYS, max_size=60), st.integers(1, 12), st.integers(1, 4))
def test_x6_whatever_the_keys_are_every_one_is_in_one_part(
    keys: set[str], parts: int, step: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_ranges, "STEP", step)
        here = listed(sorted(keys))
        found = here.split(parts)
        walked = [info.key for span in found for info in here.walk(span, step)]
    assert walked == sorted(keys)


CROWDS = {
    "one directory of hashes": [
        f"data/{number * 2654435761 % 2**32:08x}" for number in range(40_000)
    ],
    "dates with parts": [
        f"dt=2026-{month:02}-{day:02}/part-{part:05}.parquet"
        for month in range(1, 13)
        for day in range(1, 29)
        for part in range(120)
    ],
    "all in the last of many": [
        *(f"{letter}/few" for letter in "abcdefghij"),
        *(f"z/crowd/{number:07}" for number in range(40_000)),
    ],
    "not in ASCII": [f"\u6570\u636e/\u8868-{number:06}" for number in range(40_000)],
    "a long common beginning": [f"{'x' * 400}/{number:09}" for number in range(40_000)],
}


@pytest.mark.parametrize("crowd", CROWDS)
def test_x6_the_parts_are_even_enough_for_any_distribution(crowd: str) -> None:
    keys = CROWDS[crowd]
    here = listed(keys)
    parts = here.split(16)
    sizes = [sum(1 for _ in here.walk(span)) for span in parts]
    assert sum(sizes) == len(keys)
    assert len([size for size in sizes if size]) >= 12
    assert max(sizes) <= 0.3 * len(keys), sizes
    shelf = here.listing
    assert isinstance(shelf, Sorted)


def test_x6_cutting_asks_far_less_than_listing() -> None:
    shelf = Sorted([f"k/{number:08}" for number in range(60_000)])
    Listed(shelf, "repo", "a" * 64).split(8)
    assert shelf.asked < 8 * 48


def test_x6_a_small_listing_is_not_cut() -> None:
    assert listed(["a", "b", "c"]).split(16) == [KeyRange()]
    assert listed([]).split(16) == [KeyRange()]


def test_x6_counting_stops_where_it_is_known() -> None:
    shelf = Sorted([f"{number:06}" for number in range(10_000)])
    here = Listed(shelf, "repo", "a" * 64)
    assert here.more_than(1500)
    assert shelf.asked == 2
    assert not here.more_than(10_000)
    assert here.more_than(9_999)
