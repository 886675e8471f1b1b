"""Writes the results of the fault rig as a page; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tests.faults.paths import BODY, CALLS_OF, EARLY, ORDER, POINTS_OF, REPORT

T = TypeVar("T")
SURVIVED = "survived"


@dataclass(frozen=True)
class Case:
    """One case: ``family/place/fault/path``, or another name where a test has its own."""

    id: str
    test: str
    outcome: str
    seconds: float
    documented: str = ""
    """What a weaker fence cannot keep here, and what was asserted instead."""
    faults: int = 0
    """How many faults were injected in it."""
    servers: str = ""
    """Which real servers it used."""

    @property
    def real(self) -> int:
        """Count its real servers: with two of them a whole worker ran."""
        return len(self.servers.split())


@dataclass(frozen=True)
class Result:
    """All cases of one family."""

    family: str
    what: str
    seconds: float
    cases: Sequence[Case]
    commit: str = "unknown"
    """Whose code was run."""


@dataclass(frozen=True)
class Machine:
    """On what it ran, and when."""

    cores: int
    memory_gib: int
    system: str
    python: str
    day: str
    note: str = ""
    """What else has to be known, about load for instance."""


HEAD = """\
# Fault report

What was done to Perago on purpose, and what it survived. Cases are of three kinds, counted apart:

- **worker**: a whole worker, its supervisor and executors, on a real Conductor and a real lakeFS;
- **one server**: an attempt, a store or a client on one real server, the other side scripted;
- **no server**: the embedded store, the local broker, files, or the model.

Every injected fault is counted where it is injected, and a case whose fault did not happen fails.
In the families `files`, `names`, `model` and `secrets`, and in the interleavings of `races`, the
fault is what the test is given. Tests in which nothing goes wrong are not counted, and cases that
differ only in what cannot matter, such as the fence before it is first asked, are run once. After
each case of a worker a checker
reads the history and the trees of the target in lakeFS, the attempts in Conductor and what is left
on disk, and decides by the invariants:

- V1: the target's first-parent history is A, or A and one publication; under `lineage` A and
  publications of this step only.
- V2: a completed task names a commit that is on the target and holds what that attempt made.
- V3: a commit that Conductor accepted never leaves the target.
- V4: no partial or mixed tree stays on the target.
- V5: what did not complete can be tried again; nothing is stuck.
- V6: nothing is read or written outside the attempt directory.
- V7: what dead attempts leave is bounded, named after them, and removed.
- V8: no secret in a log, an output, an error or metadata.
- V9: status and reason are the documented ones.
"""
AGAIN = """\
## Run it again

```console
$ make faults                     # all families
$ make faults ARGS="kill pause"   # some; the others keep the results they had
```

`make test` runs a selection of the longest families and all of the others. One case is run by its
name:

```console
$ .venv/bin/pytest tests/faults -k "decision and replace-hard"
```
"""


SIGNS = (
    "*=*: as on the path `merge` under `hard`, since nothing depends on path and fence before the"
    " first fence; run once. *–*: not on that path. *not tested*: it is, and was not tried."
)


def render(results: Sequence[Result], machine: Machine, families: Sequence[str] = ()) -> str:
    """Write the whole page; ``families`` are those that should be there."""
    parts = [HEAD, _families(results, machine, families)]
    by_name = {result.family: result.cases for result in results}
    parts += _grid(
        "Killed with SIGKILL",
        "Rows are the points of an attempt in order, columns the path it was on; each cell says"
        f" under which fences the attempt died there and its retry completed. {SIGNS}",
        _named(by_name.get("kill", ()), "kill", "SIGKILL"),
    )
    parts += _grid(
        "Stopped past the response timeout, then continued",
        "The whole worker stands still at the point, Conductor gives the attempt up, another worker"
        " completes the retry, and the first one wakes up. It may not change what was completed; a"
        f" star marks what a weaker fence cannot keep, see below. {SIGNS}",
        _named(by_name.get("pause", ()), "pause", "SIGSTOP"),
    )
    parts += _calls(by_name.get("network", ()))
    parts += _documented(results)
    parts.append(AGAIN)
    return "\n".join(parts)


def _families(results: Sequence[Result], machine: Machine, families: Sequence[str]) -> str:
    rows = [
        (result.family, result.what, *_counts(result.cases), f"{result.seconds:.0f}", result.commit)
        for result in results
    ]
    known = {result.family for result in results}
    rows += [(name, "not run", *[""] * 6) for name in families if name not in known]
    cases = [case for result in results for case in result.cases]
    total = f"{sum(result.seconds for result in results):.0f}"
    rows.append(("**all**", "", *_counts(cases), total, ""))
    facts = (
        f"Run on {machine.day}: {machine.cores} cores, {machine.memory_gib} GiB, {machine.system},"
        f" Python {machine.python}; real lakeFS and Conductor on the same machine."
        f"{machine.note and f' {machine.note}'}\n"
    )
    kinds = ("worker", "one server", "no server")
    table = _table(("family", "what is done", *kinds, "survived", "seconds", "commit"), rows)
    return f"## Families\n\n{table}\n{facts}"


def _counts(cases: Sequence[Case]) -> tuple[str, ...]:
    kinds = [sum(case.real == real for case in cases) for real in (2, 1, 0)]
    survived = sum(case.outcome == SURVIVED for case in cases)
    all_of_them = "all" if survived == len(cases) else f"{survived} of {len(cases)}"
    return *map(str, kinds), all_of_them


@dataclass(frozen=True)
class _Named:
    """A case by the parts of its name; ``path`` is without the fence."""

    place: str
    fault: str
    path: str
    fence: str
    case: Case


def _named(cases: Iterable[Case], family: str, fault: str = "") -> list[_Named]:
    found = []
    for case in cases:
        parts = case.id.split("/")
        if len(parts) == 4 and parts[0] == family and fault in {"", parts[2]}:
            path, fence = _split(parts[3])
            found.append(_Named(parts[1], parts[2], path, fence, case))
    return found


def _split(path: str) -> tuple[str, str]:
    """Part a path from its fence: ``replace-hard``."""
    for fence in ("head", "lineage", "hard"):
        if path.endswith(f"-{fence}"):
            return path.removesuffix(f"-{fence}"), fence
    return path, ""


def _grid(title: str, text: str, cases: Sequence[_Named]) -> Iterator[str]:
    if not cases:
        return
    columns = _unique(one.path for one in cases)
    rows = []
    for place in _in_order(cases):
        cells = [
            _cell([one for one in cases if (one.place, one.path) == (place, path)], place, path)
            for path in columns
        ]
        rows.append((place, *cells))
    yield f"## {title}\n"
    yield f"{text} {len(cases)} cases.\n"
    yield _table(("point", *columns), rows)


def _cell(cases: Sequence[_Named], place: str, path: str) -> str:
    if not cases:
        return _absent(place, path.removesuffix(" apart"))
    return ", ".join(_verdict(one) for one in cases)


def _absent(place: str, path: str) -> str:
    """Say why there is no case: nothing can differ, it is not on that path, or nobody tried."""
    if place in EARLY and place in {*POINTS_OF.get(path, ()), BODY}:
        return "="
    call = place.removesuffix(" sent").removesuffix(" applied")
    there = place in {*POINTS_OF.get(path, ()), *REPORT, BODY} or call in CALLS_OF.get(path, ())
    return "not tested" if there else "–"


def _verdict(one: _Named) -> str:
    word = one.fence or "yes"
    if one.case.outcome != SURVIVED:
        return f"**{word}: failed**"
    return f"{word}\\*" if one.case.documented else word


def _in_order(cases: Sequence[_Named]) -> list[str]:
    """Put points where an attempt has them, and other places as they were met behind them."""
    places = _unique(one.place for one in cases)
    return sorted(places, key=lambda place: ORDER.index(place) if place in ORDER else len(ORDER))


def _calls(cases: Sequence[Case]) -> Iterator[str]:
    named = _named(cases, "network")
    if not named:
        return
    faults = _unique(one.fault for one in named)
    rows = []
    for place, path in _unique((one.place, f"{one.path} {one.fence}".strip()) for one in named):
        met = {
            one.fault: "yes" if one.case.outcome == SURVIVED else "**failed**"
            for one in named
            if (one.place, f"{one.path} {one.fence}".strip()) == (place, path)
        }
        rows.append((place, path, *(met.get(fault, "not tested") for fault in faults)))
    yield "## Calls of a worker on a network that goes wrong\n"
    yield (
        "A whole worker behind proxies that spoil one request. *yes*: the workflow completed, after"
        " a retry where the outcome of the call cannot be known, and the invariants held."
        f" {len(named)} cases; the calls of the stores and of the Conductor client by themselves"
        " are spoiled in more ways by the other tests of this family.\n"
    )
    yield _table(("call", "path", *faults), rows)


def _documented(results: Sequence[Result]) -> Iterator[str]:
    rows = [
        (f"`{case.id or case.test}`", case.documented)
        for result in results
        for case in result.cases
        if case.documented
    ]
    if not rows:
        return
    yield "## What the weaker fences cannot keep\n"
    yield (
        "These cases break an invariant under `head` or `lineage`, and none under `hard`. They are"
        " run all the same, and what is documented to happen was asserted.\n"
    )
    yield _table(("case", "documented outcome, asserted"), rows)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _unique(items: Iterable[T]) -> list[T]:
    return list(dict.fromkeys(items))
