"""What a program costs beside a Python function that does the same: nothing, on one file."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from pydantic import BaseModel

from bench.comparison import Comparison, Fact, Options, Ratio, Work
from bench.places import temporary
from perago import WorkspaceSpec, task
from perago.testing import Lab
from tests.typescript.project import Package

COLD_MS, WARM_MS = 30.0, 3.0
_TIMES = 30
_SERVE = """
import json, os
attempts = os.fdopen(int(os.environ["PERAGO_ATTEMPTS"]))
answers = os.fdopen(int(os.environ["PERAGO_ANSWERS"]), "w", buffering=1)
for line in attempts:
    answers.write(json.dumps({"execution_id": json.loads(line)["execution_id"]}) + chr(10))
"""
_TYPESCRIPT = """
import { task } from "perago";
export const typescript = task(
  { name: "typescript", ownerEmail: "bench@example.com", workspace: { readOnly: true } },
  () => ({}),
);
"""
_TASK = """
[[task]]
name = "{name}"
owner_email = "bench@example.com"
command = {command}
serve = {serve}
[task.workspace]
read_only = true
"""


class Nothing(BaseModel):
    """Neither params nor a result."""


@task(name="function", owner_email="bench@example.com", workspace=WorkspaceSpec(read_only=True))
def function(workspace: Path, params: Nothing) -> Nothing:  # noqa: ARG001 - it does nothing
    """Do nothing."""
    return Nothing()


@contextmanager
def comparison(_: Options) -> Iterator[Comparison]:
    """Prepare one function, one program that is started each time, and two that serve."""
    with temporary() as root:
        (root / "serve.py").write_text(_SERVE)
        manifest = root / "tasks.toml"
        cold = _TASK.format(name="program", command='["true"]', serve="false")
        words = f'["{sys.executable}", "{{here}}/serve.py"]'
        manifest.write_text(cold + _TASK.format(name="server", command=words, serve="true"))
        project = Package.at(root / "package").project(root / "project")
        declared = project.declare_with_node(_TYPESCRIPT)
        lab = Lab(root / "lab")
        lab.commit({"a.txt": "a"})

        def attempt(chosen: str | Callable[..., Any]) -> Work:
            def work() -> None:
                if not (run := lab.run(chosen)).completed:
                    raise SystemExit(run.reason)

            return work

        works = {
            "Python function": attempt(function),
            "program": attempt(f"{manifest}:program"),
            "program that serves": attempt(f"{manifest}:server"),
            "TypeScript": attempt(f"{declared}:typescript"),
        }
        yield Comparison(
            name="nodes",
            what="an attempt that does nothing, one file, embedded store",
            contenders=works,
            least=_TIMES,
            ratios=[
                Ratio("nodes: program / function", "program", "Python function"),
                Ratio("nodes: serving / function", "program that serves", "Python function"),
                Ratio("nodes: TypeScript / function", "TypeScript", "Python function"),
            ],
            facts=lambda: _facts(works),
        )
        lab.close()


def _facts(works: dict[str, Work]) -> list[Fact]:
    """Take the medians of what each takes beyond the function, one after the other in turn."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(_TIMES):
        for name, work in works.items():
            began = time.perf_counter()
            work()
            seconds[name].append(time.perf_counter() - began)
    took = {name: 1000 * median(found) for name, found in seconds.items()}
    plain = took["Python function"]
    return [
        Fact("ms a program adds to an attempt", took["program"] - plain, COLD_MS),
        Fact("ms a serving program adds", took["program that serves"] - plain, WARM_MS),
        Fact("ms a task in TypeScript adds", took["TypeScript"] - plain, WARM_MS),
    ]
