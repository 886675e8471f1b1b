"""Downloads of ever more files and of ever bigger ones: to a new host, to one that has them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bench.comparison import Comparison, Curve, Options, Ratio, Work
from bench.lakefs import fill, serving, small_files, write_noise
from bench.transfer import Race

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
COLD, WARM, LAKECTL = "perago, new host", "perago, warm host", "lakectl -p 16"
SIZES = {"4 KiB": 4 * KIB, "4 MiB": 4 * MIB, "256 MiB": 256 * MIB, "4 GiB": 4 * GIB}
_FEW = {10_000: 3, 100_000: 1, 4 * GIB: 1}
"""What takes minutes runs less often."""

Prepare = Callable[[Path], None]


@contextmanager
def counts(options: Options) -> Iterator[Comparison]:
    """Fetch so many small files."""

    def prepare(count: int) -> Prepare:
        return lambda directory: fill(directory, small_files(count))

    points = {f"{count:,}": (count, prepare(count)) for count in options.counts}
    with _downloads("counts", "all of so many files of 4 KiB", "files", points) as comparison:
        yield comparison


@contextmanager
def sizes(_: Options) -> Iterator[Comparison]:
    """Fetch one file of that size."""

    def prepare(size: int) -> Prepare:
        return lambda directory: write_noise(directory / "one.bin", size)

    points = {name: (size, prepare(size)) for name, size in SIZES.items()}
    with _downloads("sizes", "one file of that size", "bytes", points) as comparison:
        yield comparison


@contextmanager
def _downloads(
    name: str, what: str, axis: str, points: Mapping[str, tuple[int, Prepare]]
) -> Iterator[Comparison]:
    with serving() as server:
        contenders: dict[str, Work] = {}
        ratios, slow, at = [], {}, {}
        for title, (x, prepare) in points.items():
            source = server.root / f"source-{x}"
            source.mkdir()
            prepare(source)
            repository = server.repository()
            server.send(repository, source)
            race = Race(server, repository, source)
            ways = {COLD: _cold(race), WARM: _warm(race), LAKECTL: _lakectl(race)}
            names = {way: f"{way}, {title}" for way in ways}
            for way, work in ways.items():
                contenders[names[way]] = work
                at[names[way]] = way, float(x)
                if x in _FEW:
                    slow[names[way]] = _FEW[x]
            ratios.append(Ratio(f"{name}, {title}: perago / lakectl", names[COLD], names[LAKECTL]))
            ratios.append(Ratio(f"{name}, {title}: warm / new host", names[WARM], names[COLD]))
        yield Comparison(
            name=name,
            what=f"{what}, downloaded from lakeFS",
            contenders=contenders,
            ratios=ratios,
            slow=slow,
            curve=Curve(axis, at),
        )


def _cold(race: Race) -> Work:
    def work() -> float:
        race.reset()
        return _timed(race.download)

    return work


def _warm(race: Race) -> Work:
    def work() -> float:
        if race.host is None:
            race.reset()
            race.download()
        race.land()
        race.settle()
        return _timed(race.download)

    return work


def _lakectl(race: Race) -> Work:
    def work() -> float:
        race.land()
        return _timed(race.lakectl_download)

    return work


def _timed(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
