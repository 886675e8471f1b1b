from __future__ import annotations

from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from perago.ui.gantt import GanttBar, GanttPart, gantt, ticks

moments = st.floats(min_value=0, max_value=1e7, allow_nan=False)
texts = st.text(alphabet="ab<>&\"'\n\u202e\U0001f3b5", max_size=60)


@st.composite
def bars(draw: st.DrawFn) -> GanttBar:
    began, seconds = draw(moments), draw(moments)
    part = GanttPart(draw(texts), began, began + seconds / 2)
    return GanttBar(draw(texts), "good", draw(texts), began, began + seconds, "/x", (part,))


@given(st.lists(bars(), max_size=5))
def test_z3_a_picture_is_sound_whatever_is_in_it(found: list[GanttBar]) -> None:
    drawn = str(gantt(found))
    if not found:
        assert drawn == ""
        return
    picture = ET.fromstring(drawn)  # noqa: S314 - our own
    assert len([one for one in picture.iter() if "whole" in one.get("class", "")]) == len(found)
    for one in picture.iter("rect"):
        assert float(one.get("width", "0")) > 0
        assert 0 <= float(one.get("x", "0")) <= 1000


@given(st.floats(min_value=1e-3, max_value=1e9))
def test_the_marks_of_an_axis_are_few_and_cover_it(span: float) -> None:
    found = ticks(span)
    assert found[0] == 0
    assert 2 <= len(found) <= 8
    assert found[-1] <= span * (1 + 1e-9)
