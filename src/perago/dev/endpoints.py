"""How the servers of an instance are reached, by people, by programs and by the shell."""

from __future__ import annotations

from dataclasses import dataclass, field

from perago.dev.addresses import HOST
from perago.dev.errors import NotRunningError
from perago.dev.record import InstanceRecord, ServerName
from perago.dev.servers import BUCKET


@dataclass(frozen=True, slots=True)
class LakeFSEndpoint:
    """A lakeFS server and the keys of its administrator."""

    endpoint: str
    access_key_id: str
    secret: str = field(repr=False)
    blocks: str = "local"

    def storage_namespace(self, repository: str) -> str:
        """Name the place a new repository keeps its blocks in."""
        root = f"s3://{BUCKET}" if self.blocks == "s3" else "local:/"
        return f"{root}/{repository}"


@dataclass(frozen=True, slots=True)
class ConductorEndpoint:
    """A Conductor server; ``url`` is that of its API."""

    url: str


@dataclass(frozen=True, slots=True)
class S3Endpoint:
    """An S3-compatible store with one bucket for the blocks of lakeFS."""

    endpoint: str
    access_key_id: str
    secret: str = field(repr=False)
    bucket: str = BUCKET


def _url(record: InstanceRecord, server: ServerName) -> str:
    if server not in record.servers:
        raise NotRunningError(
            f"instance {record.name} has no {server}",
            remedy=f"run 'perago dev up --name {record.name} --{server}'",
        )
    return f"http://{HOST}:{record.servers[server].port}"


def lakefs_of(record: InstanceRecord) -> LakeFSEndpoint:
    """Describe the lakeFS server of an instance."""
    keys = record.lakefs
    url = _url(record, "lakefs")
    return LakeFSEndpoint(url, keys.access_key_id, keys.secret_access_key, record.blocks)


def conductor_of(record: InstanceRecord) -> ConductorEndpoint:
    """Describe the Conductor server of an instance."""
    return ConductorEndpoint(f"{_url(record, 'conductor')}/api")


def s3_of(record: InstanceRecord) -> S3Endpoint:
    """Describe the S3 store of an instance."""
    keys = record.s3
    return S3Endpoint(_url(record, "s3"), keys.access_key_id, keys.secret_access_key)


def variables(record: InstanceRecord) -> dict[str, str]:
    """Return the settings a worker reads (W7), for the servers the instance has."""
    found: dict[str, str] = {}
    if "lakefs" in record.servers:
        lakefs = lakefs_of(record)
        found["LAKECTL_SERVER_ENDPOINT_URL"] = lakefs.endpoint
        found["LAKECTL_CREDENTIALS_ACCESS_KEY_ID"] = lakefs.access_key_id
        found["LAKECTL_CREDENTIALS_SECRET_ACCESS_KEY"] = lakefs.secret
    if "conductor" in record.servers:
        found["CONDUCTOR_SERVER_URL"] = conductor_of(record).url
    return found
