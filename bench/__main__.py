"""``make bench``: every comparison, or those named; a table, bars and a JSON file."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from bench import attempt, conductor, memory, prefixes, spark, startup, transfer, warm
from bench.comparison import Options, machine, measure, report

COMPARISONS = {
    "attempt": attempt.comparison,
    "startup": startup.comparison,
    "attempt-lakefs": warm.attempt,
    "download": transfer.download,
    "stage": transfer.stage,
    "big": transfer.big,
    "requests": warm.requests,
    "chain": warm.chain,
    "memory": memory.comparison,
    "conductor": conductor.comparison,
    "spark": spark.comparison,
    "prefixes": prefixes.comparison,
}
WIDTH = 40
console = Console(highlight=False)


def main() -> int:
    """Measure; exit 1 when a ratio misses its target."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=main.__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(COMPARISONS))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path, default=Path(".cache/bench.json"), metavar="FILE")
    parser.add_argument(
        "--counts",
        type=lambda text: tuple(int(count) for count in text.split(",")),
        default=Options().counts,
        metavar="N,N",
        help="how many files 'requests' has",
    )
    parser.add_argument(
        "--gib",
        type=float,
        default=Options().gib,
        metavar="G",
        help="how big the file of 'memory' is",
    )
    parser.add_argument("--without-peer", action="store_true", help="leave perago 0.6.1 out")
    given = parser.parse_args()
    options = Options(given.counts, given.gib, peer=not given.without_peer)
    unknown = set(given.names) - COMPARISONS.keys()
    if unknown:
        parser.error(
            f"no comparison {', '.join(sorted(unknown))}; there are {', '.join(COMPARISONS)}"
        )
    reports = [_run(name, given.repeats, options) for name in given.names or COMPARISONS]
    ratios = {name: ratio for found in reports for name, ratio in found["ratios"].items()}
    document = {"machine": machine(), "comparisons": reports, "ratios": ratios}
    given.json.parent.mkdir(parents=True, exist_ok=True)
    given.json.write_text(json.dumps(document, indent=2) + "\n")
    console.print(f"\nwritten to {given.json}")
    return 0 if all(ratio["holds"] for ratio in ratios.values()) else 1


def _run(name: str, repeats: int, options: Options) -> dict[str, Any]:
    with (
        COMPARISONS[name](options) as comparison,
        Progress(console=console, transient=True) as progress,
    ):
        total = len(list(comparison.rounds(repeats)))
        bar = progress.add_task(name, total=total)
        timings = measure(comparison, repeats, lambda: progress.advance(bar))
        found = report(comparison, timings)
    console.print(f"\n[bold]{name}[/bold]  {comparison.what}")
    longest = max(timing.median for timing in timings.values())
    for contender, timing in timings.items():
        drawn = "█" * max(1, round(WIDTH * timing.median / longest))
        spread = f"[dim]±{timing.spread / 2:.0%}[/dim]"
        milliseconds = f"{timing.median * 1000:9.1f} ms"
        console.print(f"  {contender:<24} {milliseconds} {spread:<6} [cyan]{drawn}[/cyan]")
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
