"""Parts of a sorted listing: X6."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from perago.protocol.key_ranges import KeyRange, beyond, middle, spans_of

KEYS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)


@given(KEYS | st.just(""), KEYS | st.none())
def test_x6_the_middle_is_between_and_can_be_sent(low: str, high: str | None) -> None:
    if high is not None and high <= low:
        low, high = high, low
    found = middle(low, high)
    if found is None:
        return
    assert low < found
    assert high is None or found < high
    assert found.encode()


@given(st.sets(KEYS, min_size=2, max_size=40), st.data())
def test_x6_bisecting_reaches_every_key_of_plain_text(keys: set[str], data: st.DataObject) -> None:
    """Halving goes on until two keys are apart, however close they are."""
    ordered = sorted(keys)
    low, high = ordered[0], ordered[-1]
    for _ in range(40):
        cut = middle(low, high)
        if cut is None:
            break
        low, high = (cut, high) if data.draw(st.booleans()) else (low, cut)
        assert low < high


def test_x6_ascii_is_tried_before_the_rest() -> None:
    assert middle("a", None) == "\x7f"
    found = middle("part-0000", "part-9999")
    assert found is not None
    assert found.isascii()


def test_x6_neighbours_are_parted_below_them() -> None:
    assert middle("a/x", "a/y123") == "a/y"
    found = middle("a/x", "a/y")
    assert found is not None
    assert found.startswith("a/x")
    assert middle("a", "a") is None
    assert middle("a", "a\x00") is None


@given(st.sets(KEYS), st.lists(KEYS, max_size=8).map(sorted))
def test_x6_the_parts_hold_every_key_once(keys: set[str], cuts: list[str]) -> None:
    parts = list(spans_of(cuts, KeyRange()))
    for key in keys:
        assert sum(part.holds(key) for part in parts) == 1


@given(KEYS, KEYS, KEYS, KEYS, KEYS)
def test_x6_narrowed_holds_what_both_hold(a: str, b: str, c: str, d: str, key: str) -> None:
    one, other = KeyRange(min(a, b), max(a, b)), KeyRange(min(c, d), max(c, d))
    both = one.narrowed(other)
    assert (both is not None and both.holds(key)) == (one.holds(key) and other.holds(key))


@given(KEYS, st.data())
def test_x6_beyond_is_after_all_that_begin_the_same(key: str, data: st.DataObject) -> None:
    depth = data.draw(st.integers(1, len(key)))
    rest = data.draw(st.text(st.characters(exclude_categories=["Cs"]), max_size=3))
    edge = beyond(key, depth)
    assert edge is None or (edge > key[:depth] + rest and edge.encode())
    assert beyond("a\U0010ffff", 2) is None
    assert beyond("a/b", 2) == "a0"
    assert beyond("\ud7ff", 1) == "\ue000"
