"""A ledger in PostgreSQL: for workers of several machines."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import psycopg
from psycopg.conninfo import conninfo_to_dict

from perago.errors import LedgerUnavailableError, RuntimeConfigError
from perago.ledger.sql import SCHEMA, TABLE, Row

WAIT_SECONDS: Final = 5.0
_LOCK: Final = 7_265_616_700
"""Any number: whoever makes the table holds the lock of it."""


class PostgresDatabase:
    """One connection per statement: nothing is kept that could break, be shared or be forked.

    The client library bounds no wait for an answer, the event loop does: nothing takes longer
    than the time given and the few seconds in which the server is asked to stop.
    """

    def __init__(self, address: str, shown: str, wait_seconds: float = WAIT_SECONDS) -> None:
        try:
            conninfo_to_dict(address)
        except psycopg.Error:
            # Its words may repeat a part of the address, and that part may be the password.
            raise RuntimeConfigError(
                f"PERAGO_LEDGER ({shown}) holds an option that PostgreSQL does not know",
                remedy="write postgresql://user:password@host:5432/database",
            ) from None
        self._address = address
        self._shown = shown
        self._wait_seconds = wait_seconds
        self._made = False

    def run(self, statement: str, values: Sequence[object]) -> list[Row]:
        """Carry out one statement."""
        wanted = statement.replace("?", "%s")
        try:
            return asyncio.run(asyncio.wait_for(self._run(wanted, values), self._wait_seconds))
        except (OSError, psycopg.Error) as error:
            why = str(error).partition("\n")[0] or f"no answer within {self._wait_seconds:g} s"
            raise LedgerUnavailableError(
                f"ledger {self._shown} cannot be used: {why}",
                remedy="check PERAGO_LEDGER, and that the server is up and lets the worker in",
            ) from None

    def close(self) -> None:
        """Do nothing: nothing is open."""

    async def _run(self, statement: str, values: Sequence[object]) -> list[Row]:
        connect = psycopg.AsyncConnection.connect
        async with await connect(self._address, application_name="perago") as connection:
            if not self._made:
                await self._make(connection)
            cursor = await connection.execute(statement.encode(), values)
            return await cursor.fetchall() if cursor.description else []

    async def _make(self, connection: psycopg.AsyncConnection[Row]) -> None:
        """Make the table, if nobody has: only then is the permission for it needed."""
        if not await self._there(connection):
            await connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            for statement in SCHEMA:
                await connection.execute(statement.encode())
        await connection.commit()
        self._made = True

    async def _there(self, connection: psycopg.AsyncConnection[Row]) -> bool:
        cursor = await connection.execute("SELECT to_regclass(%s)", (TABLE,))
        found = await cursor.fetchone()
        return found is not None and found[0] is not None
