"""lakeFS with its metadata in PostgreSQL, as production has it; otherwise it is in files."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any, Final
from urllib.request import Request, urlopen

from perago.dev import LakeFSEndpoint, servers
from tests.ledger.postgres import postgres_server
from tests.patience import LIMIT

VARIABLE: Final = "PERAGO_TEST_LAKEFS_KV"
CHOSEN = os.environ.get(VARIABLE, "local")
"""Where the lakeFS of the tests keeps its metadata: ``local`` or ``postgres``."""


@contextmanager
def kept_in(kind: str) -> Iterator[None]:
    """Have every lakeFS that is started meanwhile keep its metadata there."""
    if kind == "local":
        yield
        return
    assert kind == "postgres", f"{VARIABLE} is {kind!r}: write local or postgres"
    usual = servers._lakefs_configuration  # noqa: SLF001 - users have no such choice
    with postgres_server() as server:

        def configuration(seat: servers.ServerHome) -> dict[str, Any]:
            address = server.new_database(f"lakefs-{uuid.uuid4().hex}")
            database = {"type": "postgres", "postgres": {"connection_string": address}}
            return usual(seat) | {"database": database}

        servers._lakefs_configuration = configuration  # noqa: SLF001
        try:
            yield
        finally:
            servers._lakefs_configuration = usual  # noqa: SLF001


def set_up(lakefs: LakeFSEndpoint) -> None:
    """Make the first user with the keys of the endpoint; with files, lakeFS does so by itself."""
    key = {"access_key_id": lakefs.access_key_id, "secret_access_key": lakefs.secret}
    ask = Request(  # noqa: S310 - a server of our own
        f"{lakefs.endpoint}/api/v1/setup_lakefs",
        json.dumps({"username": "perago", "key": key}).encode(),
        {"Content-Type": "application/json"},
    )
    with urlopen(ask, timeout=LIMIT) as answer:  # noqa: S310 - as above
        assert answer.status == HTTPStatus.OK
