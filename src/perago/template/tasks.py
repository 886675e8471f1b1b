"""Two tasks on a directory of texts: count the words, then tell the most frequent ones."""

from __future__ import annotations

import csv
import re
from collections import Counter
from pathlib import Path

from pydantic import BaseModel, Field

from perago import RetryPolicy, TaskControls, WorkspaceSpec, require_file, require_glob, task

QUICK = TaskControls(retry=RetryPolicy(count=1, delay_seconds=2))


class CountParams(BaseModel):
    """Short words say little."""

    min_length: int = Field(default=4, ge=1)


class Counted(BaseModel):
    """What was read."""

    files: int
    words: int


class TopParams(BaseModel):
    """How many words to tell."""

    top: int = Field(default=5, ge=1)


class Top(BaseModel):
    """The most frequent words, most frequent first."""

    words: list[str]


@task(
    name="count_words",
    owner_email="you@example.com",
    workspace=WorkspaceSpec(pre=[require_glob("*.txt")], post=[require_file("counts.csv")]),
    controls=QUICK,
)
def count_words(workspace: Path, params: CountParams) -> Counted:
    """Count the words of every text into one table."""
    texts = sorted(workspace.glob("*.txt"))
    counts: Counter[str] = Counter()
    for text in texts:
        words = re.findall(r"\w+", text.read_text().lower())
        counts.update(word for word in words if len(word) >= params.min_length)
    with (workspace / "counts.csv").open("w", newline="") as table:
        rows = csv.writer(table)
        rows.writerow(["word", "count"])
        for word in sorted(counts, key=lambda word: (-counts[word], word)):
            rows.writerow([word, counts[word]])
    return Counted(files=len(texts), words=counts.total())


@task(
    name="top_words",
    owner_email="you@example.com",
    workspace=WorkspaceSpec(pre=[require_file("counts.csv")], read_only=True),
    controls=QUICK,
)
def top_words(workspace: Path, params: TopParams) -> Top:
    """Tell the most frequent words; a read-only task publishes nothing."""
    with (workspace / "counts.csv").open(newline="") as table:
        rows = list(csv.DictReader(table))
    return Top(words=[row["word"] for row in rows[: params.top]])
