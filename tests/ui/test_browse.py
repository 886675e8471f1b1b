"""Z2, Z4: a version is looked at; nothing that is in it acts on a page."""

from __future__ import annotations

import html
import re
import threading
from html.parser import HTMLParser
from urllib.parse import parse_qs, urlsplit

import pyarrow as pa
import pytest

from perago.protocol.values import Commit
from perago.ui.browse import commit_facts
from perago.ui.rendering import segment
from perago.ui.versions import parts_of
from tests.ui.asking import Browser
from tests.ui.contents import HTML, NAMES, PNG, SVG, parquet

MAIN = "/browse/embedded/lake/main"
TAGS = {
    *("a", "body", "code", "dd", "details", "div", "dl", "dt", "figcaption", "figure"),
    *("h1", "h2", "h3", "head", "header", "html", "img", "li", "link", "main", "meta", "nav"),
    *("p", "pre", "script", "section", "span", "strong", "summary", "table", "tbody", "td", "th"),
    *("thead", "time", "title", "tr", "ul"),
}


class Elements(HTMLParser):
    """The elements of a page, and their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))

    @property
    def links(self) -> list[str]:
        return [values["href"] for tag, values in self.found if tag == "a"]


def elements(text: str) -> Elements:
    """Read a page; it has no element and no handler but those of our templates."""
    found = Elements(text)
    assert {tag for tag, _ in found.found} <= TAGS
    assert not [name for _, values in found.found for name in values if name.startswith("on")]
    scripts = [values for tag, values in found.found if tag == "script"]
    assert scripts == [{"src": "/static/live.js", "defer": ""}]
    return found


def paths(text: str) -> list[str]:
    """List the paths that the links of a listing lead to."""
    table = text.partition("<tbody>")[2].partition("</tbody>")[0]
    return [parse_qs(urlsplit(link).query, True)["path"][0] for link in Elements(table).links]


def put(browser: Browser, files: dict[str, bytes], message: str = "files") -> Commit:
    browser.store.put_all("lake", "main", files)
    return browser.store.commit_branch("lake", "main", message)


def test_a_directory_shows_what_is_right_below_it(browser: Browser) -> None:
    put(browser, {"a.txt": b"12345", "d/e/f": b"", "d/g": b"1"})
    top = browser.page(MAIN)
    assert paths(top.text) == ["a.txt", "d/"]
    assert "5 B" in top.text
    assert paths(browser.page(MAIN, path="d/").text) == ["d/e/", "d/g"]
    assert paths(browser.page(MAIN, path="d").text) == ["d/e/", "d/g"]
    assert "Nothing is here" in browser.page("/browse/embedded/lake/" + first(browser)).text


def first(browser: Browser) -> str:
    *_, root = browser.store.history("lake", "main")
    return root.id


def test_the_top_says_what_the_commit_says(browser: Browser) -> None:
    browser.store.put("lake", "main", "a", b"1")
    notes = {"perago.person": "Ann <b>", "perago.execution_id": "run/1", "other": "noted"}
    commit = browser.store.commit_branch("lake", "main", "why\nand <how>", notes)
    text = browser.page(MAIN).text
    assert "by Ann &lt;b&gt;" in text
    assert "why\\nand &lt;how&gt;" in text
    links = elements(text).links
    assert f"/browse/embedded/lake/{commit.parents[0]}" in links
    assert f"/compare/embedded/lake/{commit.parents[0]}/{commit.id}" in links
    assert "/attempt/run%2F1" in links
    assert "<dt>other</dt><dd>noted</dd>" in text


def test_a_huge_commit_message_is_cut() -> None:
    notes = {f"{number:05}": "v" * 5000 for number in range(1000)}
    facts = commit_facts(Commit("c", tuple("p" * 500), "m" * 100_000, notes))
    assert len(str(facts)) < 20_000


@pytest.mark.parametrize("name", NAMES)
def test_z4_a_hostile_name_is_text_and_can_be_followed(browser: Browser, name: str) -> None:
    content = b"<script>what it says</script>"
    put(browser, {name: content, f"{name}.png": PNG, f"{name}.csv": b"id\n1\n"})
    at, seen = "", 0
    while True:  # Down to the file, as a person would click.
        listing = browser.page(MAIN, path=at)
        elements(listing.text)
        found = [path for path in paths(listing.text) if name == path or name.startswith(path)]
        if found == [name] or seen > 5:
            break
        at, seen = found[-1], seen + 1
    if not name.endswith("/"):
        page = browser.page(MAIN, path=name)
        elements(page.text)
        assert page.status == 200
        assert html.escape("<script>what it says</script>") in page.text
    image = browser.page(MAIN, path=f"{name}.png")
    (source,) = [values["src"] for tag, values in elements(image.text).found if tag == "img"]
    address = urlsplit(source)
    served = browser.get(address.path, path=parse_qs(address.query, True)["path"][0])
    assert (served.status, served.body) == (200, PNG)
    table = browser.page(MAIN, path=f"{name}.csv")
    assert "1 row, 1 column" in table.text


def test_an_object_may_have_the_name_of_a_directory(browser: Browser) -> None:
    put(browser, {"d/": b"marked", "d/e": b"x", "d": b"file"})
    assert paths(browser.page(MAIN).text) == ["d", "d/"]
    listing = browser.page(MAIN, path="d/").text
    assert paths(listing) == ["d/", "d/e"]
    assert "object=1" in listing
    assert "marked" in browser.page(MAIN, path="d/", object="1").text
    assert "<td>file</td>" in browser.page(MAIN, path="d").text


def test_z5_many_files_are_paged_by_keys(browser: Browser) -> None:
    names = [f"d/{number:04}" for number in range(450)]
    put(browser, dict.fromkeys([*names, "d/e/f"], b""))
    found: list[str] = []
    query = {"path": "d/"}
    while True:
        text = browser.page(MAIN, **query).text
        found += paths(text)
        following = re.search(r'href="\?([^"]*)" rel="next"', text)
        if following is None:
            break
        pairs = parse_qs(html.unescape(following[1]))
        query = {name: values[0] for name, values in pairs.items()}
    assert found == [*names, "d/e/"]


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        (b"one\ntwo\n", "<td>two</td>"),
        (b"", "It is empty."),
        (SVG, "&lt;svg"),
        (HTML, "&lt;!doctype html&gt;"),
        (bytes(range(256)) * 10, "00000010  10 11 12"),
        (b"\xff\xfe\x00\x00", "ff fe 00 00"),
        (b"a\x1b[2Jb\xe2\x80\xae", "a\\x1b[2Jb\\u202e"),
        (b"'" * 70_000, "Only the beginning is shown"),
        (b"\n" * 70_000, "Only the beginning is shown"),
        ("\u202e".encode() * 30_000, "Only the beginning is shown"),
    ],
)
def test_z4_any_content_is_text_or_bytes(browser: Browser, content: bytes, shown: str) -> None:
    put(browser, {"file": content, "file.svg": content, "file.html": content, "file.png": content})
    for name in ("file", "file.svg", "file.html", "file.png"):
        page = browser.page(MAIN, path=name)
        assert shown in page.text
        elements(page.text)
    for shape in ("hex", "text", "table", "nonsense"):
        elements(browser.page(MAIN, path="file", **{"as": shape}).text)


@pytest.mark.parametrize("content", [SVG, HTML, b"plain", b"PAR1", b""])
def test_z4_only_images_are_served_as_themselves(browser: Browser, content: bytes) -> None:
    put(browser, {"a.png": content})
    answer = browser.page("/content/embedded/lake/main", path="a.png")
    assert answer.status == 404
    assert content not in answer.body or not content


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff rest", "image/jpeg"),
        (b"GIF89a rest", "image/gif"),
        (b"RIFF....WEBP rest", "image/webp"),
    ],
)
def test_z4_an_image_has_its_exact_type(browser: Browser, head: bytes, kind: str) -> None:
    put(browser, {"a.html": head})
    answer = browser.get("/content/embedded/lake/main", path="a.html")
    assert (answer.status, answer.body) == (200, head)
    assert answer.headers["content-type"] == kind
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_tables_show_columns_rows_and_types(browser: Browser) -> None:
    found = parquet({"id": [1, 2, 3], "<b>name": ["x", None, "<script>"], "blob": [b"\0"] * 3})
    put(browser, {"t.parquet": found, "t.csv": b"id,name\n1,<i>\n2,\n"})
    text = browser.page(MAIN, path="t.parquet").text
    elements(text)
    assert "3 rows, 3 columns" in text
    assert "<td>&lt;script&gt;</td>" in text
    assert '<span class="faint">null</span>' in text
    assert "<dt>id</dt><dd>bigint</dd>" in text
    text = browser.page(MAIN, path="t.csv").text
    assert "2 rows, 2 columns" in text
    assert "<td>&lt;i&gt;</td>" in text


def test_a_directory_of_parts_is_a_table(browser: Browser) -> None:
    put(
        browser,
        {
            "t/day=1/part-0.parquet": parquet({"id": [1, 2]}),
            "t/day=2/part-0.parquet": parquet({"id": [3]}),
            "t/_SUCCESS": b"",
        },
    )
    assert "as=table" in browser.page(MAIN, path="t/").text
    text = browser.page(MAIN, path="t/", **{"as": "table"}).text
    assert "3 rows, 2 columns" in text
    assert '<th scope="col">day</th>' in text


def test_a_delta_table_is_what_its_log_says(browser: Browser) -> None:
    one, two = parquet({"id": [1, 2]}), parquet({"id": [3]})
    log = "t/_delta_log/{:020}.json"
    put(
        browser,
        {
            "t/one.parquet": one,
            "t/with space.parquet": two,
            log.format(0): b'{"metaData": {}}\n{"add": {"path": "one.parquet"}}\n',
            log.format(1): b'{"remove": {"path": "one.parquet"}}\n'
            b'{"add": {"path": "with%20space.parquet"}}\n',
        },
    )
    text = browser.page(MAIN, path="t/", **{"as": "table"}).text
    assert "1 row, 1 column" in text
    assert "<td>3</td>" in text


@pytest.mark.parametrize(
    ("log", "why"),
    [
        (b'{"add": {"path": "gone.parquet"}}', "its log names"),
        (b'{"add": {"path": "../../etc/passwd"}}', "its log names"),
        (b'{"add": {"path": "one.parquet", "deletionVector": {"a": 1}}}', "deletion vectors"),
        (b"[" * 100_000, "cannot be read"),
        (b"\xff\xfe", "cannot be read"),
        (b"", "no data"),
    ],
)
def test_z4_a_broken_delta_log_is_one_sentence(browser: Browser, log: bytes, why: str) -> None:
    put(
        browser,
        {"t/one.parquet": parquet({"a": [1]}), "t/_delta_log/00000000000000000000.json": log},
    )
    assert why in browser.page(MAIN, path="t/", **{"as": "table"}).text


@pytest.mark.parametrize(
    "address",
    [
        "/browse/embedded/lake/nope",
        "/browse/embedded/lake/%3Cscript%3E",
        "/browse/embedded/lake/",
        "/browse/embedded/lake/a/b/c",
        "/browse/embedded/lake/%00",
        "/browse/embedded/lake/" + "x" * 3000,
        "/browse/embedded/nope/main",
        "/browse/embedded/%27%22%3Cb%3E/main",
        "/browse/lakefs/lake/main",
        "/browse/%3Cscript%3E/lake/main",
        "/browse/",
        "/content/embedded/lake/nope",
        "/content/embedded/lake/main",
        "/compare/embedded/lake/main/nope",
        "/compare/embedded/lake/main",
        "/compare/embedded/lake/main/main/main",
        "/compare/embedded/nope/main/main",
    ],
)
def test_what_is_not_there_is_a_page_that_says_so(browser: Browser, address: str) -> None:
    answer = browser.page(address)
    assert answer.status == 404
    elements(answer.text)


@pytest.mark.parametrize(
    "path", ["nope", "a/nope", "nope/", "..", "\x00", "%2F", "x" * 5000, "a\nb"]
)
def test_a_path_that_is_not_there_is_a_page_that_says_so(browser: Browser, path: str) -> None:
    put(browser, {"a": b"1"})
    for address in (MAIN, "/content/embedded/lake/main", "/compare/embedded/lake/main/main"):
        answer = browser.page(address, path=path)
        assert answer.status == 404 or path.endswith("/")
        elements(answer.text)
    assert browser.page(MAIN, path="", after=path).status == 200


def test_who_has_no_cookie_sees_nothing(browser: Browser) -> None:
    put(browser, {"secret.png": PNG})
    other = Browser(browser.home, cookie="guessed")
    for address in (MAIN, "/content/embedded/lake/main", "/compare/embedded/lake/main/main"):
        answer = other.get(address, path="secret.png")
        assert answer.status == 403
        assert b"secret" not in answer.body


def test_a_home_that_is_being_written_can_be_looked_at(browser: Browser) -> None:
    put(browser, {"a.txt": b"0"})
    ended = threading.Event()

    def write() -> None:
        for number in range(30):
            put(browser, {"a.txt": b"%d" % number, f"d/{number}": b""})
        ended.set()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        while not ended.is_set():
            assert browser.page(MAIN).status == 200
            assert browser.page(MAIN, path="a.txt", **{"as": "hex"}).status == 200
    finally:
        writer.join()
    assert len(paths(browser.page(MAIN, path="d/").text)) == 30


def test_a_ref_may_hold_slashes_and_other_marks(browser: Browser) -> None:
    """The embedded store has no such names, so the page says which it looked for."""
    for sent, ref in (("a%2Fb", "a/b"), ("v1~2%5E", "v1~2^"), ("a%20b%3F", "a b?"), ("é", "é")):
        for address in (f"/browse/embedded/lake/{sent}", f"/compare/embedded/lake/main/{sent}"):
            answer = browser.page(address)
            assert answer.status == 404
            assert html.escape(f"{ref!r}").replace("&#x27;", "&#39;") in answer.text


def test_links_keep_a_slash_of_a_name_together() -> None:
    assert segment("a/b?c#d e%") == "a%2Fb%3Fc%23d%20e%25"


def test_an_address_is_parted_as_it_was_sent() -> None:
    assert parts_of(b"/compare/s/r/a%2Fb/c?x=/") == ["compare", "s", "r", "a/b", "c"]
    assert parts_of(b"/a%FF%00") == ["a\ufffd\0"]


def test_a_csv_of_ten_thousand_columns_fits(browser: Browser) -> None:
    header = ",".join(f"column-{number}" for number in range(10_000))
    row = ",".join(["<b>" * 20] * 10_000)
    put(browser, {"wide.csv": f"{header}\n{row}\n{row}\n".encode()})
    text = browser.page(MAIN, path="wide.csv").text
    assert "10,000 columns, of which the first" in text


def test_odd_values_are_shown(browser: Browser) -> None:
    table = pa.table(
        {
            "nested": pa.array([[{"a": "<b>"}]]),
            "date": pa.array([2**31 - 1], pa.date32()),
            "big": [10**18],
            "quotes": ["\"'" * 1000],
            "\n": ["\u202e"],
        }
    )
    put(browser, {"odd.parquet": parquet(table)})
    text = browser.page(MAIN, path="odd.parquet").text
    elements(text)
    assert "1 row, 5 columns" in text
