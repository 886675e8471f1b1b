"""One of several processes that publish to one branch, round after round.

    racer.py ROOT WORKFLOW ROUNDS

Each round: stage a change on the head, say "ready", wait for "go", publish under fence ``hard``,
say "won" or "lost". The parent gives "go" to all of them at once.
"""

from __future__ import annotations

import sys
from pathlib import Path

from perago.errors import LostRaceError
from perago.ports import Publication, Put, Store
from perago.protocol.publication import Merge, Situation, decide
from perago.protocol.values import Attempt, Staging
from perago.stores.embedded import EmbeddedStore
from perago.transfer import copying


def race(store: Store, workflow: str, number: int, source: Path) -> bool:
    """Publish once; True when the head was still there."""
    attempt = Attempt(workflow, f"{workflow}-{number}", 0, "step", "race")
    a = store.head("demo", "main")
    staging = Staging("demo", f"perago-staging-{workflow}-{number}")
    store.open_staging(staging, a.id)
    entry = copying.entry_of(workflow.encode())
    store.write(staging, [Put(f"rounds/{number:04d}", entry, source)], [], lambda _: None)
    said = {"workflow": workflow, "perago.logical_task_key": attempt.logical_task_key}
    staged = store.seal(staging, "staged", said)
    decision = decide("hard", Situation(a.id, a, staged.commit, attempt))
    assert isinstance(decision, Merge)
    say("ready")
    sys.stdin.readline()
    try:
        store.apply(Publication("demo", "main", decision, "hard", str(number), said, 10))
    except LostRaceError:
        return False
    finally:
        store.drop(staging)
    return True


def say(word: str) -> None:
    sys.stdout.write(word + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    root, me, rounds = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    mine = root.parent / me
    mine.write_text(me)
    opened = EmbeddedStore(root)
    for turn in range(rounds):
        say("won" if race(opened, me, turn, mine) else "lost")
