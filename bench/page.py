"""The page of the documentation that shows what was measured, and how to measure it again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

HEAD = """# Benchmarks

All contenders of a comparison ran in turn, in one run, on one machine. `runs` says how often each
of them was measured, after a round that only warms up; what takes very long ran once or twice,
and not warmed up. The time is the median from three runs on, the mean of two, or the only one; the
spread is half of the distance from best to worst, and a single run has none. A ratio tells more
than a time: both of its sides had the same disk, servers and neighbours. But it is no better than
the side that ran less often.

```console
$ make bench                       # everything, under an hour
$ python -m bench spark startup    # some
$ make bench-quick                 # a few; fails when a ratio is 30 % worse than recorded
```
"""


SLOWEST = """## The slowest places left

- **A small attempt on lakeFS** is waiting, not computing: ten questions that need each other's
  answers, 3 to 4 ms each, because lakeFS collects questions for a moment before it answers. What
  does not depend on an answer is asked beside it ([architecture](../explanation/architecture.md)).
- **A task without a workspace** costs the engine more than the worker: a client that does nothing
  but poll and complete is hardly faster (see `conductor`). The rest is a supervisor that outlives
  the executor and keeps the lease.
- **Many small files** are one request each, which costs the server 0.3 ms of its CPU and the
  worker half of that; on a host that has them they still have to be made, at 0.1 ms each (see
  `counts`). ext4 takes ten times as long where as many were removed a moment ago, which is why
  attempt directories are put apart from each other.
- **One big file** is MD5, which is what lakeFS lists: it is computed beside the way, and takes
  longer than the network of this machine and its disk. A client that verifies nothing is faster
  (see `sizes`); with many files at once the cores share the work.
- **Spark** is its JVM: seconds until the first session, then 0.06 s for a small attempt's body. A
  direct write by executors on other machines costs three times a write to a local disk, in S3A
  and the gateway; on one machine Perago sends the files itself, at a tenth more than the disk.
"""


def render(document: Mapping[str, Any]) -> str:
    """Write the page of a run."""
    machine = document["machine"]
    where = f"{machine['system']} ({machine['processor']}, {machine['cores']} cores)"
    minutes = round(sum(found["took"] for found in document["comparisons"]) / 60)
    parts = [
        HEAD,
        f"Measured with Python {machine['python']} on {where}, in {minutes} minutes.\n",
        "## Ratios\n",
        "\n".join(_ratios(document)) + "\n",
        SLOWEST,
    ]
    for found in document["comparisons"]:
        parts += _comparison(found)
    return "\n".join(parts)


def _ratios(document: Mapping[str, Any]) -> Iterator[str]:
    yield "| ratio | value | target | |"
    yield "| --- | ---: | ---: | --- |"
    for name, ratio in document["ratios"].items():
        if ratio["target"] is None:
            yield f"| {name} | {ratio['value']} | | |"
            continue
        mark = "holds" if ratio["holds"] else "**missed**"
        if "instead" in ratio:
            mark = f"missed; enough is: {ratio['instead']}"
        yield f"| {name} | {ratio['value']} | {ratio['kind']} {ratio['target']} | {mark} |"


def _comparison(found: Mapping[str, Any]) -> Iterator[str]:
    name = found["name"]
    yield f"## {name}\n"
    yield f"{found['what']}; load of the machine {found['load'][0]:.1f}.\n"
    yield f"![{name}](benchmarks/{name}.png)\n"
    yield "| contender | runs | time | spread |\n| --- | ---: | ---: | ---: |"
    for contender, timing in found["contenders"].items():
        runs = len(timing["seconds"])
        spread = f"±{timing['spread'] / 2:.0%}" if runs > 1 else ""
        yield f"| {contender} | {runs} | {timing['median'] * 1000:,.1f} ms | {spread} |"
    if found["facts"]:
        yield "\n| counted | |\n| --- | ---: |"
        for fact, value in found["facts"].items():
            yield f"| {fact} | {value:,} |"
    yield ""
