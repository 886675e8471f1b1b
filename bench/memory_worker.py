"""The worker process of the memory comparison: one attempt on a host that knows nothing."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from pydantic import BaseModel

from bench.lakefs import connect, write_noise
from perago import WorkspaceSpec, task


class Size(BaseModel):
    """How big."""

    size: int


class Nothing(BaseModel):
    """No result."""


@task(name="write", owner_email="bench@example.com", workspace=WorkspaceSpec())
def write(workspace: Path, params: Size) -> Nothing:
    """Write one big file, another one each time."""
    write_noise(workspace / "big.bin", params.size)
    return Nothing()


@task(name="read", owner_email="bench@example.com", workspace=WorkspaceSpec(read_only=True))
def read(workspace: Path, params: Size) -> Nothing:
    """Look whether it is there."""
    if (workspace / "big.bin").stat().st_size != params.size:
        raise SystemExit("the file is not what was written")
    return Nothing()


def main() -> None:
    """Run it and tell the peak."""
    asked = json.loads(sys.argv[1])
    with connect(asked["endpoint"], asked["key"], asked["secret"], Path(asked["root"])) as host:
        work = write if asked["do"] == "up" else read
        began = time.perf_counter()
        host.attempt(work, asked["repository"], asked["ref"], {"size": asked["size"]})
        seconds = time.perf_counter() - began
    # Not ru_maxrss: it starts with what the parent held when it made this process.
    peak = int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) / 1024
    print(json.dumps({"peak_mb": peak, "seconds": seconds}))


if __name__ == "__main__":
    main()
