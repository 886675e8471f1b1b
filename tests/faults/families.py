"""The families of faults, and where the cases of each are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


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
            "tests/embedded/test_openers.py",
            "tests/protocol/test_publication_races.py",
        ),
        settings={"PERAGO_RACE_ROUNDS": "50"},
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
            "tests/transfer/test_cache_root.py",
            "tests/transfer/test_filling.py",
            "tests/spark/test_scrub.py",
        ),
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
