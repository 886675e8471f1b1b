"""Runs the families and writes what survived: ``python -m tests.faults.report [FAMILY...]``.

The results of a family are kept outside the checkout, so that families can be run one by one; the
page is written from all that are there.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from xml.etree import ElementTree as ET

from tests.faults.families import FAMILIES, FAULTS, SERVERS, Family, is_case
from tests.faults.page import Case, Machine, Result, render

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/reference/faults.md"
KEPT = Path(os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))) / "perago" / "faults"
LANES = 2
"""How many families run side by side: most of their time is spent waiting for a timeout."""
SURVIVED, FAILED = "survived", "failed"
DOCUMENTED = "documented"
"""The property by which a test says what a weaker fence cannot keep in its case."""


def run(family: Family, kept: Path, only: str = "", cases: str = "") -> None:
    """Run the cases of a family, or some of them, and keep what came of them and what was said."""
    xml = kept / f"{family.name}-{os.getpid()}.xml"
    paths = [path for path in family.paths if only in path]
    command = [sys.executable, "-m", "pytest", *paths, "-q", f"--junitxml={xml}"]
    command += ["-k", cases] if cases else []
    command += ["-o", "junit_family=xunit1"]  # The one that takes what tests say of a case.
    command += ["-n", str(family.jobs), "--dist", "worksteal"] if family.jobs else []
    xml.unlink(missing_ok=True)
    began = time.monotonic()
    environment = os.environ | {"PERAGO_FAULTS": "all"} | dict(family.settings)
    log = kept / f"{family.name}.log"
    _say(f"{family.name}: {family.what} (tail -f {log})")
    with log.open("wb") as words:
        subprocess.run(command, cwd=ROOT, env=environment, stdout=words, stderr=words, check=False)
    if not xml.exists():
        raise SystemExit(f"the family {family.name} did not come to its end; see {log}")
    seconds = time.monotonic() - began
    found = cases_of(xml.read_text(), family.name)
    result = Result(family.name, family.what, round(seconds, 1), found, commit())
    xml.unlink()
    survived = len(result.cases) - len(lost_of([result]))
    _say(f"{family.name}: {survived} of {len(result.cases)} survived in {seconds:.0f} s")
    file = kept / f"{family.name}.json"
    if (only or cases) and file.exists():
        result = joined(_read(file), result)
    file.write_text(json.dumps(asdict(result), indent=1))


def run_all(families: Sequence[Family], kept: Path, only: str, cases: str) -> None:
    """Run families side by side; those that took longest the last time begin."""
    kept.mkdir(parents=True, exist_ok=True)
    took = {result.family: result.seconds for result in kept_results(kept)}
    order = sorted(families, key=lambda family: -took.get(family.name, 0.0))
    with ThreadPoolExecutor(LANES) as lanes:
        list(lanes.map(lambda family: run(family, kept, only, cases), order))


def joined(old: Result, new: Result) -> Result:
    """Put the newest result of each case in the place of its older one."""
    again = {(case.test, case.id): case for case in new.cases}
    known = {(case.test, case.id): case for case in old.cases}
    cases = list((known | again).values())
    commits = old.commit if old.commit == new.commit else f"{old.commit}, in part {new.commit}"
    return Result(new.family, new.what, round(old.seconds + new.seconds, 1), cases, commits)


def _read(file: Path) -> Result:
    found = json.loads(file.read_text())
    return Result(**found | {"cases": [Case(**case) for case in found["cases"]]})


def commit() -> str:
    """Name the commit whose code is run, and say when the checkout holds something else."""
    words = ["git", "-C", str(ROOT)]
    named = _told([*words, "rev-parse", "--short=12", "HEAD"])
    changed = _told([*words, "status", "--porcelain", "--", ".", f":!{PAGE.relative_to(ROOT)}"])
    return f"{named or 'unknown'}{' with uncommitted changes' if changed else ''}"


def _told(words: Sequence[str]) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()


def cases_of(xml: str, family: str = "") -> list[Case]:
    """Read what pytest wrote; a case that was skipped has not survived.

    A test without a fault is no case, unless it failed.
    """
    found: dict[tuple[str, str], Case] = {}
    for element in ET.fromstring(xml).iter("testcase"):  # noqa: S314 - our own
        case = _case(element)
        before = found.get((case.test, case.id))  # What fails in the end is told once more.
        if before is None or before.outcome == SURVIVED:
            found[case.test, case.id] = case
    return [
        case
        for case in found.values()
        if not family or case.outcome != SURVIVED or is_case(family, case.test, case.faults)
    ]


def _case(found: ET.Element) -> Case:
    name, place = found.get("name", ""), found.get("classname", "").replace(".", "/")
    spoiled = any(found.find(tag) is not None for tag in ("failure", "error", "skipped"))
    said = {one.get("name"): one.get("value", "") for one in found.iter("property")}
    return Case(
        id=name.partition("[")[2].removesuffix("]") if "[" in name else "",
        test=f"{place}.py::{name.partition('[')[0]}",
        outcome=FAILED if spoiled else SURVIVED,
        seconds=round(float(found.get("time", "0")), 2),
        documented=str(said.get(DOCUMENTED, "")),
        faults=int(said.get(FAULTS) or 0),
        servers=str(said.get(SERVERS, "")),
    )


def kept_results(kept: Path) -> list[Result]:
    """Read the results of all families that were run, in their order."""
    files = [kept / f"{family.name}.json" for family in FAMILIES]
    return [_read(file) for file in files if file.exists()]


def machine(note: str) -> Machine:
    """Say on what it ran."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return Machine(
        cores=os.cpu_count() or 0,
        memory_gib=round(memory),
        system=f"{platform.system()} {platform.machine()}",
        python=platform.python_version(),
        day=time.strftime("%Y-%m-%d", time.gmtime()),
        note=note,
    )


def main() -> int:
    """Run families and write the page; exit 1 when a case did not survive."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    names = [family.name for family in FAMILIES]
    parser.add_argument("families", nargs="*", metavar="FAMILY", help=", ".join(names))
    parser.add_argument("--only", default="", metavar="WORD", help="files with this word only")
    parser.add_argument("-k", default="", dest="cases", metavar="WORDS", help="as of pytest")
    parser.add_argument("--kept", type=Path, default=KEPT, help="where results are kept")
    parser.add_argument("--note", default="", help="one more sentence about the machine")
    parser.add_argument("--render", action="store_true", help="run nothing, write the page")
    given = parser.parse_args()
    if unknown := set(given.families) - set(names):
        parser.error(f"no family {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    chosen = [one for one in FAMILIES if not given.families or one.name in given.families]
    began = time.monotonic()
    if not given.render:
        run_all(chosen, given.kept, given.only, given.cases)
    minutes = (time.monotonic() - began) / 60
    results = kept_results(given.kept)
    whole = not (given.families or given.only or given.cases or given.render)
    together = f"{LANES} families ran side by side; all of it took {minutes:.0f} minutes."
    names = [family.name for family in FAMILIES]
    about = machine(given.note or (together if whole else ""))
    PAGE.write_text(render(results, about, names))
    lost = lost_of(results)
    total = sum(len(result.cases) for result in results)
    _say(f"{total - len(lost)} of {total} cases survived; {minutes:.0f} minutes; see {PAGE}")
    for case in lost:
        _say(f"  {case.test}[{case.id}]")
    return 1 if lost else 0


def lost_of(results: Sequence[Result]) -> list[Case]:
    """List the cases that did not survive."""
    return [case for result in results for case in result.cases if case.outcome != SURVIVED]


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
