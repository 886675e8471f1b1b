"""Running ``perago`` the way a person does, with servers named in its environment."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perago.dev import ConductorEndpoint, LakeFSEndpoint
from tests.environment import clean_environment
from tests.patience import LIMIT


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True)
class Shell:
    """A directory to work in, and an environment."""

    directory: Path
    environment: dict[str, str]

    def perago(self, *arguments: str) -> Answer:
        done = subprocess.run(
            [sys.executable, "-m", "perago", *arguments],
            cwd=self.directory,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT,
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    def write(self, name: str, text: str) -> None:
        (self.directory / name).write_text(text)


def shell(
    directory: Path,
    conductor: ConductorEndpoint | None = None,
    lakefs: LakeFSEndpoint | None = None,
) -> Shell:
    """Take nothing of the developer's own configuration."""
    environment = clean_environment()
    environment["PERAGO_CACHE_ROOT"] = str(directory / "cache")
    if conductor is not None:
        environment["CONDUCTOR_SERVER_URL"] = conductor.url
    if lakefs is not None:
        environment["LAKECTL_SERVER_ENDPOINT_URL"] = lakefs.endpoint
        environment["LAKECTL_CREDENTIALS_ACCESS_KEY_ID"] = lakefs.access_key_id
        environment["LAKECTL_CREDENTIALS_SECRET_ACCESS_KEY"] = lakefs.secret
    return Shell(directory, environment)
