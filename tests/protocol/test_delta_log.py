"""Z2: which files a simple Delta table consists of."""

from __future__ import annotations

import json

import pytest

from perago.errors import UsageError
from perago.protocol.delta_log import active_files


def entry(number: int, *actions: object) -> tuple[str, str]:
    return f"{number:020}.json", "\n".join(json.dumps(action) for action in actions)


def add(path: str, **more: object) -> object:
    return {"add": {"path": path, **more}}


def remove(path: str) -> object:
    return {"remove": {"path": path}}


@pytest.mark.parametrize(
    ("log", "files"),
    [
        ((), ()),
        ((entry(0, {"metaData": {}}, add("a"), add("b")),), ("a", "b")),
        ((entry(0, add("a")), entry(1, remove("a"), add("b"))), ("b",)),
        ((entry(0, add("a")), entry(1, add("b"), remove("a")), entry(2, add("a"))), ("b", "a")),
        ((entry(0, add("a"), add("a")),), ("a",)),
        ((entry(0, remove("never")),), ()),
        ((entry(0, [], 1, "text", {"add": 3}, {"add": {"path": 4}}, {"add": {}}),), ()),
        (((f"{0:020}.json", "\n\n"), ("_last_checkpoint", "{"), ("x.crc", "")), ()),
    ],
)
def test_the_files_that_count_now(log: tuple[tuple[str, str], ...], files: tuple[str]) -> None:
    assert active_files(dict(log)) == files


@pytest.mark.parametrize(
    ("log", "why"),
    [
        ((entry(1, add("a")),), "does not begin at 0"),
        ((entry(0, add("a")), entry(2)), "does not begin at 0"),
        ((entry(0, add("a", deletionVector={"x": 1})),), "deletion vectors"),
        (((f"{0:020}.json", "{"),), "cannot be read"),
        (((f"{0:020}.json", "[" * 100_000),), "cannot be read"),
    ],
)
def test_what_takes_a_whole_reader_is_refused(log: tuple[tuple[str, str], ...], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        active_files(dict(log))
