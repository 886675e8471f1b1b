"""Hostile object names, written with the raw API of a real server (D1, D2, S2, V6)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from perago.protocol.printable import brief
from perago.protocol.values import Status
from tests.lakefs import tasks
from tests.lakefs.bench import Bench

LONG = "long-" + "x" * 251
# Key below the prefix -> what the error says of it.
REFUSED = {
    "../x": "has the segment '..'",
    "../../../../tmp/perago-escaped": "has the segment '..'",
    "a/../../x": "has the segment '..'",
    "a/..": "has the segment '..'",
    "..": "has the segment '..'",
    ".": "has the segment '.'",
    "./x": "has the segment '.'",
    "a/./b": "has the segment '.'",
    "/etc/passwd": "is absolute",
    "//etc/passwd": "is absolute",
    "a//b": "has the segment ''",
    "nul-\0-byte": "contains a NUL or a backslash",
    "\0": "contains a NUL or a backslash",
    "a\\b": "contains a NUL or a backslash",
    "..\\x": "contains a NUL or a backslash",
    "C:\\x": "contains a NUL or a backslash",
    LONG: "has a segment longer than 255 bytes",
    "d/" + "é" * 128: "has a segment longer than 255 bytes",
    "full/": "has the segment ''",
}
PAIRS = {
    "case": ("Case.txt", "case.txt", "differ only by case or Unicode form"),
    "nfc-nfd": ("caf\u00e9", "cafe\u0301", "differ only by case or Unicode form"),
    "sharp-s": ("stra\u00dfe", "STRASSE", "differ only by case or Unicode form"),
    "directories": ("Dir/a", "dir/b", "lie in directories that differ only by case"),
    "file-and-directory": ("p", "p/q", "need one name to be both a file and a directory"),
    "kelvin": ("\u212a", "k", "differ only by case or Unicode form"),
}
IGNORED = {
    "directory-marker": ("dir/", b""),
    "directory-marker-of-a-file": ("in.txt/", b""),
    "deep-directory-marker": ("a/b/c/", b""),
    "slashes-only": ("//", b""),
    "marker": (".perago-attempt.json", b"{}"),
    "deep-marker": ("deep/.perago-attempt.json", b"{}"),
}
LEGAL = [
    "with space",
    " leading and trailing ",
    "percent%41",
    "percent%",
    "%2e%2e",
    "%2F",
    "plus+sign",
    "a&b=c",
    "question?mark",
    "hash#tag",
    "semi;colon",
    "colon:star*pipe|",
    "quotes'\"`",
    "newline\nin name",
    "tab\tcr\r",
    "escape\x1b[31m",
    "$HOME ~ `x` $(x)",
    "-rf",
    "...",
    ". dot space",
    "\u00fcn\u00efc\u00f6d\u00e9",
    "日本語/ファイル",
    "emoji-\U0001f600",
    "rtl-\u202egnp.exe",
    "zero\u200bwidth",
    "[glob]*?{a,b}",
    "<html>&amp;",
    "a,b@c!d^e",
    "_lakefs_actions_not",
    "nested/_lakefs_actions/x.yaml",
    "plain/dir/file-1.0_x=y.txt",
    "x" * 255,
    "/".join(["d" * 100] * 9),
]
CONTENT = b"content of \x00\xff a file"


def outside(bench: Bench) -> set[str]:
    """List everything below the test's directory that is not the worker's own."""
    own = ("lab/events", "lab/rooms", "worker", "truth")
    found = set()
    for directory, _, names in os.walk(bench.place):
        here = Path(directory).relative_to(bench.place)
        found |= {str(here / name) for name in names}
    return {name for name in found if not name.startswith(own)}


@pytest.mark.parametrize("key", REFUSED, ids=lambda key: ascii(key)[:40])
def test_d2_a_key_that_cannot_be_a_file_fails_the_attempt_and_is_named(
    bench: Bench, key: str
) -> None:
    bench.given({"ws/in.txt": "in", f"ws/{key}": "hostile"})
    head = bench.head.id
    run = bench.run(tasks.idle)
    assert run.status is Status.FAILED
    assert f"download: UnsafePathError: object {brief(ascii(f'ws/{key}'))}" in run.reason
    assert REFUSED[key] in run.reason
    assert "\0" not in run.reason
    assert "\n" not in run.reason
    assert "before body" not in run.events
    assert "downloaded" not in run.events  # D2: checked before the first byte.
    assert outside(bench) == set()
    assert bench.attempt_dirs() == []
    assert bench.head.id == head
    assert not Path("/tmp/perago-escaped").exists()  # noqa: S108 - the place it must not reach


@pytest.mark.parametrize("name", PAIRS)
def test_d2_two_keys_that_one_name_would_hold_fail_the_attempt_and_are_named(
    bench: Bench, name: str
) -> None:
    first, second, why = PAIRS[name]
    bench.given({f"ws/{first}": "1", f"ws/{second}": "2"})
    run = bench.run(tasks.idle)
    assert run.status is Status.FAILED
    assert why in run.reason
    assert ascii(f"ws/{first}") in run.reason
    assert ascii(f"ws/{second}") in run.reason
    assert outside(bench) == set()


@pytest.mark.parametrize("name", IGNORED)
def test_d1_s2_what_is_not_content_is_neither_mapped_nor_diffed_nor_deleted(
    bench: Bench, name: str
) -> None:
    key, content = IGNORED[name]
    bench.given({"ws/in.txt": "in", "ws/old.txt": "old", f"ws/{key}": content})
    run = bench.run(tasks.step)
    assert run.completed, run.reason
    assert bench.files()[f"ws/{key}"] == content
    assert sorted(bench.files()) == sorted({"ws/in.txt", "ws/out.txt", f"ws/{key}"})


def test_d1_the_servers_own_actions_are_never_mapped(bench: Bench) -> None:
    action = b"name: nothing\non:\n  post-commit: {}\nhooks: []\n"
    bench.given({"in.txt": "in", "_lakefs_actions/none.yaml": action})
    run = bench.run(tasks.everything)
    assert run.completed, run.reason
    assert run.result == {"files": 1}
    assert sorted(bench.files()) == ["_lakefs_actions/none.yaml", "in.txt", "in.txt.copy"]


def test_d1_a_prefix_never_matches_its_longer_neighbour(bench: Bench) -> None:
    bench.given({"ws/in.txt": "in", "ws2/../../x": "hostile, but not ours", "wS/in.txt": "other"})
    assert bench.run(tasks.idle).completed


def test_d2_a_key_of_invalid_utf8_is_refused(bench: Bench) -> None:
    """lakeFS lists it with U+FFFD, and nobody can fetch it by that name."""
    bench.given({"ws/in.txt": "in"})
    client = bench.truth.client
    url = f"/api/v1/repositories/{bench.repository}/branches/main/objects?path=ws%2Fbad-%FF%FE"
    answer = client._pool.request(  # noqa: SLF001 - no honest client can send this name
        "POST", url, body=b"x"
    )
    if answer.status != 201:
        pytest.skip(f"this server refuses it: {answer.status}")
    bench.truth.commit_branch(bench.repository, "main", "bad name")
    run = bench.run(tasks.idle)
    assert run.status is Status.FAILED
    assert "is not valid UTF-8" in run.reason


@pytest.mark.parametrize("key", LEGAL, ids=lambda key: ascii(key)[:40])
def test_d3_s2_a_strange_but_legal_name_makes_the_round_trip_byte_for_byte(
    bench: Bench, key: str
) -> None:
    bench.given({key: CONTENT})
    run = bench.run(tasks.everything)
    if len(key.rpartition("/")[2]) > 250:  # The copy's own name is too long for a file.
        assert "OSError" in run.reason
        run = bench.run(tasks.idle)
        assert run.completed
        return
    assert run.completed, run.reason
    assert bench.files() == {key: CONTENT, f"{key}.copy": CONTENT}


def test_d3_s2_all_legal_names_together_and_deleted_again(bench: Bench) -> None:
    legal = [key for key in LEGAL if len(key.rpartition("/")[2]) <= 250]
    bench.given({f"ws/{key}": key.encode() for key in legal})
    first = bench.run(tasks.everything)
    assert first.completed, first.reason
    wanted = {f"ws/{key}": key.encode() for key in legal}
    assert bench.files() == wanted | {f"{key}.copy": value for key, value in wanted.items()}
    second = bench.run(tasks.clear)
    assert second.completed, second.reason
    assert bench.files() == {"ws/left": b"left"}


def test_the_input_cannot_lead_a_request_elsewhere(bench: Bench) -> None:
    """Segments that a library would take for directions name nothing."""
    bench.given({"ws/in.txt": "in"})
    run = bench.run(tasks.idle)
    assert run.workspace is not None
    for ref in ("..", ".", "../../..", "%2e%2e", "main?x=1", "a#b"):
        again = bench.lab._attempt(  # noqa: SLF001 - an input no caller can make otherwise
            run.task, run.attempt, run.workspace.at(ref), {}, ()
        )
        assert again.status is Status.FAILED
        assert "input: NotFoundError" in again.reason
