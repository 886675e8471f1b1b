"""Names of classes: each is used once, and its words are those of the glossary or of the field."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "perago"
GLOSSARY = (SOURCE.parents[1] / "docs" / "glossary.md").read_text(encoding="utf-8")
ALIKE = {"Ask", "Call"}
"""Of the clients of lakeFS and Conductor, which are alike on purpose."""
USUAL = frozenset(
    {
        *("branch", "cache", "channel", "client", "clock", "commit", "conductor", "config"),
        *("connection", "console", "database", "directory", "end", "endpoint", "error", "file"),
        *("fs", "graph", "guard", "home", "http", "info", "input", "jvm", "key", "kind", "lake"),
        *("limit", "line", "local", "lock", "log", "message", "metric", "name", "object"),
        *("output", "param", "part", "path", "plan", "policy", "pool", "process", "queue"),
        *("range", "reader", "record", "report", "request", "require", "result", "row"),
        *(
            "server",
            "session",
            "settings",
            "source",
            "spark",
            "spec",
            "state",
            "status",
            "streaming",
        ),
        *("table", "thread", "time", "timeout", "token", "tree", "type", "value", "view"),
        *("watcher", "workflow", "writer"),
    }
)
"""Words of the field in their usual sense."""
SMALL = frozenset({"at", "in", "of", "on", "to", "up", "with", "not", "no"})
OFTEN = 4
"""A word in so many names is one that a reader has to know."""


def classes() -> dict[str, list[str]]:
    """Find the public classes, with the modules that define them."""
    found: dict[str, list[str]] = defaultdict(list)
    for file in SOURCE.rglob("*.py"):
        if "template" not in file.parts:
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found[node.name].append(str(file.relative_to(SOURCE)))
    return found


def words(name: str) -> list[str]:
    return [word.lower() for word in re.findall("[A-Z]+(?![a-z])|[A-Z][a-z0-9]+", name)]


def unused() -> set[str]:
    """Read the words that the glossary gives up."""
    table = GLOSSARY.partition("| not | but |")[2]
    left = re.findall(r"^\| ([a-z, ]+) \|", table, re.MULTILINE)
    return {word for cell in left for word in cell.split(", ")}


def test_a_public_class_has_a_name_of_its_own() -> None:
    several = {name: places for name, places in classes().items() if len(places) > 1}
    assert {name: places for name, places in several.items() if name not in ALIKE} == {}


def test_words_that_were_given_up_are_not_used() -> None:
    assert {"room", "deed", "seat"} <= unused()
    modules = {file.stem for file in SOURCE.rglob("*.py")}
    named = {name: words(name) for name in classes()} | {one: one.split("_") for one in modules}
    assert {name: found for name, found in named.items() if unused() & set(found)} == {}


def test_a_word_that_is_often_used_is_in_the_glossary_or_one_of_the_field() -> None:
    explained = set(re.findall("[a-z]+", GLOSSARY.partition("## Names in the code")[0].lower()))
    counted = Counter(word for name in classes() for word in set(words(name)))
    often = {word for word, count in counted.items() if count >= OFTEN}
    unknown = {word for word in often - explained - USUAL - SMALL if word[:-1] not in explained}
    assert unknown == set()
