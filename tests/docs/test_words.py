"""Guides are in plain words: numbers of rules stand in the reference and the explanations."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import every_page, text_of

GUIDES = [
    page
    for page in every_page()
    if page.startswith(("docs/howto/", "docs/tutorial", "README")) or page == "docs/index.md"
]
_RULE = re.compile(r"\((?:[A-Z]\d+[a-z]?(?:, | to | and )?)+\)|# [A-Z]\d+[a-z]?:")
_ODD = re.compile(r"\b(?:is|are|was) no (?!longer)[a-z]|[Ss]omebody|[Nn]obody|\bmended\b|\bgo on\b")
SOURCE = Path(__file__).parents[2] / "src/perago"


def _messages(tree: ast.Module) -> Iterator[str]:
    """Yield the texts of a module that are not docstrings."""
    statements = (node for node in ast.walk(tree) if isinstance(node, ast.Expr))
    docstrings = {id(node.value) for node in statements}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in docstrings:
            yield str(node.value)


def test_messages_are_in_plain_words() -> None:
    """Write "is not a directory", not "is no directory", and a noun, not "somebody"."""
    found = [
        f"{path.name}: {text}"
        for path in sorted(SOURCE.rglob("*.py"))
        for text in _messages(ast.parse(path.read_text()))
        if (odd := _ODD.search(text)) and not text[: odd.start()].endswith("there ")
    ]
    assert found == []


@pytest.mark.parametrize("page", GUIDES)
def test_a_guide_names_no_rule_by_its_number(page: str) -> None:
    assert _RULE.findall(text_of(page)) == []
