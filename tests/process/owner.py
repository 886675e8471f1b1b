"""An owner of a pool, to be killed: python -m tests.process.owner DIRECTORY."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from perago.process.pool import ProcessPool
from perago.process.reports import Message
from tests.process import executors
from tests.process.executors import claim


def main(directory: Path) -> None:
    # Whoever was started in the background of a shell was told to ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with ProcessPool(executors.work, 2, lock_directory=directory) as pool:
        pool.want(2)
        while len(pool.idle) < 2:
            pool.poll(1)
        for number, executor_id in enumerate(pool.idle):
            pool.submit(claim(f"e{number}", grandchild=600), executor_id)
        while True:
            for report in pool.poll(1):
                assert isinstance(report, Message)
                sys.stdout.write(f"{report.body['pid']} {report.body['grandchild']}\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
