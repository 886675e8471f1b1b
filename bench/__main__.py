"""``make bench``: every comparison, or those named; a table, bars, a JSON file and a page."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from bench import (
    attempt,
    bulk,
    conductor,
    guards,
    memory,
    nodes,
    page,
    picture,
    prefixes,
    publish,
    spark,
    startup,
    transfer,
    ui,
    warm,
)
from bench.comparison import Options, machine, measure, report
from bench.regression import fallen

COMPARISONS = {
    "startup": startup.comparison,
    "download": transfer.download,
    "stage": transfer.stage,
    "big": transfer.big,
    "counts": bulk.counts,
    "sizes": bulk.sizes,
    "attempt": attempt.comparison,
    "attempt-lakefs": warm.attempt,
    "chain": warm.chain,
    "publish": publish.comparison,
    "guards": guards.comparison,
    "nodes": nodes.comparison,
    "conductor": conductor.comparison,
    "spark": spark.comparison,
    "memory": memory.comparison,
    "requests": warm.requests,
    "prefixes": prefixes.comparison,
    "ui": ui.comparison,
}
GROUPS = {
    "transfer": ("download", "stage", "big", "counts", "sizes"),
    "growth": ("requests", "prefixes", "ui"),
}
QUICK = ("startup", "attempt", "guards", "publish")
RECORDED = Path(__file__).with_name("recorded.json")
PAGE = Path(__file__).parents[1] / "docs" / "reference" / "benchmarks.md"
WIDTH = 40
console = Console(highlight=False)


def main() -> int:
    """Measure; exit 1 when a ratio misses its target, or with --quick when one has fallen."""
    parser = _parser()
    given = parser.parse_args()
    options = Options(given.counts, given.gib, peer=not (given.without_peer or given.quick))
    known = COMPARISONS.keys() | GROUPS.keys()
    unknown = sorted(set(given.names) - known)
    if unknown:
        parser.error(f"no comparison {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    names = _chosen(given.names or (QUICK if given.quick else COMPARISONS))
    repeats = given.repeats or 5
    given.json = given.json or Path(".cache", "bench-quick.json" if given.quick else "bench.json")
    kept = _kept(given.json) if given.add else {}
    document = _document(list(kept.values()))
    for name in names:
        kept[name] = _run(name, repeats, options)
        document = _document([kept[one] for one in COMPARISONS if one in kept])
        _write(given.json, document)  # After each: whoever stops here loses nothing.
    ratios = document["ratios"]
    console.print(f"\nwritten to {given.json}")
    if given.page:
        _write_page(document)
    if given.record:
        _write(RECORDED, ratios)
    if given.quick:
        return _judge(ratios)
    return 0 if all(ratio["holds"] for ratio in ratios.values()) else 1


def _document(reports: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    ratios = {name: ratio for found in reports for name, ratio in found["ratios"].items()}
    return {"machine": machine(), "comparisons": reports, "ratios": ratios}


def _kept(file: Path) -> dict[str, Mapping[str, Any]]:
    """Read what an earlier run measured."""
    if not file.exists():
        return {}
    return {found["name"]: found for found in json.loads(file.read_text())["comparisons"]}


def _write(file: Path, found: Mapping[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(found, indent=2) + "\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=main.__doc__)
    every = ", ".join((*COMPARISONS, *GROUPS))
    parser.add_argument("names", nargs="*", metavar="NAME", help=every)
    parser.add_argument("--repeats", type=int, help="how often each runs: 5")
    parser.add_argument("--json", type=Path, metavar="FILE", help="else below .cache")
    parser.add_argument(
        "--counts",
        type=lambda text: tuple(int(count) for count in text.split(",")),
        default=Options().counts,
        metavar="N,N",
        help="how many files 'counts' and 'requests' have",
    )
    parser.add_argument(
        "--gib",
        type=lambda text: tuple(float(size) for size in text.split(",")),
        default=Options().gib,
        metavar="G,G",
        help="how big the files of 'memory' are",
    )
    parser.add_argument(
        "--without-peer",
        action="store_true",
        help="leave out what is installed from PyPI",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help=f"only {', '.join(QUICK)}, and compare with what was recorded",
    )
    parser.add_argument(
        "--add", action="store_true", help="keep what the FILE has of other comparisons"
    )
    parser.add_argument("--record", action="store_true", help=f"write {RECORDED.name}")
    parser.add_argument("--page", action="store_true", help="write the page and its pictures")
    return parser


def _chosen(names: Iterable[str]) -> Sequence[str]:
    """Spell groups out; each comparison once, in the order of the names."""
    spelled = [one for name in names for one in GROUPS.get(name, (name,))]
    return list(dict.fromkeys(spelled))


def _write_page(document: Mapping[str, Any]) -> None:
    pictures = PAGE.with_suffix("")
    pictures.mkdir(exist_ok=True)
    for found in document["comparisons"]:
        picture.draw(found, pictures / f"{found['name']}.png")
    PAGE.write_text(page.render(document))
    console.print(f"and to {PAGE}")


def _judge(ratios: Mapping[str, Any]) -> int:
    if not RECORDED.exists():
        console.print("nothing is recorded yet: run it with --record")
        return 1
    worse = list(fallen(json.loads(RECORDED.read_text()), ratios))
    for line in worse:
        console.print(f"[red]fallen[/red] {line}")
    if not worse:
        console.print("no ratio has fallen by 30 %")
    return 1 if worse else 0


def _run(name: str, repeats: int, options: Options) -> dict[str, Any]:
    began = time.monotonic()
    with (
        COMPARISONS[name](options) as comparison,
        Progress(console=console, transient=True) as progress,
    ):
        total = len(list(comparison.rounds(repeats)))
        bar = progress.add_task(name, total=total)
        timings = measure(comparison, repeats, lambda: progress.advance(bar))
        found = report(comparison, timings)
    found["took"] = round(time.monotonic() - began)
    console.print(f"\n[bold]{name}[/bold]  {comparison.what}")
    longest = max(timing.median for timing in timings.values())
    for contender, timing in timings.items():
        drawn = "█" * max(1, round(WIDTH * timing.median / longest))
        spread = f"±{timing.spread / 2:.0%}" if timing.runs > 1 else ""
        middle = f"{timing.median * 1000:9.1f} ms [dim]{timing.runs:>2} x {spread:<6}[/dim]"
        console.print(f"  {contender:<24} {middle} [cyan]{drawn}[/cyan]")
    for title, ratio in _ratios(found).items():
        if ratio["target"] is None:
            console.print(f"  {title}: {ratio['value']}")
            continue
        mark = "[green]holds[/green]" if ratio["holds"] else "[red]missed[/red]"
        console.print(f"  {title}: {ratio['value']} ({ratio['kind']} {ratio['target']}) {mark}")
    facts: dict[str, float] = found["facts"]
    for title, value in facts.items():
        if title not in _ratios(found):
            console.print(f"  [dim]{title}: {value}[/dim]")
    return found


def _ratios(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    ratios: dict[str, dict[str, Any]] = found["ratios"]
    return ratios


if __name__ == "__main__":
    raise SystemExit(main())
