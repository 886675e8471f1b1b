"""Three rings of tests: quick ones, one case of each class on real servers and Spark, and all.

``quick`` needs no server, no JVM and no build. ``rest`` is what ``classes`` leaves out of ``all``.

A class of cases is one value of one parameter: in ``classes`` each value of each parameter is in at
least one case ("each choice" coverage), in ``all`` every combination is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

RINGS: Final = ("quick", "classes", "rest", "all")
SERVERS: Final = frozenset(
    {
        *("lakefs_server", "lakefs_s3_server", "lakefs_on_postgres", "mortal_lakefs"),
        *("conductor_server", "mortal_conductor", "postgres", "lakefs"),
        *("jvm", "standalone_master", "connect_server", "guarded_master"),
    }
)
"""Fixtures that start a server or a JVM."""
SLOW: Final = (
    *("tests/audit", "tests/bench", "tests/deploy", "tests/dev", "tests/faults", "tests/newcomer"),
    *("tests/nodes", "tests/power", "tests/soak", "tests/spark", "tests/typing"),
    *("tests/docs/test_consoles.py", "tests/docs/test_examples.py", "tests/notebook"),
    *("tests/cli/test_help.py", "tests/cli/test_commands.py", "tests/cli/test_width.py"),
    *("tests/cli/test_printing.py", "tests/cli/test_without_extras.py", "tests/cli/test_report.py"),
    *("tests/cli/test_completion.py", "tests/cli/test_resume.py", "tests/cli/test_steering.py"),
    *("tests/observe/test_serving.py", "tests/observe/test_tracing.py"),
    *("tests/broker/test_kill_and_resume.py", "tests/process/test_channel.py"),
    *("tests/embedded/test_big_files.py", "tests/embedded/test_kill.py"),
    *("tests/human/test_kills.py", "tests/human/test_commands.py", "tests/human/test_songs.py"),
    *("tests/model/test_machine.py", "tests/model/test_fences.py", "tests/ledger"),
    *("tests/ui/test_browser.py", "tests/ui/test_pages.py"),
)
"""Where tests start servers, JVMs or builds of their own, or take long for another reason."""
LATER: Final = (
    "tests/soak/test_soak.py",
    "tests/dev/test_real_conductor.py",
    "tests/docs/test_consoles.py::test_the_consoles_of_pages[run-the-example-on-servers]",
    "tests/docs/test_consoles.py::test_the_consoles_of_pages[use-spark]",
    "tests/cli/test_help.py::test_every_example_works_when_pasted",
    "tests/faults/test_kill_and_resume.py",
    "tests/human/test_kills.py::test_q11_a_submit_that_is_killed_anywhere",
    "tests/human/test_songs.py::test_the_example_with_one_command",
    "tests/human/test_on_servers.py::test_q11_the_network_fails_at_every_call_of_a_submit[reset",
    "tests/human/test_on_servers.py::test_q11_the_network_fails_at_every_call_of_a_submit[500",
    "tests/conform/test_conform.py::test_a_worker_of_the_standard_library_keeps_the_protocol_in_all",
    "tests/conform/test_conform.py::test_peragos_own_worker_keeps_the_protocol",
    "tests/conform/test_conform.py::test_a_broken_worker_fails_for_the_right_reason[LettingThe",
    "tests/conform/test_conform.py::test_a_broken_worker_fails_for_the_right_reason[LookingAt",
    "tests/conform/test_conform.py::test_a_broken_worker_fails_for_the_right_reason[NotAsking",
    "tests/conform/test_conform.py::test_a_broken_worker_fails_for_the_right_reason[ReadingOne",
    "tests/conform/test_conform.py::test_a_broken_worker_fails_for_the_right_reason[ReportingWhat",
    "tests/conform/test_conform.py::test_a_broken_worker_fails_for_the_right_reason[TakingTwins",
    "tests/spark/test_cluster.py::test_x4_the_same_task_passes_unchanged_and_is_published[local-",
    "tests/spark/test_cluster.py::test_x4_the_same_task_passes_unchanged_and_is_published[connect",
    "tests/spark/test_direct_cluster.py::test_x4_a_direct_write_on_a_cluster_survives",
    "tests/spark/test_direct_cluster.py::test_x4_a_task_that_runs_twice_is_written_once",
)
"""Tests of minutes: their rules have other cases in ``classes``."""
STORES: Final = ("lakefs", "postgres", "conductor")
"""What the value of a parameter names that asks for a server."""

_LONGEST: Final = 200
Values = frozenset[tuple[str, str]]


def is_quick(path: str, fixtures: Iterable[str], parameters: Iterable[str] = ()) -> bool:
    """Tell whether a test needs no server, no JVM and no build, and does not take long."""
    served = any(store in value.lower() for value in parameters for store in STORES)
    return not path.startswith(SLOW) and SERVERS.isdisjoint(fixtures) and not served


def is_later(test: str) -> bool:
    """Tell whether a test, by its id, waits until the others have passed."""
    return test.startswith(LATER)


def values_of(parameters: Mapping[str, object]) -> Values:
    """Name the values of a case; one named ``family/place/fault`` has several."""
    return frozenset(
        (f"{name} {position}", part)
        for name, value in parameters.items()
        for position, part in enumerate(_shown(value).split("/"))
    )


def _shown(value: object) -> str:
    """Show what a value is; of one that is huge or nested without end, how it is kept in memory."""
    try:
        return repr(value)[:_LONGEST] if not isinstance(value, str) else value[:_LONGEST]
    except (RecursionError, ValueError):
        return f"{type(value).__name__} {id(value)}"


def each_choice(cases: Sequence[Values]) -> list[int]:
    """Choose cases, by their numbers, so that every value of every parameter is in one of them."""
    missing = set[tuple[str, str]]().union(*cases)
    chosen: list[int] = []
    while missing:
        best = max(range(len(cases)), key=lambda number: len(cases[number] & missing))
        chosen.append(best)
        missing -= cases[best]
    return sorted(chosen) or list(range(min(1, len(cases))))
