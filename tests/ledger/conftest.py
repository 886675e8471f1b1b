"""Databases for the ledger: a file, and a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.ledger.postgres import PostgresServer, postgres_server


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """Give a PostgreSQL server."""
    with postgres_server() as server:
        yield server
