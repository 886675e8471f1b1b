"""The families of faults, and where the cases of each are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

FAULTS: Final = "faults"
"""The property by which a test says how many faults were injected in it."""
SERVERS: Final = "servers"
"""The property that names the real servers a test used."""
REAL: Final = {
    "lakefs_server": "lakeFS",
    "lakefs_s3_server": "lakeFS",
    "lakefs_on_postgres": "lakeFS",
    "mortal_lakefs": "lakeFS",
    "conductor_server": "Conductor",
    "mortal_conductor": "Conductor",
}
"""Which fixture stands for which server: what a case used is read from its fixtures."""


@dataclass(frozen=True)
class Family:
    """Cases that belong together; ``jobs`` says in how many processes they are run."""

    name: str
    what: str
    paths: tuple[str, ...]
    jobs: int = 0
    settings: Mapping[str, str] = field(default_factory=dict)


FAMILIES = (
    Family(
        "kill",
        "kill -9 of executor and supervisor at every point of every path, on real servers",
        (
            "tests/faults/test_kills.py",
            "tests/faults/test_kills_at_calls.py",
            "tests/worker/test_kill.py",
            "tests/faults/test_kill_and_resume.py",
            "tests/broker/test_kill_and_resume.py",
            "tests/embedded/test_kill.py",
        ),
    ),
    Family(
        "network",
        "every call: refused, reset, answer lost, hang, 500, 503, 429, truncated, dripping",
        (
            "tests/faults/test_network.py",
            "tests/conductor/test_faults.py",
            "tests/lakefs/test_lost_answers.py",
            "tests/lakefs/test_hard_lost_answers.py",
            "tests/lakefs/test_transfer.py",
            "tests/lakefs/test_bounded.py",
        ),
    ),
    Family(
        "delayed",
        "a merge or reset held on the way and let go after the next attempt has published",
        ("tests/faults/test_delayed.py",),
    ),
    Family(
        "races",
        "2 to 16 racers on a real server; twins; all interleavings of two publishers",
        (
            "tests/lakefs/test_hard_races.py",
            "tests/embedded/test_races.py",
            "tests/protocol/test_publication_races.py",
        ),
        settings={"PERAGO_RACE_ROUNDS": "50"},
    ),
    Family(
        "kill-postgres",
        "kill -9 of executor and supervisor, while lakeFS keeps its metadata in PostgreSQL",
        ("tests/faults/test_kills.py", "tests/faults/test_kills_at_calls.py"),
        settings={"PERAGO_TEST_LAKEFS_KV": "postgres"},
    ),
    Family(
        "races-postgres",
        "2 to 16 racers on a lakeFS that keeps its metadata in PostgreSQL",
        ("tests/lakefs/test_hard_races.py",),
        settings={"PERAGO_RACE_ROUNDS": "10", "PERAGO_TEST_LAKEFS_KV": "postgres"},
    ),
    Family(
        "pause",
        "SIGSTOP of the whole worker past the response timeout at every point, then SIGCONT",
        ("tests/faults/test_pauses.py", "tests/worker/test_stale.py"),
    ),
    Family(
        "servers",
        "lakeFS restarted at each step, fence gone, target protected, dirty, deleted; Conductor"
        " away at the report; workflows ended on the way",
        (
            "tests/faults/test_servers.py",
            "tests/lakefs/test_hard_fence.py",
            "tests/worker/test_operations.py",
        ),
    ),
    Family(
        "resources",
        "no space, no file handles, a root that cannot be written, no memory, a directory gone",
        ("tests/faults/test_resources.py", "tests/worker/test_bad_bodies.py"),
    ),
    Family(
        "files",
        "hostile local files: links, pipes, devices, files that change, names, depth, numbers",
        (
            "tests/workspace/test_scan.py",
            "tests/workspace/test_rooms.py",
            "tests/workspace/test_sweeper.py",
        ),
        jobs=2,
    ),
    Family(
        "power",
        "the embedded store after a power cut at every request to the disk: what was not synced is"
        " gone, torn, or there without the rest",
        ("tests/power/test_power.py",),
        jobs=2,
    ),
    Family("names", "hostile object names", ("tests/lakefs/test_hostile_names.py",)),
    Family(
        "spark",
        "executors, JVMs and attempts killed while Spark writes; save modes; leftovers",
        (
            "tests/faults/test_spark_kills.py",
            "tests/spark/test_direct_killed.py",
            "tests/spark/test_direct_cluster.py",
            "tests/spark/test_direct.py",
        ),
    ),
    Family(
        "model",
        "the publication core over all small histories, and state machines on the stores",
        ("tests/model", "tests/protocol/test_publication_histories.py"),
        settings={"PERAGO_MODEL_FULL": "1", "PERAGO_MACHINE_EXAMPLES": "60"},
    ),
    Family("secrets", "keys in logs, errors, outputs", ("tests/lakefs/test_secrets.py",)),
)


def is_rig(path: Path) -> bool:
    """Tell whether every test of a file has to inject a fault: those of the rig itself."""
    root = Path(__file__).parents[2]
    rig = {path for family in FAMILIES for path in family.paths if path.startswith("tests/faults/")}
    return path.is_relative_to(root) and path.relative_to(root).as_posix() in rig
