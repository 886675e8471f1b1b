"""Z2, Z4: two versions are compared, by files, lines, rows and pictures."""

from __future__ import annotations

import html
import re
from urllib.parse import parse_qs

import pytest

from perago.protocol.values import Commit
from tests.ui.asking import Answer, Browser
from tests.ui.contents import HTML, NAMES, PNG, SVG, parquet
from tests.ui.test_browse import elements

PART = "part-00000-00000000-0000-4000-8000-00000000000{}-c000.snappy.parquet"


def versions(browser: Browser, old: dict[str, bytes], new: dict[str, bytes]) -> str:
    """Commit two versions; return the address of their comparison."""
    one = commit(browser, old)
    for key in old.keys() - new.keys():
        browser.store.remove("lake", "main", key)
    two = commit(browser, new)
    return f"/compare/embedded/lake/{one.id}/{two.id}"


def commit(browser: Browser, files: dict[str, bytes]) -> Commit:
    browser.store.put_all("lake", "main", files)
    return browser.store.commit_branch("lake", "main", "files", allow_empty=True)


def ask(browser: Browser, address: str, **query: str) -> Answer:
    answer = browser.page(address, **query)
    assert answer.status == 200
    elements(answer.text)
    return answer


def listed(text: str) -> list[tuple[str, str]]:
    found = re.findall(r'<li class="(added|changed|removed)">.*?href="\?path=([^"]*)"', text)
    return [(kind, parse_qs(f"p={html.unescape(path)}")["p"][0]) for kind, path in found]


def test_files_that_differ_are_listed_by_key(browser: Browser) -> None:
    old = {"a": b"1", "b": b"1", "c": b"1"}
    address = versions(browser, old, {"b": b"2", "c": b"1", "d/e": b"3"})
    text = ask(browser, address).text
    assert listed(text) == [("removed", "a"), ("changed", "b"), ("added", "d/e")]
    same = ask(browser, "/compare/embedded/lake/main/main").text
    assert "hold the same files" in same


def test_z5_many_changes_are_paged_by_keys(browser: Browser) -> None:
    old = {f"{number:04}": b"old" for number in range(250)}
    new = {f"{number:04}": b"new" for number in range(100, 500)}
    address = versions(browser, old, new)
    found: list[tuple[str, str]] = []
    query: dict[str, str] = {}
    while True:
        text = ask(browser, address, **query).text
        found += listed(text)
        following = re.search(r'href="\?after=([^"]*)" rel="next"', text)
        if following is None:
            break
        query = {"after": following[1]}
    kinds = ["removed"] * 100 + ["changed"] * 150 + ["added"] * 250
    assert found == [(kind, f"{number:04}") for number, kind in enumerate(kinds)]


@pytest.mark.parametrize("name", NAMES)
def test_z4_a_hostile_name_is_text_and_can_be_followed(browser: Browser, name: str) -> None:
    address = versions(browser, {"other": b""}, {"other": b"", name: b"said <i>\n"})
    assert listed(ask(browser, address).text) == [("added", name)]
    if not name.endswith("/"):
        assert "said &lt;i&gt;" in ask(browser, address, path=name).text


def test_many_hostile_names_fit_on_pages(browser: Browser) -> None:
    new = {f"{number:03}" + "\u202e" * 300: b"" for number in range(60)}
    assert 0 < len(listed(ask(browser, versions(browser, {}, new)).text)) < 60


def test_texts_stand_beside_each_other(browser: Browser) -> None:
    old = b"same\n<b>old</b>\nsame\n"
    new = b"same\n<b>new</b>\nsame\nmore\n"
    address = versions(browser, {"a.txt": old}, {"a.txt": new})
    text = ask(browser, address, path="a.txt").text
    assert '<td class="removed">&lt;b&gt;old&lt;/b&gt;</td>' in text
    assert '<td class="added">&lt;b&gt;new&lt;/b&gt;</td>' in text
    assert '<td class="added">more</td>' in text


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (b"a\n", b"a\n", "the same bytes"),
        (b"a\n", b"a\r\n", "line ends may differ"),
        (SVG, HTML, "&lt;script&gt;alert(1)&lt;/script&gt;"),
        (b"\0\1", b"\0\2", "The bytes differ"),
        (b"text", b"\0binary", "The bytes differ"),
        (PNG, b"text", "The bytes differ"),
        (b"x" * 2_000_000, b"y", "too long to be compared"),
        (b"'\n" * 50_000, b"&\n" * 50_000, "Only the first differences are shown"),
        (b"'" * 90_000, b'"' * 90_000, "…"),
    ],
)
def test_z4_any_two_contents_are_compared(
    browser: Browser, old: bytes, new: bytes, said: str
) -> None:
    address = versions(browser, {"file": old, "x": b"1"}, {"file": new, "x": b"2"})
    assert said in ask(browser, address, path="file").text


def test_pictures_stand_beside_each_other(browser: Browser) -> None:
    address = versions(browser, {"p.png": PNG + b"1"}, {"p.png": PNG + b"2", "new.png": PNG})
    text = ask(browser, address, path="p.png").text
    assert text.count("<img ") == 2
    text = ask(browser, address, path="new.png").text
    assert text.count("<img ") == 1
    assert "not there" in text


OLD = {"id": [1, 2, 3], "name": ["a", "b", "b"], "gone": [0, 0, 0], "odd": [1, 1, 1]}
NEW = {"id": [1, 2, 4], "name": ["a", "<B>", "b"], "new": ["x"] * 3, "odd": ["1", "1", "1"]}


def test_tables_are_compared_by_the_only_column_that_tells_rows_apart(browser: Browser) -> None:
    address = versions(browser, {"t.parquet": parquet(OLD)}, {"t.parquet": parquet(NEW)})
    text = ask(browser, address, path="t.parquet").text
    assert "1 added, 1 removed, 1 of another type" in text
    assert "bigint → string" in text
    assert "3 before, 3 after" in text
    assert "the only column without repeats" in text
    for sign in ("+1", "~1", "−1"):
        assert f">{sign}</span>" in text
    assert '<td class="added">&lt;B&gt;</td>' in text


@pytest.mark.parametrize(
    ("key", "signs", "told"),
    [
        ("", ("+2", "~0", "−1"), "several columns could tell rows apart"),
        ("id", ("+1", "~1", "−0"), "rows are told apart by"),
        ("x", ("+2", "~0", "−1"), "rows are told apart by"),
        ("nope", ("+2", "~0", "−1"), "is not a column of both"),
        ("<script>", ("+2", "~0", "−1"), "is not a column of both"),
        ("k" * 5000, ("+2", "~0", "−1"), "..."),
    ],
)
def test_csv_is_compared_by_the_column_that_is_named(
    browser: Browser, key: str, signs: tuple[str, str, str], told: str
) -> None:
    address = versions(browser, {"t.csv": b"id,x\n1,a\n2,b\n"}, {"t.csv": b"id,x\n1,a\n2,c\n3,d\n"})
    text = ask(browser, address, path="t.csv", key=key).text
    for sign in signs:
        assert f">{sign}</span>" in text
    assert told in text


def test_directories_of_parts_are_compared_as_tables(browser: Browser) -> None:
    old = {f"t/{PART.format(1)}": parquet({"id": [1, 2]})}
    new = {f"t/{PART.format(2)}": parquet({"id": [2, 3]})}
    address = versions(browser, old, new)
    assert 'href="?path=t/"' in ask(browser, address).text
    text = ask(browser, address, path="t/").text
    assert "2 before, 2 after" in text
    assert ">+1</span>" in text


def test_a_table_that_is_new_is_no_comparison(browser: Browser) -> None:
    address = versions(browser, {}, {"t.csv": b"id\n1\n", "t.parquet": parquet({"a": [1]})})
    assert "id" in ask(browser, address, path="t.csv").text
    assert "not text in both" in ask(browser, address, path="t.parquet").text
    assert "there is nothing below" in ask(browser, address, path="nope/").text


def test_a_broken_table_is_one_sentence(browser: Browser) -> None:
    good = parquet({"a": [1]})
    address = versions(browser, {"t.parquet": good}, {"t.parquet": good[:-20]})
    assert "this table cannot be read" in ask(browser, address, path="t.parquet").text


def test_wide_tables_fit(browser: Browser) -> None:
    header = ",".join(f"column-{number}" for number in range(2000))
    row = ",".join(["<'>" * 20] * 2000)
    old = f"{header}\n{row}\n".encode()
    address = versions(
        browser, {"t.csv": old}, {"t.csv": f"{header},x\n{row},1\n{row},2\n".encode()}
    )
    assert "1 before, 2 after" in ask(browser, address, path="t.csv").text
