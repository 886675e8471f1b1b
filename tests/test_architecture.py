"""The shape of the source, kept by reading it: a pure core, one-way arrows, sizes, names.

Files are discovered, so that a new module is held to the rules from its first day.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src"
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """One file of the package, parsed."""

    name: str
    path: Path

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.path)

    @cached_property
    def imports(self) -> frozenset[str]:
        """Every imported module, wherever the import stands."""
        return frozenset(_imported(self, self.tree))

    @cached_property
    def for_types_only(self) -> frozenset[str]:
        """The imports under ``if TYPE_CHECKING``, which never run."""
        guarded = [
            inner
            for node in ast.walk(self.tree)
            if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
            for inner in node.body
        ]
        return frozenset(_imported(self, ast.Module(guarded, [])))

    @cached_property
    def functions(self) -> list[Function]:
        return [node for node in ast.walk(self.tree) if isinstance(node, Function)]

    def __str__(self) -> str:
        return self.name


def _imported(module: Module, tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: relative import in line {node.lineno}"
            base = node.module or ""
            for alias in node.names:
                full = f"{base}.{alias.name}"
                yield full if full in NAMES else base


def _discover() -> Iterator[Module]:
    for path in sorted((SOURCE / "perago").rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        if "template" in parts:  # Files that `perago init` copies: an author's code, not ours.
            continue
        yield Module(".".join(parts).removesuffix(".__init__"), path)


MODULES = list(_discover())
NAMES = frozenset(module.name for module in MODULES)
PROTOCOL = [module for module in MODULES if module.name.startswith("perago.protocol")]


def for_each(modules: list[Module]) -> Callable[[Callable[[Module], None]], Callable[[], None]]:
    """Make one test of a check of many modules; it names all that fail, and why."""

    def decorate(check: Callable[[Module], None]) -> Callable[[], None]:
        def test() -> None:
            failed = []
            for module in modules:
                try:
                    check(module)
                except AssertionError as error:
                    failed.append(f"{module}: {str(error).splitlines()[0]}")
            assert failed == []

        test.__name__, test.__doc__ = check.__name__, check.__doc__
        return test

    return decorate


def within(name: str, *roots: str) -> bool:
    return any(name == root or name.startswith(root + ".") for root in roots)


def perago(*names: str) -> tuple[str, ...]:
    return tuple(f"perago.{name}" for name in names)


# --- the core is pure ------------------------------------------------------------------------

PURE_STDLIB = frozenset(
    {
        *("__future__", "abc", "collections", "collections.abc", "dataclasses", "enum"),
        *(
            "decimal",
            "fractions",
            "fnmatch",
            "functools",
            "hashlib",
            "itertools",
            "json",
            "math",
            "operator",
            "re",
        ),
        *("string", "types", "typing", "unicodedata"),
    }
)
IMPURE_NAMES = frozenset(
    {
        *("open", "print", "input", "exec", "eval", "compile", "__import__", "breakpoint"),
        *("globals", "locals", "vars", "id", "hash"),
        *("os", "sys", "time", "datetime", "random", "secrets", "uuid", "logging", "socket"),
        *("pathlib", "Path", "threading", "subprocess"),
    }
)
IMPURE_ATTRIBUTES = frozenset(
    {
        *("now", "utcnow", "today", "environ", "getenv", "read_text", "write_text"),
        *("read_bytes", "write_bytes", "mkdir", "unlink", "getLogger", "urandom"),
    }
)


@for_each(PROTOCOL)
def test_the_protocol_imports_only_what_cannot_touch_the_world(module: Module) -> None:
    for name in module.imports:
        assert name in PURE_STDLIB or within(name, *perago("errors", "protocol")), name


@for_each(PROTOCOL)
def test_the_protocol_names_nothing_that_does_io_or_reads_a_clock(module: Module) -> None:
    for node in ast.walk(module.tree):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            assert node.id not in IMPURE_NAMES, f"{module}:{line} {node.id}"
        if isinstance(node, ast.Attribute):
            assert node.attr not in IMPURE_ATTRIBUTES, f"{module}:{line} .{node.attr}"
        assert not isinstance(node, ast.Global | ast.Await | ast.AsyncFunctionDef), line


@for_each(PROTOCOL)
def test_the_values_of_the_protocol_are_frozen(module: Module) -> None:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ClassDef):
            for decorator in node.decorator_list:
                if "dataclass" in ast.unparse(decorator):
                    assert "frozen=True" in ast.unparse(decorator), f"{module}.{node.name}"


def test_the_protocol_is_found_at_all() -> None:
    assert {"perago.protocol.publication", "perago.protocol.paths"} <= {m.name for m in PROTOCOL}


# --- the arrows go one way -------------------------------------------------------------------

FLOORS: tuple[tuple[str, ...], ...] = (
    ("clock", "errors", "prefetch", "sqlite", "terminal"),
    ("filesystem", "protocol"),
    ("data", "ports", "redaction"),
    ("history", "ledger", "settings", "tasks", "transfer"),
    ("observe", "process", "stores", "workflow", "workspace"),
    ("attempt", "brokers", "dev", "programs", "spark"),
    ("conform", "human", "worker"),
    ("app",),
    ("testing", "ui"),
    ("cli",),
    ("notebook", "__main__"),
)
"""A package may import from lower floors only; none of its own floor."""
# Who may know only these, although more stands below it.
KNOWS_ONLY: dict[str, tuple[str, ...]] = {
    "perago.clock": (),
    "perago.errors": (),
    "perago.prefetch": (),
    "perago.sqlite": (),
    "perago.terminal": (),
    "perago.filesystem": perago("errors", "filesystem"),
    "perago.protocol": perago("errors", "protocol"),
    "perago.ports": perago("errors", "protocol"),
    "perago.redaction": perago("protocol"),
    "perago.tasks": perago("data", "errors", "protocol", "tasks"),
    "perago.programs": perago(
        *("errors", "ports", "process.memory", "programs", "protocol", "tasks.cancellation"),
    ),
    "perago.tasks.cancellation": (),
    "perago.settings": perago("errors", "filesystem", "protocol", "redaction"),
    "perago.workflow": perago("errors", "protocol", "tasks", "workflow"),
    "perago.attempt": perago(
        *("attempt", "errors", "ports", "prefetch", "protocol", "redaction", "tasks"),
        *("workspace.neighbours", "workspace.scan"),
    ),
    "perago.human": perago(
        *("attempt", "errors", "filesystem", "human", "ports", "protocol", "tasks", "transfer"),
        *("workflow.human", "workspace"),
    ),
    "perago.worker": perago(
        *("attempt.progress", "attempt.report", "brokers", "errors", "filesystem", "ports"),
        *("process", "protocol", "redaction", "settings", "tasks", "worker", "workspace"),
    ),
}
# Who must never know these, now or later.
NEVER_KNOWS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(perago("data", "stores", "transfer", "workspace"), perago("tasks")),
    "perago.dev": perago("attempt"),
}


def test_every_package_stands_on_one_floor() -> None:
    standing = [name for floor in FLOORS for name in floor]
    assert sorted(standing) == sorted({m.name.split(".")[1] for m in MODULES if "." in m.name})


def test_the_architecture_page_shows_the_floors() -> None:
    page = (SOURCE.parent / "docs/explanation/architecture.md").read_text()
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \|", page, flags=re.MULTILINE)
    shown = {name: int(floor) for floor, name in rows}
    assert shown == {name: at for at, floor in enumerate(FLOORS, 1) for name in floor}


def test_packages_import_from_lower_floors_only() -> None:
    floor_of = {name: number for number, floor in enumerate(FLOORS) for name in floor}
    upwards = {
        f"{module.name} -> {name}"
        for module in MODULES
        for name in module.imports - module.for_types_only
        if "." in module.name and within(name, "perago") and "." in name
        if (own := module.name.split(".")[1]) != (other := name.split(".")[1])
        if floor_of[other] >= floor_of[own]
    }
    assert upwards == set()


@for_each(MODULES)
def test_the_arrows_point_inwards(module: Module) -> None:
    ours = {name for name in module.imports if within(name, "perago")}
    for owner, known in KNOWS_ONLY.items():
        if within(module.name, owner):
            assert {name for name in ours if not within(name, *known)} == set()
    for owner, unknown in NEVER_KNOWS.items():
        if within(module.name, owner):
            assert {name for name in ours if within(name, *unknown)} == set()


def test_no_module_needs_itself() -> None:
    """No import cycle, lazy imports included; a package may gather its own modules."""
    graph = {
        module.name: {
            name
            for name in module.imports - module.for_types_only
            if name in NAMES and not within(module.name, name)
        }
        for module in MODULES
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"import cycle: {' -> '.join(error.args[1])}")


FOREIGN = {
    "conductor": perago("brokers.conductor"),
    "httptools": perago("transfer.http_pool"),
    "jsonschema": perago("tasks.json_schemas"),
    "urllib3": perago("stores.lakefs"),
    "lakefs": perago("stores.lakefs"),
    "lakefs_sdk": perago("stores.lakefs"),
    "opentelemetry": perago("observe"),
    "jinja2": perago("ui.rendering"),
    "psycopg": perago("ledger.postgres"),
    "starlette": perago("ui"),
    "uvicorn": perago("ui.serving"),
    "prometheus_client": perago("observe"),
    "pyspark": perago("spark"),
    "py4j": perago("spark"),
    "grpc": perago("spark"),
    "pyarrow": perago("data", "spark"),
    "pytest": perago("testing"),
    "hypothesis": perago("testing"),
}


@for_each(MODULES)
def test_a_foreign_library_stays_where_it_is_translated(module: Module) -> None:
    for library, homes in FOREIGN.items():
        if any(within(name, library) for name in module.imports):
            assert within(module.name, *homes), f"{module} imports {library}"


# --- sizes and names -------------------------------------------------------------------------

EXEMPT = re.compile(r"# noqa: [A-Z0-9, ]*(?P<code>PLR0913|PLR0915)[A-Z0-9, ]* --? \S+")


def exempt(module: Module, function: Function, code: str) -> bool:
    """Tell whether the line of the ``def`` excuses it, with a reason."""
    found = EXEMPT.search(module.lines[function.lineno - 1])
    return found is not None and code in found.group(0)


def test_no_module_is_longer_than_450_lines_and_nine_in_ten_have_at_most_300() -> None:
    sizes = {module.name: len(module.lines) for module in MODULES}
    assert {name: size for name, size in sizes.items() if size > 450} == {}
    assert sum(size <= 300 for size in sizes.values()) >= 0.9 * len(sizes)


@for_each(MODULES)
def test_no_function_is_longer_than_50_lines(module: Module) -> None:
    """A command of the CLI declares its options in its signature; there the body counts."""
    for function in module.functions:
        first = function.body[0] if within(module.name, "perago.cli") else function
        length = (function.end_lineno or function.lineno) - first.lineno + 1
        assert length <= 50 or exempt(module, function, "PLR0915"), function.name


@for_each(MODULES)
def test_no_function_takes_more_than_6_parameters(module: Module) -> None:
    """A command of the CLI has one parameter per option; the linter's table says the same."""
    if within(module.name, "perago.cli"):
        return
    for function in module.functions:
        arguments = function.args
        names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
        count = len(names) - (names[:1] in (["self"], ["cls"]))
        assert count <= 6 or exempt(module, function, "PLR0913"), function.name


def test_modules_are_named_after_nouns_of_the_specification() -> None:
    """No drawer for everything: utils, helpers, manager, models."""
    drawers = re.compile(r"(?:^|_)(?:utils?|helpers?|managers?|models?|common|misc)$")
    assert [m.name for m in MODULES for part in m.name.split(".") if drawers.search(part)] == []


@for_each(MODULES)
def test_every_module_opens_with_a_sentence(module: Module) -> None:
    assert (ast.get_docstring(module.tree) or "").strip(), "say what this module is for"
