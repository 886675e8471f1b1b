"""How each server is started: its words, its configuration, its health check."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from perago.dev.addresses import HOST
from perago.dev.record import (
    PRIVATE_DIRECTORY,
    InstanceRecord,
    ServerName,
    write_private,
)
from perago.dev.sources import Sources
from perago.dev.unpacking import class_path

BUCKET = "blocks"
CONDUCTOR_CLASS = "com.netflix.conductor.Conductor"


@dataclass(frozen=True, slots=True)
class Launch:
    """What to run, and when to believe that it is up."""

    words: list[str]
    health: str
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ServerHome:
    """Where one server of one instance runs."""

    directory: Path
    port: int
    instance: InstanceRecord

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def folder(self, *names: str) -> Path:
        """Make a directory of the server's own."""
        path = self.directory.joinpath(*names)
        path.mkdir(parents=True, exist_ok=True, mode=PRIVATE_DIRECTORY)
        return path


@dataclass(frozen=True, slots=True)
class ServerKind:
    """What differs between the servers."""

    program: str
    prepare: Callable[[Sources], list[str]]
    launch: Callable[[list[str], ServerHome], Launch]
    start_seconds: float


def _lakefs(words: list[str], seat: ServerHome) -> Launch:
    file = seat.directory / "config.yaml"
    # Every JSON document is a YAML document.
    write_private(file, json.dumps(_lakefs_configuration(seat), indent=2))
    return Launch([*words, "--config", str(file), "run"], f"{seat.url}/_health")


def _lakefs_configuration(seat: ServerHome) -> dict[str, object]:
    instance = seat.instance
    return {
        "listen_address": f"{HOST}:{seat.port}",
        "logging": {"format": "text", "level": "INFO"},
        "database": {"type": "local", "local": {"path": str(seat.folder("metadata"))}},
        "blockstore": _s3_blocks(instance) if instance.blocks == "s3" else _local_blocks(seat),
        "auth": {"encrypt": {"secret_key": instance.signing_key}},
        "installation": {"user_name": "perago", **instance.lakefs.model_dump()},
        "stats": {"enabled": False},
        "security": {"check_latest_version": False},
        "usage_report": {"enabled": False},
    }


def _local_blocks(seat: ServerHome) -> dict[str, object]:
    return {"type": "local", "local": {"path": str(seat.folder("blocks"))}}


def _s3_blocks(instance: InstanceRecord) -> dict[str, object]:
    return {
        "type": "s3",
        "s3": {
            "endpoint": f"http://{HOST}:{instance.servers['s3'].port}",
            "force_path_style": True,
            "discover_bucket_region": False,
            "region": "us-east-1",
            "credentials": instance.s3.model_dump(),
        },
    }


def _s3(words: list[str], seat: ServerHome) -> Launch:
    root = seat.folder("buckets")
    seat.folder("buckets", BUCKET)
    beside = [] if _keeps_attributes(root) else ["--sidecar", str(seat.folder("attributes"))]
    listen = ["--port", f"{HOST}:{seat.port}", "--health", "/health", "--keep-alive", "--quiet"]
    keys = seat.instance.s3
    # Through the environment, since everybody on the machine can read command lines.
    secrets = {"ROOT_ACCESS_KEY": keys.access_key_id, "ROOT_SECRET_KEY": keys.secret_access_key}
    return Launch([*words, *listen, "posix", *beside, str(root)], f"{seat.url}/health", secrets)


def _keeps_attributes(directory: Path) -> bool:
    """Return whether the file system can hold what S3 says about an object."""
    try:
        os.setxattr(directory, "user.perago", b"1")
        os.removexattr(directory, "user.perago")
    except (OSError, AttributeError):  # Not on this file system, or not on this system.
        return False
    return True


def _conductor(words: list[str], seat: ServerHome) -> Launch:
    java, program = words
    return Launch(
        [
            java,
            "-Xmx1g",
            f"-Djava.io.tmpdir={seat.folder('tmp')}",
            *_java_program(Path(program), seat),
            f"--server.port={seat.port}",
            f"--server.address={HOST}",
            "--conductor.integrations.ai.enabled=false",
        ],
        f"{seat.url}/health",
    )


def _java_program(program: Path, seat: ServerHome) -> list[str]:
    """Start a jar that a person named as it is, and the unpacked one by its class."""
    if program.is_file():
        return ["-jar", str(program)]
    # Hundreds of jars: more than some systems take on a command line.
    arguments = seat.directory / "java.args"
    arguments.write_text(f'-cp "{class_path(program)}"\n', encoding="utf-8")
    return [f"@{arguments}", CONDUCTOR_CLASS]


def _alone(name: str) -> Callable[[Sources], list[str]]:
    return lambda sources: sources.words(name)


def _on_java(name: str) -> Callable[[Sources], list[str]]:
    return lambda sources: [str(sources.java()), str(sources.program(name))]


# One that ends is noticed at once; these times are for one that hangs. On a machine that is busy
# with something else a start takes many times what it takes on a quiet one.
KINDS: dict[ServerName, ServerKind] = {
    "s3": ServerKind("versitygw", _alone("versitygw"), _s3, 300.0),
    "lakefs": ServerKind("lakefs", _alone("lakefs"), _lakefs, 600.0),
    "conductor": ServerKind("conductor", _on_java("conductor"), _conductor, 1800.0),
}
