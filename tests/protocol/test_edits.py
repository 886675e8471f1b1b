"""Q12: a person's changes are carried over whole, or stop at a conflict that is named."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from perago.protocol.edits import EditConflict, Edits, carried_over
from perago.protocol.values import Entry

PATHS = ("a", "a/b", "c", "d/e")


def files(**contents: str) -> dict[str, Entry]:
    return {name.replace("_", "/"): Entry(len(text), text) for name, text in contents.items()}


def test_q12_changes_are_carried_over_beside_those_of_others() -> None:
    before = files(mine="1", theirs="1", gone="1")
    mine = files(mine="2", theirs="1", new="1")
    now = files(mine="1", theirs="2", gone="1", more="1")
    assert carried_over(before, mine, now) == Edits(("mine", "new"), ("gone",))


def test_q12_the_first_path_that_both_changed_is_named() -> None:
    before, mine = files(a="1", b="1"), files(a="2", b="2")
    found = carried_over(before, mine, files(a="1", b="3"))
    assert found == EditConflict("b", "it was changed there, too")
    found = carried_over(before, mine, files(b="3"))
    assert found == EditConflict("a", "it was removed there")
    found = carried_over({}, files(a="1"), files(a="2"))
    assert found == EditConflict("a", "it was added on both sides, differently")


def test_q12_the_same_change_on_both_sides_is_none() -> None:
    assert carried_over(files(a="1"), files(a="2"), files(a="2")) == Edits((), ())
    assert carried_over(files(a="1"), {}, {}) == Edits((), ())


def test_q12_a_file_has_no_place_where_a_directory_is() -> None:
    found = carried_over({}, files(a="1"), files(a_b="1"))
    assert isinstance(found, EditConflict)
    assert (found.path, "'a/b'" in found.why) == ("a", True)
    found = carried_over({}, files(a_b="1"), files(a="1"))
    assert isinstance(found, EditConflict)
    assert "'a'" in found.why


def trees() -> st.SearchStrategy[dict[str, Entry]]:
    return st.dictionaries(st.sampled_from(PATHS), st.sampled_from("123")).map(
        lambda found: {path: Entry(1, text) for path, text in found.items()}
    )


@given(trees(), trees(), trees())
def test_q12_what_is_carried_over_loses_nobodys_change(
    before: dict[str, Entry], mine: dict[str, Entry], now: dict[str, Entry]
) -> None:
    """Every path ends as its only changer left it; where there are two, nothing is done."""
    found = carried_over(before, mine, now)
    if isinstance(found, EditConflict):
        return
    after = {path: entry for path, entry in now.items() if path not in found.removes}
    after |= {path: mine[path] for path in found.puts}
    for path in PATHS:
        old, person, other = before.get(path), mine.get(path), now.get(path)
        assert after.get(path) == (other if person == old else person)
        assert old in (person, other) or person == other
    for path in found.puts:
        assert not any(other.startswith(f"{path}/") for other in after)
