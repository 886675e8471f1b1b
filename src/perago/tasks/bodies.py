"""What does the work of a task: a function of a module, or a program that a manifest names."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from hashlib import sha256
from pathlib import Path
from shutil import which
from typing import Any

from perago.errors import TaskFailed
from perago.protocol.program import Program


class Role(Enum):
    """What a parameter of a task function is for; told by its annotation."""

    WORKSPACE = "workspace: Path"
    PARAMS = "params: <a pydantic model>"
    METRICS = "metrics: MetricRecorder"
    SPARK = "spark: SparkSession"
    SPARK_WORKSPACE = "workspace: SparkWorkspace"


@dataclass(frozen=True, slots=True)
class FunctionBody:
    """A typed function; it runs in the executor itself."""

    function: Callable[..., Any]
    roles: Mapping[str, Role]

    @property
    def source(self) -> str:
        """Name what has to be loaded to have it."""
        return self.function.__module__

    @property
    def label(self) -> str:
        """Name it within its source."""
        return self.function.__name__

    @property
    def code(self) -> str:
        """Digest the file that defines it; empty when there is none to read."""
        try:
            return _digest(inspect.getfile(self.function))
        except (OSError, TypeError):
            return ""

    def call(self, values: Mapping[Role, Callable[[], object]]) -> object:
        """Run it with what its signature asks for; nothing else is made."""
        return self.function(**{name: values[role]() for name, role in self.roles.items()})


@dataclass(frozen=True, slots=True)
class ProgramBody:
    """A program in any language; it runs in processes of its own."""

    program: Program
    manifest: Path
    label: str

    @property
    def source(self) -> str:
        """Name what has to be loaded to have it."""
        return str(self.manifest)

    @property
    def code(self) -> str:
        """Digest the manifest and the files that the command names beside it."""
        try:
            files = [_digest(self.source), *map(_digest, self._beside)]
        except OSError:
            return ""
        return sha256("\n".join(files).encode()).hexdigest()

    @property
    def missing(self) -> str:
        """Name the program if it is not on this machine; empty where it is."""
        return "" if which(self.program.command[0]) else self.program.command[0]

    @property
    def _beside(self) -> list[str]:
        """Find the words of the command that are files beside the manifest, or below it."""
        home = self.manifest.resolve().parent
        return [
            word
            for word in self.program.command
            if Path(word).is_relative_to(home) and Path(word).is_file()
        ]


@dataclass(frozen=True, slots=True)
class HumanBody:
    """What a person does; it comes to an attempt when it is done (Q10)."""

    manifest: Path
    label: str
    approval: bool = False
    """Whether the person says yes or no to a commit and changes nothing (Q14)."""
    hand_in: Callable[[Path | None], object] | None = None
    """Brings the person's files to the workspace of an attempt and returns their result."""
    code: str = ""
    """Names one submission: no attempt takes the files of another for its own (K5)."""

    @property
    def source(self) -> str:
        """Name what has to be loaded to have it."""
        return str(self.manifest)

    def call(self, values: Mapping[Role, Callable[[], object]]) -> object:
        """Take over what the person has done."""
        if self.hand_in is None:
            raise TaskFailed(
                f"task {self.label!r} is done by a person",
                remedy='give its step the type HUMAN, and do it with "perago human"',
            )
        root = values[Role.WORKSPACE]()
        return self.hand_in(root if isinstance(root, Path) else None)


Body = FunctionBody | ProgramBody | HumanBody


@cache
def _digest(file: str) -> str:
    return sha256(Path(file).read_bytes()).hexdigest()
