"""The page on interleavings tells what the model finds, word for word."""

from __future__ import annotations

import pytest

from tests.docs.pages import blocks
from tests.model.tales import tale, titles

PAGE = "docs/explanation/interleavings.md"


def test_every_history_of_the_page_has_a_title_that_is_known() -> None:
    told = [text.partition("\n")[0] for text in blocks(PAGE, "text")]
    assert told == [f"# {title}" for title in titles()]


@pytest.mark.parametrize("title", list(titles()))
def test_f3_k1_k2_k3_the_page_tells_the_shortest_history(title: str) -> None:
    assert f"# {title}\n{tale(title)}" in blocks(PAGE, "text")
