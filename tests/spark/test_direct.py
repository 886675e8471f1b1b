"""Direct workspaces on a real lakeFS: nothing downloaded, the same fences, only data published."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from perago import TaskDefinitionError, WorkspaceSpec, require_file, task
from perago.dev import LakeFSEndpoint
from perago.protocol.values import Status
from perago.settings import SparkSettings
from perago.spark import SparkSpec, SparkWorkspace
from perago.spark.direct import need_of
from perago.spark.jvm import JVM
from perago.spark.session import AttemptSession
from perago.testing import FailAt, Fault, Lab, MoveHeadAt, Run, StaleAt
from tests.lakefs_lab import ArrangedLakeFS, new_name
from tests.spark import direct_tasks as tasks
from tests.spark.tasks import OWNER, Params, Rows


@pytest.fixture(scope="module")
def server(lakefs_server: LakeFSEndpoint) -> Iterator[LakeFSEndpoint]:
    """Use one JVM for all tests here, and leave none to those that need another."""
    session = AttemptSession(need_of(tasks.DIRECT.need, SparkSettings()), "x", SparkSettings())
    session.open().range(10).groupBy("id").count().collect()
    session.close()
    yield lakefs_server
    JVM.stop()


@pytest.fixture
def lab(server: LakeFSEndpoint, tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(
        tmp_path / "lab", store=ArrangedLakeFS(server, tmp_path / "worker"), repository=new_name()
    )
    lab.commit({"other/kept.txt": "kept"})
    yield lab
    lab.close()


def given(lab: Lab, rows: int = 12) -> Run:
    """Have a table of three partitions."""
    run = lab.run(tasks.write, {"rows": rows})
    assert run.completed, run.reason
    return run


def staging_branches(lab: Lab) -> list[str]:
    branches = [branch.name for branch in lab.store.branches(lab.repository, hidden=True)]
    return [name for name in branches if name.startswith("perago-staging-")]


def rows(lab: Lab, path: str = tasks.TABLE) -> int:
    return int(lab.run(tasks.look, {"path": path}).result["rows"])


# --- end to end ---------------------------------------------------------------------------------


def test_x2_a_table_is_written_read_and_published_and_nothing_is_downloaded(lab: Lab) -> None:
    first = given(lab)
    assert first.result["before"] == 0
    assert first.result["after"] == 12
    assert first.result["source"].startswith(f"s3a://{lab.repository}/perago-staging-")
    second = lab.run(tasks.write, {"rows": 5, "mode": "append"})
    assert second.completed, second.reason
    assert (second.result["before"], second.result["after"]) == (12, 17)
    assert rows(lab) == 17
    assert "downloaded" not in second.events
    assert "uploaded" not in second.events
    # P1, and data only: neither markers nor _SUCCESS.
    assert second.history[0].parents == (second.history[1].id,)
    names = set(second.files) - {"other/kept.txt"}
    assert {name.rpartition(".")[2] for name in names} == {"parquet"}
    assert {name.split("/")[3] for name in names} == {"k=0", "k=1", "k=2"}
    assert staging_branches(lab) == []


def test_x3_a_second_attempt_uses_the_same_jvm(lab: Lab) -> None:
    given(lab)
    jvm = JVM.pid
    assert rows(lab) == 12
    assert JVM.pid == jvm is not None


def test_x2_the_next_local_attempt_reads_what_a_direct_one_published(lab: Lab) -> None:
    """The listing of C is not derived from what this machine knows of A."""
    given(lab)
    direct = tasks.DIRECT.need
    assert direct.direct
    listed = {info.key for info in lab.store.listing(lab.repository, lab.head.id, "lake/")}
    fresh = ArrangedLakeFS(lab.store._endpoint, lab.attempt_dirs.parent / "fresh")  # type: ignore[attr-defined]  # noqa: SLF001 - a second machine
    assert listed == {info.key for info in fresh.listing(lab.repository, lab.head.id, "lake/")}
    assert len(listed) > 2
    fresh.close()


# --- save modes ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"mode": "append", "rows": 6}, 18),
        ({"mode": "overwrite", "rows": 6}, 6),
        ({"mode": "overwrite", "rows": 6, "where": "k = 1"}, 2),
        ({"mode": "overwrite", "rows": 6, "where": "k = 1", "dynamic": True}, 10),
        ({"mode": "overwrite", "rows": 6, "where": "k = 9", "dynamic": True}, 12),
        ({"mode": "ignore", "rows": 6}, 12),
    ],
)
def test_x2_save_modes_do_what_they_say(lab: Lab, params: dict[str, object], expected: int) -> None:
    before = given(lab)
    run = lab.run(tasks.write, params)
    assert run.completed, run.reason
    assert run.result["after"] == expected
    assert rows(lab) == expected
    if params["mode"] == "ignore" or params.get("where") == "k = 9":
        assert run.ref == before.ref  # N1: nothing changed, nothing is published.
    if params.get("dynamic"):
        kept = [name for name in before.files if "k=1" not in name]
        assert {name: before.files[name] for name in kept}.items() <= run.files.items()


@pytest.mark.parametrize("kind", ["csv", "json", "orc"])
def test_x2_every_format_takes_the_same_road(lab: Lab, kind: str) -> None:
    run = lab.run(tasks.write, {"rows": 7, "format": kind, "path": "t"})
    assert run.completed, run.reason
    assert run.result["after"] == 7


def test_x2_a_table_that_is_there_is_an_error_by_default(lab: Lab) -> None:
    before = given(lab)
    run = lab.run(tasks.write, {"mode": "error"})
    assert run.status is Status.FAILED
    assert "there is something already" in run.reason
    assert lab.head.id == before.ref


def test_x2_a_table_can_be_replaced_by_what_is_made_of_it(lab: Lab) -> None:
    given(lab)
    run = lab.run(tasks.rewrite)
    assert run.completed, run.reason
    assert run.result | {"source": ""} == {
        "before": 12, "after": 7, "added": 0, "removed": 0, "source": "",
    }  # fmt: skip
    assert rows(lab) == 7


def test_x2_overwriting_what_the_attempt_itself_wrote_and_reads_is_refused(lab: Lab) -> None:
    before = given(lab)
    run = lab.run(tasks.rewrite, {"where": "twice"})
    assert run.status is Status.FAILED
    assert "reads the same files" in run.reason
    assert lab.head.id == before.ref
    assert staging_branches(lab) == []


# --- what is published ----------------------------------------------------------------------------


def test_s2_leftovers_are_scrubbed_from_the_branch(lab: Lab) -> None:
    run = lab.run(tasks.litter, {"rows": 3})
    assert run.completed, run.reason
    assert run.result == {"rows": 1}
    raw = {info.key for info in lab.store.listing(lab.repository, run.ref or "", "")}
    assert {key for key in raw if not key.endswith(".parquet")} == {"other/kept.txt"}
    assert len(raw) == 2


def test_n1_leftovers_alone_are_no_change(lab: Lab) -> None:
    head = lab.head.id
    run = lab.run(tasks.litter, {"rows": 0})
    assert run.completed, run.reason
    assert run.ref == lab.head.id == head
    assert staging_branches(lab) == []


def test_n1_an_attempt_that_only_reads_makes_no_commit(lab: Lab) -> None:
    before = given(lab)
    run = lab.run(tasks.idle)
    assert run.completed, run.reason
    assert run.result == {"rows": 12}
    assert run.ref == before.ref
    assert "committed" not in run.events
    assert staging_branches(lab) == []


def test_step_7_read_only_gets_no_branch_and_cannot_write(lab: Lab) -> None:
    given(lab)
    run = lab.run(tasks.look)
    assert run.result == {"rows": 12}
    assert "branch created" not in run.events
    refused = lab.run(tasks.look, {"mode": "append"})
    assert refused.status is Status.FAILED
    assert "the task is read-only" in refused.reason


def test_s3_hooks_of_the_server_are_not_for_tasks(lab: Lab) -> None:
    head = lab.head.id
    run = lab.run(tasks.actions)
    assert run.status is Status.FAILED
    assert "_lakefs_actions" in run.reason
    assert lab.head.id == head


def test_s2_nothing_outside_the_prefix_is_touched(lab: Lab) -> None:
    head = lab.head.id
    run = lab.run(tasks.outside)
    assert run.status is Status.FAILED
    assert "not for this task to write" in run.reason
    assert lab.head.id == head


@pytest.mark.parametrize("path", ["Bronze/other", "bronze/Numbers", "bronze/numbers/K=1/x"])
def test_d2_a_table_that_nobody_could_download_is_not_committed(lab: Lab, path: str) -> None:
    """Nothing is listed of a direct workspace but the directories that get new files."""
    before = given(lab)
    run = lab.run(tasks.beside, {"path": path})
    assert run.status is Status.FAILED
    assert "cannot be downloaded beside" in run.reason
    assert "committed" not in run.events
    assert lab.head.id == before.ref
    assert staging_branches(lab) == []


def test_s2_a_table_right_below_the_prefix_is_replaced_too(lab: Lab) -> None:
    """Hadoop then makes a marker of the prefix itself."""
    for rows_written in (9, 4):
        run = lab.run(tasks.write, {"rows": rows_written, "path": "t"})
        assert run.completed, run.reason
        assert run.result["after"] == rows_written
    raw = {info.key for info in lab.store.listing(lab.repository, lab.head.id, "")}
    assert {key for key in raw if not key.endswith(".parquet")} == {"other/kept.txt"}


def test_x5_guards_look_at_what_will_be_published(lab: Lab) -> None:
    before = given(lab)
    bad = lab.run(tasks.guarded, {"rows": 20, "mode": "bad"})
    assert bad.status is Status.FAILED
    assert "require_not_null" in bad.reason
    few = lab.run(tasks.guarded, {"rows": 9})
    assert "require_rows" in few.reason
    assert lab.head.id == before.ref
    good = lab.run(tasks.guarded, {"rows": 20})
    assert good.completed, good.reason
    assert "perago.data_guards" in good.history[0].metadata


# --- fences ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "faults",
    [
        [StaleAt("after attempt directory")],
        [StaleAt("after body")],
        [StaleAt("committed")],
        [MoveHeadAt("after body"), MoveHeadAt("after diff", {"foreign.txt": "again"})],
    ],
    ids=["before the branch", "before the commit", "before publish", "moved"],
)
def test_f2_a_stale_or_overtaken_attempt_publishes_nothing(lab: Lab, faults: list[Fault]) -> None:
    before = given(lab)
    run = lab.run(tasks.write, {"rows": 3, "mode": "append"}, faults=faults)
    assert run.status is Status.FAILED
    assert [name for name in lab.files(lab.head.id) if name.startswith("lake/")] == [
        name for name in before.files if name.startswith("lake/")
    ]
    assert staging_branches(lab) == []
    assert ("branch created" in run.events) == ("before body" in run.events)


def test_p2_a_retry_replaces_what_a_crashed_attempt_published(lab: Lab) -> None:
    given(lab)
    crashed = lab.run(tasks.write, {"rows": 6, "mode": "append"}, faults=[FailAt("after publish")])
    retried = crashed.retry()
    assert retried.completed, retried.reason
    assert len(retried.history) == 2
    assert rows(lab) == 18


# --- elsewhere ------------------------------------------------------------------------------------


def test_i7_keys_are_neither_on_a_command_line_nor_in_sparks_configuration(
    lab: Lab, server: LakeFSEndpoint
) -> None:
    given(lab)
    line = Path(f"/proc/{JVM.pid}/cmdline").read_bytes().decode()
    base = JVM._base  # noqa: SLF001 - what its UI and event log would show
    shown = str(base.sparkContext.getConf().getAll()) + str(base.conf.getAll)
    for secret in (server.secret, server.access_key_id):
        assert secret not in line
        assert secret not in shown


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (WorkspaceSpec(include=["a/**"]), "leave files out"),
        (WorkspaceSpec(fence="lineage"), "fence 'lineage'"),
        (WorkspaceSpec(post=[lambda path: None]), "a guard of your own"),
    ],
)
def test_t1_what_needs_files_is_refused_where_it_is_declared(
    spec: WorkspaceSpec, problem: str
) -> None:
    with pytest.raises(TaskDefinitionError, match=problem):

        @task(name="x", owner_email=OWNER, workspace=spec, spark=SparkSpec(workspace="direct"))
        def refused(workspace: SparkWorkspace, params: Params) -> Rows:
            return Rows(rows=0)


def test_t1_a_direct_workspace_is_no_path() -> None:
    with pytest.raises(TaskDefinitionError, match="has no directory"):

        @task(
            name="x",
            owner_email=OWNER,
            workspace=WorkspaceSpec(pre=[require_file("a")]),
            spark=SparkSpec(workspace="direct"),
        )
        def refused(spark: SparkSession, workspace: Path, params: Params) -> Rows:
            return Rows(rows=0)


def test_x2_without_a_gateway_the_same_task_runs_on_files(perago_lab: Lab) -> None:
    runs = [perago_lab.run(tasks.write, {"rows": rows, "mode": "append"}) for rows in (12, 5)]
    assert [run.reason for run in runs] == ["", ""]
    assert [run.result["after"] for run in runs] == [12, 17]
    assert all(run.result["source"].startswith("file:///") for run in runs)
    assert all("downloaded" in run.events for run in runs)
