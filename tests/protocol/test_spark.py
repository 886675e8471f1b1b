"""What is decided about Spark before it starts (X2, X3, X4), and what it leaves behind."""

from __future__ import annotations

import pytest

from perago.protocol.spark import (
    SparkNeed,
    addresses,
    is_left_by_spark,
    is_leftover,
    is_local,
    needs_secret,
    open_to_strangers,
    protection,
    refuse_local_workspace,
    refuse_master,
    shown,
    split,
)


@pytest.mark.parametrize(
    ("master", "local"),
    [
        ("local", True),
        ("local[*]", True),
        ("local[4]", True),
        ("local[2,3]", True),
        ("local-cluster[2,1,1024]", True),
        ("spark://host:7077", False),
        ("yarn", False),
        ("k8s://https://host", False),
        ("sc://host:15002", False),
    ],
)
def test_x4_masters_are_known_and_x2_only_those_here_see_the_directory(
    master: str, local: bool
) -> None:
    assert refuse_master(master) is None
    assert is_local(master) is local
    assert (refuse_local_workspace(master, shared_root=False) is None) is local
    assert refuse_local_workspace(master, shared_root=True) is None


@pytest.mark.parametrize("master", ["", "lokal[*]", "http://x", "spark://", "local[*] x"])
def test_x4_other_masters_are_refused(master: str) -> None:
    assert refuse_master(master) == "is not a master Spark knows"


def test_x3_what_a_session_can_have_for_itself_needs_no_other_jvm() -> None:
    conf = {
        "spark.sql.shuffle.partitions": "4",
        "spark.driver.memory": "2g",
        "spark.sql.extensions": "x",
        "spark.sql.catalog.a": "y",
    }
    application, session = split(SparkNeed("local[2]", conf, ("g:a:1",)))
    assert session == {"spark.sql.shuffle.partitions": "4"}
    assert {key for key, _ in application.conf} == conf.keys() - session.keys()
    assert application.master == "local[2]"
    other, _ = split(
        SparkNeed("local[2]", {**conf, "spark.sql.shuffle.partitions": "9"}, ("g:a:1",))
    )
    assert other == application
    assert split(SparkNeed(conf={"spark.master": "local[7]"}))[0].master == "local[7]"
    assert split(SparkNeed())[0].master == "local[*]"


def test_x4_the_task_speaks_before_the_worker() -> None:
    worker = SparkNeed("spark://h:1", {"spark.a": "1", "spark.b": "1"}, ("g:a:1",))
    task = SparkNeed(None, {"spark.b": "2"}, ("g:a:1", "g:b:1"))
    assert task.over(worker) == SparkNeed(
        "spark://h:1", {"spark.a": "1", "spark.b": "2"}, ("g:a:1", "g:b:1")
    )
    assert SparkNeed("local[1]").over(worker).master == "local[1]"


@pytest.mark.parametrize(
    "path",
    [
        "t/_SUCCESS",
        "_SUCCESS",
        "t/.part-0.parquet.crc",
        "t/_temporary/0/task/x",
        "t/.spark-staging-1f/k=1/x",
        "t/__magic_job-1/x",
    ],
)
def test_leftovers_are_known(path: str) -> None:
    assert is_leftover(path)


@pytest.mark.parametrize(
    "path",
    [
        *("t/part-0.parquet", "_SUCCESS/x", "t/a.crc", "my_temporary/x", "t/_metadata", ".x"),
        *("__magic_numbers.json", "__magic/x", "t/__magic_job-1", "_temporary", "_temporary-notes"),
        *(
            "_temporary/notes.txt",
            ".spark-staging.md",
            ".spark-staging-1",
            "t/_SUCCESS.txt",
            ".crc",
        ),
    ],
)
def test_data_is_no_leftover(path: str) -> None:
    assert not is_leftover(path)


def test_a_local_file_is_a_leftover_by_its_content_too() -> None:
    assert is_left_by_spark("t/.a.crc", b"crc\0\0\0\2\0")
    assert not is_left_by_spark("t/.a.crc", b"my notes")
    assert is_left_by_spark("t/_SUCCESS", b"")
    assert not is_left_by_spark("t/_SUCCESS", b"done by ")
    assert is_left_by_spark("t/_temporary/0/x", b"anything")


@pytest.mark.parametrize(
    ("master", "ships", "connect"),
    [
        ("local", False, False),
        ("local[*]", False, False),
        ("local[2,3]", False, False),
        ("local-cluster[2,1,1024]", True, False),
        ("spark://host:7077", True, False),
        ("yarn", True, False),
        ("k8s://https://host", True, False),
        ("sc://host", True, True),
    ],
)
def test_x4_code_is_shipped_wherever_functions_run_in_another_process(
    master: str, ships: bool, connect: bool
) -> None:
    application, _ = split(SparkNeed(master))
    assert application.ships_code is ships
    assert application.connect is connect


@pytest.mark.parametrize(
    ("master", "asked"),
    [
        ("spark://host:7077", (("host", 7077),)),
        ("spark://host", (("host", 7077),)),
        ("spark://a:1,b:2", (("a", 1), ("b", 2))),
        ("spark://[::1]:7078", (("::1", 7078),)),
        ("local[*]", ()),
        ("yarn", ()),
        ("sc://host:1", ()),
    ],
)
def test_x4_only_a_standalone_master_is_asked_whether_it_is_there(
    master: str, asked: tuple[tuple[str, int], ...]
) -> None:
    assert addresses(master) == asked


def test_i7_the_token_of_a_connect_server_is_not_shown() -> None:
    assert shown("sc://host:1/;use_ssl=true;token=secret") == "sc://host:1"
    assert shown("sc://host/;user_id=x") == "sc://host"
    assert shown("spark://host:7077") == "spark://host:7077"
    said = refuse_local_workspace("sc://host/;token=secret", shared_root=False)
    assert said is not None
    assert "secret" not in said


YES = {"spark.authenticate": "true"}


@pytest.mark.parametrize(
    ("master", "conf", "made", "open_"),
    [
        ("local[*]", {}, {}, False),
        ("local", {}, {}, False),
        ("sc://h:15002", {}, {}, False),
        ("yarn", {}, YES | {"spark.network.crypto.enabled": "true"}, False),
        ("k8s://https://h", {}, YES | {"spark.network.crypto.enabled": "true"}, False),
        ("local-cluster[1,1,600]", {}, YES | {"spark.network.crypto.enabled": "true"}, False),
        ("spark://h:7077", {}, {}, True),
        ("spark://h:7077", YES, {"spark.network.crypto.enabled": "true"}, False),
        ("yarn", {"spark.shuffle.service.enabled": "true"}, {}, True),
        ("yarn", {"spark.authenticate": "false"}, {}, True),
    ],
)
def test_strangers_are_kept_out_where_spark_can(
    master: str, conf: dict[str, str], made: dict[str, str], *, open_: bool
) -> None:
    assert protection(master, conf) == made
    assert (open_to_strangers(master, conf) is not None) == open_
    assert needs_secret(master, {**made, **conf}) == (master.startswith("local-cluster"))
