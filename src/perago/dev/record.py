"""What an instance remembers of itself: ``instance.json``, readable by its owner only."""

from __future__ import annotations

import secrets
import string
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field, ValidationError

from perago.dev.processes import Process
from perago.errors import UsageError
from perago.filesystem import roots

ServerName = Literal["s3", "lakefs", "conductor"]
Blocks = Literal["local", "s3"]
# In the order they are started: lakeFS may keep its blocks in the S3 store.
SERVERS: tuple[ServerName, ...] = ("s3", "lakefs", "conductor")
PRIVATE_DIRECTORY = 0o700
_LETTERS = string.ascii_uppercase + string.digits


class Keys(BaseModel, frozen=True):
    """Credentials, made at random for one instance."""

    access_key_id: str = Field(
        default_factory=lambda: "".join(secrets.choice(_LETTERS) for _ in range(20))
    )
    secret_access_key: str = Field(default_factory=lambda: secrets.token_urlsafe(30), repr=False)


class ServerRecord(BaseModel, frozen=True):
    """A server that was started; without a pid, one that was stopped in an orderly way."""

    port: int
    version: str
    pid: int = 0
    token: str = ""
    started_at: float = 0.0

    @property
    def process(self) -> Process:
        return Process(self.pid, self.token)


class InstanceRecord(BaseModel, frozen=True):
    """All of an instance that must survive the command that started it."""

    name: str
    blocks: Blocks = "local"
    lakefs: Keys = Field(default_factory=Keys)
    s3: Keys = Field(default_factory=Keys)
    signing_key: str = Field(default_factory=secrets.token_urlsafe, repr=False)
    servers: dict[ServerName, ServerRecord] = {}

    def having(self, server: ServerName, record: ServerRecord) -> InstanceRecord:
        """Copy with one server replaced."""
        return self.model_copy(update={"servers": {**self.servers, server: record}})


def load(path: Path) -> InstanceRecord | None:
    """Read a record; None when there is none."""
    try:
        return InstanceRecord.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (ValidationError, OSError) as error:
        raise UsageError(
            f"{path} cannot be read as an instance ({type(error).__name__})",
            remedy="stop its servers by hand and remove its directory",
        ) from None


def save(path: Path, record: InstanceRecord) -> None:
    """Write a record so that a reader sees the old one or the new one."""
    write_private(path, record.model_dump_json(indent=2) + "\n")


def write_private(path: Path, text: str) -> None:
    """Replace a file that only its owner may read, at no moment otherwise."""
    roots.write_private(path, text)
