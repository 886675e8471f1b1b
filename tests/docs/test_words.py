"""Guides are in plain words: numbers of rules stand in the reference and the explanations."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import every_page, text_of

GUIDES = [
    page
    for page in every_page()
    if page.startswith(("docs/howto/", "docs/tutorial", "README")) or page == "docs/index.md"
]
_RULE = re.compile(r"\((?:[A-Z]\d+[a-z]?(?:, | to | and )?)+\)|# [A-Z]\d+[a-z]?:")


@pytest.mark.parametrize("page", GUIDES)
def test_a_guide_names_no_rule_by_its_number(page: str) -> None:
    assert _RULE.findall(text_of(page)) == []
