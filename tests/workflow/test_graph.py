"""A workflow as text, Mermaid and SVG: every kind of step, and names that would break a format."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations
from typing import Any
from xml.dom import minidom

import pytest

from perago.workflow.graph import Graph, cells, cut, graph_of
from perago.workflow.graph_mermaid import mermaid_of
from perago.workflow.graph_svg import svg_of
from perago.workflow.graph_text import lines_of

GIVEN = "${workflow.input.workspace}"


def step(reference: str, workspace: str | None = GIVEN, name: str = "write") -> dict[str, Any]:
    given = {"params": {}} if workspace is None else {"workspace": workspace, "params": {}}
    return {"name": name, "taskReferenceName": reference, "inputParameters": given}


def other(kind: str, reference: str, **fields: Any) -> dict[str, Any]:
    return {"name": reference, "taskReferenceName": reference, "type": kind, **fields}


ALL = {
    "name": "shop",
    "tasks": [
        step("load"),
        other(
            "FORK_JOIN",
            "fork",
            forkTasks=[
                [step("look", "${load.output.workspace}", "read")],
                [step("ask", None, "ask"), step("tell", None, "ask")],
            ],
        ),
        other("JOIN", "join", joinOn=["look", "tell"]),
        other(
            "SWITCH",
            "by_size",
            expression="size",
            decisionCases={"big": [step("report", "${load.output.workspace}")], "none": []},
            defaultCase=[other("TERMINATE", "stop")],
        ),
        other("DO_WHILE", "loop", loopOver=[step("again", None, "ask")]),
    ],
}
ODD = [
    '"]; click n0 "x',
    "[red]x[/red] :fire:",
    "<script>&amp;",
    "`**md**`",
    "a\nb\x1b[31m\u202e",
    "end",
    "x" * 3000,
    "数字 名前",
    "\ud800",
    "%% comment",
    "#quot;",
]


def drawn(graph: Graph) -> list[str]:
    return [str(line) for line in lines_of(graph)]


def parsed(graph: Graph) -> minidom.Document:
    return minidom.parseString(svg_of(graph).encode())  # noqa: S318 - we wrote it ourselves


def rectangles(
    node: minidom.Element, x: float = 0, y: float = 0
) -> Iterator[tuple[float, float, float, float]]:
    """List left, top, right and bottom of every step."""
    for found in (each for each in node.childNodes if isinstance(each, minidom.Element)):
        moved = re.findall(r"[\d.-]+", found.getAttribute("transform")) or ["0", "0"]
        left, top = x + float(moved[0]), y + float(moved[1])
        if found.tagName == "rect" and found.getAttribute("rx"):
            width, height = (float(found.getAttribute(key)) for key in ("width", "height"))
            yield left, top, left + width, top + height
        yield from rectangles(found, left, top)


def test_text_shows_every_kind_of_step_and_what_it_reads() -> None:
    assert drawn(graph_of(ALL, {"write"}, {"read"})) == [
        "shop",
        "  load          write  publishes  reads input",
        "  fork          FORK_JOIN  side by side",
        "  ├─ 1",
        "  │    look     read  read-only  reads load",
        "  └─ 2",
        "       ask",
        "       tell     ask",
        "  join          JOIN  waits for look, tell",
        "  by_size       SWITCH  one of, by size",
        "  ├─ big",
        "  │    report   write  publishes  reads load",
        "  ├─ none",
        "  │    nothing",
        "  └─ otherwise",
        "       stop     TERMINATE",
        "  loop          DO_WHILE  again and again",
        "  └─ 1",
        "       again    ask",
    ]


@pytest.mark.parametrize("read", ["input", "variables"])
def test_text_tells_input_from_variables(read: str) -> None:
    whole = step("load", f"${{workflow.{read}.workspace}}")
    parts = step("look", "")
    parts["inputParameters"]["workspace"] = {"ref": f"${{workflow.{read}.ref}}"}
    lines = drawn(graph_of({"name": "shop", "tasks": [whole, parts]}, {"write"}))
    assert [line.rpartition("reads ")[2] for line in lines[1:]] == [read, read]


def test_mermaid_has_an_arrow_for_every_way_through() -> None:
    text = mermaid_of(graph_of(ALL, {"write"}, {"read"}))
    names = dict(re.findall(r'^  (n\d+)[\[({]+"(\w+)', text, re.MULTILINE))
    arrows = {
        (names[start], label, names[end])
        for start, label, end in re.findall(r"(n\d+) -->(?:\|\"(\w+)\"\|)? (n\d+)", text)
    }
    assert arrows == {
        ("shop", "", "load"),
        ("load", "", "fork"),
        ("fork", "", "look"),
        ("fork", "", "ask"),
        ("ask", "", "tell"),
        ("look", "", "join"),
        ("tell", "", "join"),
        ("join", "", "by_size"),
        ("by_size", "big", "report"),
        ("by_size", "none", "loop"),
        ("by_size", "otherwise", "stop"),
        ("report", "", "loop"),
        ("loop", "", "again"),
        ("again", "again", "loop"),
    }
    (dashed,) = re.findall(r"class (\S+) readonly", text)
    assert names[dashed] == "look"


def test_svg_is_xml_with_every_step_and_a_dashed_border_for_those_that_only_read() -> None:
    document = parsed(graph_of(ALL, {"write"}, {"read"}))
    texts = {found.toxml() for found in document.getElementsByTagName("text")}
    for name in ("shop", "load", "look", "join", "big", "none", "otherwise", "again"):
        assert any(text.endswith(f">{name}</text>") for text in texts), name
    dashed = [
        found
        for found in document.getElementsByTagName("rect")
        if found.getAttribute("stroke-dasharray")
    ]
    assert len(dashed) == 1


def test_svg_has_room_for_every_step() -> None:
    root = parsed(graph_of(ALL, {"write"}, {"read"})).documentElement
    assert root is not None
    boxes = list(rectangles(root))
    assert len(boxes) == 12
    width, height = (float(root.getAttribute(key)) for key in ("width", "height"))
    for left, top, right, bottom in boxes:
        assert 0 <= left < right <= width
        assert 0 <= top < bottom <= height
    for one, two in combinations(boxes, 2):
        assert one[2] < two[0] or two[2] < one[0] or one[3] < two[1] or two[3] < one[1]


@pytest.mark.parametrize("name", ODD)
def test_no_name_breaks_a_format(name: str) -> None:
    graph = graph_of(
        {
            "name": name,
            "tasks": [
                step(name, name, name),
                other("SWITCH", f"{name}2", expression=name, decisionCases={name: [step("s")]}),
                other(name, f"{name}3"),
            ],
        },
        {name},
    )
    lines = drawn(graph)
    assert len(lines) == 8
    assert all(line.isprintable() for line in lines)
    document = parsed(graph)
    root = document.documentElement
    assert root is not None
    assert float(root.getAttribute("width")) < 2000
    for line in mermaid_of(graph).splitlines()[1:]:
        shape = re.sub(r'"(?:[\w ]|#\d+;|<br/>)*"', "T", line)
        assert re.fullmatch(r"  (n\d+(\(\[T\]\)|\[T\]|\{T\})|n\d+ -->(\|T\|)? n\d+)", shape), shape


def test_what_is_no_task_is_left_out_not_fatal() -> None:
    graph = graph_of({"name": None, "tasks": [7, {"type": 3, "forkTasks": "no"}, step("a")]})
    assert len(drawn(graph)) == 3
    parsed(graph)


def test_wide_characters_count_twice() -> None:
    assert cells("数字a") == 5
    assert cut("数字数字", 5) == "数字…"
    assert cut("abc", 3) == "abc"
