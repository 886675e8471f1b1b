"""One of several processes that write to one ledger at once.

    writer.py ADDRESS NAME COUNT

Opens the ledger when it is told to, writes COUNT postings to their end, and exits.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from perago.app.local import ledger_of
from perago.protocol.adoption import Completion
from perago.settings import load_settings
from tests.ledger.postings import LANDED


def main(address: str, name: str, count: int) -> None:
    ledger = ledger_of(load_settings({"PERAGO_LEDGER": address}, Path.cwd()))
    assert ledger
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    for number in range(count):
        execution = f"{name}-{number:04d}"
        intended = replace(LANDED, execution_id=execution, ref=None, landed_at=None)
        ledger.post(intended)
        ledger.post(replace(intended, ref=f"ref of {execution}", landed_at=2.0))
        ledger.settle(execution, Completion.DROPPED, number)
    ledger.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
