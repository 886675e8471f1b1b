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
    inputs: tuple[str, ...] = ()
    """Files whose tests are given their fault: the input is it, and nothing is injected."""
    jobs: int = 0
    settings: Mapping[str, str] = field(default_factory=dict)


MODEL_TESTS = (
    "tests/model",
    "tests/protocol/test_publication_histories.py",
    "tests/lifecycle/test_completed_step.py",
)
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
        "kill-program",
        "kill -9 of executor and supervisor at every point, while a program is the body",
        ("tests/faults/test_kills.py", "tests/faults/test_kills_at_calls.py"),
        settings={"PERAGO_TEST_NODE": "program"},
    ),
    Family(
        "pause-program",
        "SIGSTOP of the whole worker past the response timeout, while a program is the body",
        ("tests/faults/test_pauses.py",),
        settings={"PERAGO_TEST_NODE": "program"},
    ),
    Family(
        "network-program",
        "every call of an attempt fails in every way, while a program is the body",
        ("tests/faults/test_network.py",),
        settings={"PERAGO_TEST_NODE": "program"},
    ),
    Family(
        "kill-typescript",
        "kill -9 of executor and supervisor at every point, while TypeScript is the body",
        ("tests/faults/test_kills.py", "tests/faults/test_kills_at_calls.py"),
        settings={"PERAGO_TEST_NODE": "typescript"},
    ),
    Family(
        "pause-typescript",
        "SIGSTOP of the whole worker past the response timeout, while TypeScript is the body",
        ("tests/faults/test_pauses.py",),
        settings={"PERAGO_TEST_NODE": "typescript"},
    ),
    Family(
        "network-typescript",
        "every call of an attempt fails in every way, while TypeScript is the body",
        ("tests/faults/test_network.py",),
        settings={"PERAGO_TEST_NODE": "typescript"},
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
            "tests/workspace/test_attempt_dirs.py",
            "tests/workspace/test_sweeper.py",
            "tests/filesystem/test_trees.py",
            "tests/workspace/test_oracle.py",
            "tests/lifecycle/test_places.py",
            "tests/transfer/test_cache_root.py",
            "tests/transfer/test_filling.py",
            "tests/spark/test_scrub.py",
        ),
        inputs=("tests/workspace",),
        jobs=2,
    ),
    Family(
        "power",
        "the embedded store after a power cut at every request to the disk: what was not synced is"
        " gone, torn, or there without the rest",
        ("tests/power/test_power.py",),
        jobs=2,
    ),
    Family(
        "bodies",
        "what an author's code can do: links, mounts, mmap, writers left behind, descriptors,"
        " signals, limits, odd results, a patched interpreter; on five file systems",
        ("tests/faults/test_bodies.py",),
        jobs=2,
    ),
    Family(
        "names",
        "hostile object names",
        ("tests/lakefs/test_hostile_names.py",),
        inputs=("tests/lakefs/test_hostile_names.py",),
    ),
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
        MODEL_TESTS,
        inputs=MODEL_TESTS,
        settings={"PERAGO_MODEL_FULL": "1", "PERAGO_MACHINE_EXAMPLES": "60"},
    ),
    Family(
        "secrets",
        "keys in logs, errors, outputs",
        ("tests/lakefs/test_secrets.py",),
        inputs=("tests/lakefs/test_secrets.py",),
    ),
)
NO_FAULTS = frozenset(
    {
        "test_two_publishers_of_five_turns_have_252_orders",
        "test_the_page_counts_the_orders_that_break_something",
        "test_every_history_of_the_page_has_a_title_that_is_known",
        "test_f3_k1_k2_k3_the_page_tells_the_shortest_history",
        "test_the_enumeration_holds_every_shape",
        "test_s2_the_directory_is_the_wanted_state",
        "test_an_empty_workspace_is_an_empty_manifest",
        "test_t7_empty_directories_modes_and_times_are_not_content",
        "test_d3_new_files_are_hashed_as_the_store_does",
        "test_d3_a_known_file_is_compared_in_the_hash_it_came_with",
        "test_d3_a_content_listed_by_another_tag_is_the_same_while_its_hash_is",
        "test_s2_an_untouched_file_is_not_read",
        "test_step_2_the_name_holds_task_and_execution",
        "test_step_2_the_marker_says_who_owns_it_and_which_attempt",
        "test_step_2_the_marker_stands_beside_the_workspace_not_in_it",
        "test_two_executions_of_one_attempt_have_two_rooms",
        "test_step_14_leaving_removes_everything",
        "test_w5_a_dry_run_removes_nothing",
        "test_w5_an_absent_root_has_no_orphans",
        "test_i7_the_secret_travels_only_as_authorization",
    }
)
"""Tests among the inputs in which nothing goes wrong: they are run, and are no cases."""


def is_case(family: str, test: str, faults: int) -> bool:
    """Tell whether a test is a fault case: one was injected in it, or it was given one."""
    path, _, name = test.partition("::")
    given = next((one.inputs for one in FAMILIES if one.name == family), ())
    return faults > 0 or (path.startswith(given) and bool(given) and name not in NO_FAULTS)


def is_rig(path: Path) -> bool:
    """Tell whether every test of a file has to inject a fault: those of the rig itself."""
    root = Path(__file__).parents[2]
    rig = {path for family in FAMILIES for path in family.paths if path.startswith("tests/faults/")}
    return path.is_relative_to(root) and path.relative_to(root).as_posix() in rig
