"""The Chinese pages are kept in step: the same headings, code, tables and links."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, fenced, rows, text_of

DOCS = ROOT / "docs"
ZH = DOCS / "zh"
PAGES = sorted(str(path.relative_to(ZH)) for path in ZH.rglob("*.md"))
_LINK = re.compile(r"\]\((?!\w+://)([^)#\s]*)(#[^)\s]*)?\)")
_CODE_COMMENT = re.compile(r'""".*?"""|#.*')


def _outside_code(page: str) -> str:
    return re.sub(r"^```.*?^```$", "", text_of(page), flags=re.MULTILINE | re.DOTALL)


def _headings(page: str) -> list[str]:
    return re.findall(r"^(#+) ", _outside_code(page), re.MULTILINE)


def _targets(page: str) -> list[Path]:
    """Return where the links of a page lead, in order; to the English page where there are two."""
    found = []
    for target, _ in _LINK.findall(_outside_code(page)):
        path = ((ROOT / page).parent / target).resolve()
        found.append(DOCS / path.relative_to(ZH) if path.is_relative_to(ZH) else path)
    return found


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_the_headings_of_the_english_one(page: str) -> None:
    assert _headings(f"docs/zh/{page}") == _headings(f"docs/{page}")


@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_the_same_code(page: str) -> None:
    """Comments and docstrings may be translated; what is typed and shown is the same."""
    chinese = [(b.language, _CODE_COMMENT.sub("", b.text)) for b in fenced(f"docs/zh/{page}")]
    english = [(b.language, _CODE_COMMENT.sub("", b.text)) for b in fenced(f"docs/{page}")]
    assert chinese == english


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_the_same_tables(page: str) -> None:
    chinese, english = (rows(_outside_code(f"{place}/{page}")) for place in ("docs/zh", "docs"))
    assert [len(row) for row in chinese] == [len(row) for row in english]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_the_same_links_in_chinese_where_there_is_a_page(page: str) -> None:
    assert _targets(f"docs/zh/{page}") == _targets(f"docs/{page}")
    for target, _ in _LINK.findall(_outside_code(f"docs/zh/{page}")):
        path = ((ZH / page).parent / target).resolve()
        if path.is_relative_to(DOCS) and not path.is_relative_to(ZH):
            translated = ZH / path.relative_to(DOCS)
            assert not translated.exists(), f"{target} is there in Chinese: {translated}"


@pytest.mark.parametrize("page", PAGES)
def test_no_lock_is_not_a_missing_padlock(page: str) -> None:
    assert "无锁" not in text_of(f"docs/zh/{page}")
