"""What a user would take instead, each in an environment and a process of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.lakefs import Server
from perago.dev import Sources


@dataclass(frozen=True, slots=True)
class Environment:
    """Packages from PyPI, installed once per user, and the script that drives them."""

    name: str
    packages: Sequence[str]
    driver: str

    def python(self) -> Path:
        """Make it when it is not there."""
        place = _place(self.name)
        python = place / "bin" / "python"
        ready = place / ".ready"
        if not ready.exists():
            shutil.rmtree(place, ignore_errors=True)
            print(f"installing {', '.join(self.packages)} in {place}", file=sys.stderr)
            venv.create(place, with_pip=True)
            command = [str(python), "-m", "pip", "install", "--quiet", *self.packages]
            subprocess.run(command, check=True)
            ready.touch()
        return python


PERAGO = Environment("perago-0.6.1", ("perago==0.6.1",), "peer_driver.py")
CLIENTS = Environment(
    "clients-1", ("lakefs-sdk==1.88.0", "lakefs-spec==0.15.1"), "clients_driver.py"
)
S5CMD = "2.3.0"


class Peer:
    """A worker process that stays, as a real one does: its imports are paid before the race."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, what: str, **words: object) -> Any:
        """Have it do one thing and wait for the answer."""
        if self._process.stdin is None or self._process.stdout is None:
            raise SystemExit("a driver has no pipes")
        self._process.stdin.write(json.dumps({"do": what, **words}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"the driver died when it was asked to {what}")
        return json.loads(line)


@contextmanager
def peer(server: Server, environment: Environment = PERAGO) -> Iterator[Peer]:
    """Start one."""
    variables = {
        **{key: value for key, value in os.environ.items() if not key.startswith("PYTHON")},
        "BENCH_LAKEFS": server.lakefs.endpoint,
        "BENCH_KEY": server.lakefs.access_key_id,
        "BENCH_SECRET": server.lakefs.secret,
    }
    driver = Path(__file__).with_name(environment.driver)
    with subprocess.Popen(
        # -P: the modules beside the driver are not its own; one is called as the SDK is.
        [str(environment.python()), "-P", str(driver)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=variables,
        cwd=server.root,  # Not the checkout, whose perago is another one.
    ) as process:
        try:
            yield Peer(process)
        finally:
            process.kill()


def s5cmd(server: Server, *words: str) -> None:
    """Run a fast client of S3 on the server's gateway; Go compiles it once per user."""
    program = _place(f"s5cmd-{S5CMD}") / "s5cmd"
    if not program.exists():
        print(f"compiling s5cmd {S5CMD} to {program}", file=sys.stderr)
        module = Path(__file__).with_name("s5cmd")
        go = {**os.environ, "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}
        build = ["build", "-mod=readonly", "-trimpath", "-o", str(program)]
        command = [str(Sources().tools.go()), *build, "github.com/peak/s5cmd/v2"]
        subprocess.run(command, check=True, env=go, cwd=module)
    variables = {
        "PATH": os.environ.get("PATH", ""),
        "HOME": str(server.root),
        "AWS_ACCESS_KEY_ID": server.lakefs.access_key_id,
        "AWS_SECRET_ACCESS_KEY": server.lakefs.secret,
        "AWS_REGION": "us-east-1",
    }
    command = [str(program), "--endpoint-url", server.lakefs.endpoint, *words]
    subprocess.run(command, check=True, capture_output=True, env=variables)


def _place(name: str) -> Path:
    return Sources().cache.root.parent / "bench" / name


def python_of_peer() -> Path:
    """Return the interpreter that has ``perago`` 0.6.1."""
    return PERAGO.python()
