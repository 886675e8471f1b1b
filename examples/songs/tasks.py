"""The two steps in Python: one writes down what a machine heard, one counts words with Spark."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from perago import RetryPolicy, TaskControls, WorkspaceSpec, forbid_glob, require_glob, task
from perago.data import require_not_null, require_rows
from perago.spark import SparkSpec

OWNER = "songs@example.com"
QUICK = TaskControls(retry=RetryPolicy(count=2, delay_seconds=1))
HEARD = {
    "harbour": "the  lamps are lit along the key \nthe boats come home across the see\n",
    "mountain": "the snow lies deep upon the peek\nno bird has song for all the week \n",
}
"""With the mistakes that a machine makes: it knows how a word sounds, not what it means."""


class Songs(BaseModel):
    """Which songs to listen to; all of them when left out."""

    names: list[str] = sorted(HEARD)


class Heard(BaseModel):
    """What was written down."""

    songs: int


class Counted(BaseModel):
    """What was counted."""

    words: int
    different: int


@task(
    name="songs_hear",
    owner_email=OWNER,
    workspace=WorkspaceSpec(post=[require_glob("heard/*.txt", min_count=1)]),
    controls=QUICK,
)
def hear(workspace: Path, params: Songs) -> Heard:
    """Write down what was heard, one file for each song."""
    (workspace / "heard").mkdir(exist_ok=True)
    for name in params.names:
        (workspace / "heard" / f"{name}.txt").write_text(HEARD[name])
    return Heard(songs=len(params.names))


@task(
    name="songs_count",
    owner_email=OWNER,
    workspace=WorkspaceSpec(
        pre=[require_glob("lyrics/*.txt", min_count=1), forbid_glob("doubts.txt")],
        post=[require_rows("words", min=1), require_not_null("words", "word", "times")],
    ),
    controls=QUICK,
    spark=SparkSpec(
        conf={"spark.sql.shuffle.partitions": "1", "spark.ui.enabled": "false"}, master="local[1]"
    ),
)
def count(spark: SparkSession, workspace: Path, params: Songs) -> Counted:
    """Count how often each word is sung, as a table."""
    lines = spark.read.text([str(workspace / "lyrics" / f"{name}.txt") for name in params.names])
    words = lines.select(F.explode(F.split(F.lower("value"), "[^a-z]+")).alias("word"))
    table = words.where("word <> ''").groupBy("word").agg(F.count("*").alias("times"))
    table.orderBy("word").coalesce(1).write.mode("overwrite").parquet(str(workspace / "words"))
    written = spark.read.parquet(str(workspace / "words"))
    (found,) = written.agg(F.sum("times").alias("words"), F.count("*").alias("n")).collect()
    return Counted(words=found["words"], different=found["n"])
