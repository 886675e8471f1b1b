"""Measures how the source is arranged: packages, imports between them, floors, lines.

``python scripts/structure.py`` prints the table of the architecture page; with ``--write`` it puts
it there.
"""  # noqa: INP001 - run from the checkout, not shipped

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/explanation/architecture.md"
BEGIN, END = "<!-- structure: made by scripts/structure.py -->", "<!-- end of structure -->"


@dataclass(frozen=True)
class Structure:
    """The packages of ``perago`` and the imports between them, lazy ones included."""

    source: Path

    @cached_property
    def files(self) -> dict[str, Path]:
        """Return modules by name, without the files that ``perago init`` copies."""
        return {
            ".".join(path.relative_to(self.source.parent).with_suffix("").parts): path
            for path in sorted(self.source.rglob("*.py"))
            if "template" not in path.parts
        }

    @cached_property
    def packages(self) -> frozenset[str]:
        """Return the packages, and the modules that stand in none."""
        return frozenset(map(self._package, self.files))

    @cached_property
    def arrows(self) -> dict[str, set[str]]:
        """Return which packages each package imports."""
        found: dict[str, set[str]] = {}
        for name, path in self.files.items():
            own = self._package(name)
            imported = {self._package(each) for each in _imports(ast.parse(path.read_text()))}
            found.setdefault(own, set()).update((imported & self.packages) - {own, "perago"})
        found.pop("perago", None)  # The face of the package hands names on.
        return found

    @cached_property
    def floors(self) -> list[list[str]]:
        """Return packages in floors: each stands above all that it imports."""
        left, floors = dict(self.arrows), list[list[str]]()
        done: set[str] = set()
        while left:
            floor = sorted(name for name, below in left.items() if below <= done)
            if not floor:
                raise SystemExit(f"import cycle among {', '.join(sorted(left))}")
            floors.append(floor)
            done.update(floor)
            for name in floor:
                del left[name]
        return floors

    def lines(self, package: str) -> int:
        """Count the lines of a package."""
        own = [path for name, path in self.files.items() if self._package(name) == package]
        return sum(len(path.read_text().splitlines()) for path in own)

    def table(self) -> str:
        """Write the floors, the imports and the lines as a table, from the top down."""
        arrows = sum(map(len, self.arrows.values()))
        total = sum(map(self.lines, self.arrows))
        counted = f"{len(self.arrows)} packages and modules on {len(self.floors)} floors"
        rows = [
            f"{counted}, {arrows} imports between them, none upwards; {total:,} lines.",
            "",
            "| floor | package | lines | imports |",
            "| --- | --- | --- | --- |",
        ]
        for number in range(len(self.floors), 0, -1):
            for name in self.floors[number - 1]:
                below = ", ".join(sorted(self.arrows[name])) or "nothing"
                rows.append(f"| {number} | `{name}` | {self.lines(name):,} | {below} |")
        return "\n".join(rows)

    def _package(self, module: str) -> str:
        parts = module.removesuffix(".__init__").split(".")
        return parts[1] if len(parts) > 1 else "perago"


def _imports(tree: ast.Module) -> Iterator[str]:
    """Yield the modules of Perago that a module imports when it runs."""
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
        for statement in node.body
        for inner in ast.walk(statement)
    }
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("perago"))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("perago"):
            if node.module == "perago":
                yield from (f"perago.{alias.name}" for alias in node.names)
            else:
                yield str(node.module)


def main() -> None:
    """Print the table, or write it into the page."""
    table = Structure(ROOT / "src/perago").table()
    if "--write" not in sys.argv:
        print(table)  # noqa: T201 - its purpose
        return
    text = PAGE.read_text()
    before, _, rest = text.partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
