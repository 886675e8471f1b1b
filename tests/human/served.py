"""A project whose steps wait on a real Conductor, about files on a real lakeFS."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perago.dev import ConductorEndpoint, LakeFSEndpoint
from perago.protocol.values import Commit
from tests.human.project import GIVEN, MANIFEST, Project, Said, step
from tests.patience import until
from tests.worker.stage import Stage


@dataclass
class ServedProject:
    """One set of task names on shared servers."""

    directory: Path
    conductor: ConductorEndpoint
    lakefs: LakeFSEndpoint
    fence: str = "head"
    stage: Stage = field(init=False)
    project: Project = field(init=False)

    def __post_init__(self) -> None:
        self.stage = Stage(self.directory, self.conductor, self.lakefs)
        self.project = Project(self.directory / "project", self.fence)
        text = MANIFEST.replace("FENCE", self.fence)
        for name in ("correct", "release", "title"):
            text = text.replace(f'name = "{name}"', f'name = "{name}_{self.stage.tag}"')
        (self.project.directory / "songs.toml").write_text(text)
        self.project.environment = self.stage.environment()
        done = self.perago("register", "songs.toml")
        assert done.code == 0, done

    def close(self) -> None:
        self.stage.close()

    def perago(self, *words: str, **more: Any) -> Said:
        return self.project.perago(*words, **more)

    def step(self, task: str, workspace: str = GIVEN, **params: object) -> dict[str, Any]:
        made = step(task, workspace, **params)
        return {**made, "name": f"{task}_{self.stage.tag}"}

    def start(self, *steps: dict[str, Any]) -> tuple[str, dict[str, str]]:
        """Start a workflow; return its id and where it works."""
        workspace = self.stage.workspace({"song.txt": b"la la\n", "other.txt": b"other\n"})
        return self.stage.run_steps([*steps], {"workspace": workspace}), workspace

    def waiting(self, workflow: str, retry: int = 0) -> str:
        """Wait until a step of a workflow is open for people; return its task id."""

        def found() -> str:
            tasks = self.stage.workflow(workflow)["tasks"]
            if not tasks or tasks[-1]["status"] != "IN_PROGRESS":
                return ""
            return str(tasks[-1]["taskId"]) if tasks[-1]["retryCount"] >= retry else ""

        return str(until(found, f"a step of {workflow} to wait"))

    def take(self, task: str, to: str, *more: str, person: str = "ada") -> Path:
        return self.project.take(task, to, "--tasks", "songs.toml", *more, person=person)

    def done(self, to: str, task: str, text: str = "mine\n") -> Path:
        """Take a step and do its work."""
        files = self.take(task, to)
        (files / "lyrics.txt").write_text(text)
        (files / "other.txt").unlink()
        return files

    def files(self, workspace: dict[str, str]) -> dict[str, bytes]:
        """Read the head of the branch."""
        listed = self.stage.store.listing(workspace["repository"], self.head(workspace).id, "")
        return {each.key: self.stage.read(workspace, each.key) for each in listed}

    def head(self, workspace: dict[str, str]) -> Commit:
        return self.stage.store.head(workspace["repository"], workspace["branch"])
