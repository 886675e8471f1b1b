"""The home: what Perago keeps of local runs and of servers for development, for its owner alone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from perago.filesystem import roots

_NAMES: Final = frozenset({"store", "locks", "rooms", "dev"})
_FILES: Final = re.compile(
    r"(events|runs)\.sqlite(-wal|-shm|-journal)?|\.perago-.*|lost\+found", re.ASCII
)
_SIGNS: Final = ("events.sqlite", "runs.sqlite", "store/catalogue.sqlite", "dev/*/instance.json")


def claim(home: Path) -> None:
    """Take a directory for the home, new or of an earlier version; no other user may look inside.

    One that holds files of others as well is not closed as a whole, only what is ours in it.
    """
    strangers = _strangers(home)
    if strangers and is_home(home):
        opened = roots.adopt(home, roots.HOME)
    else:
        opened = roots.claim(home, roots.HOME, lambda _: not strangers)
    if opened or strangers:
        opened |= roots.close_to_others(home, [*_NAMES, *_own_files(home)])
    if opened:
        roots.tell_closed(home)


def _strangers(home: Path) -> list[str]:
    return [name for name in _listed(home) if name not in _NAMES and not _FILES.fullmatch(name)]


def _own_files(home: Path) -> list[str]:
    return [name for name in _listed(home) if _FILES.fullmatch(name)]


def is_home(home: Path) -> bool:
    """Return whether a directory holds what Perago keeps; nothing is made or changed."""
    return any(next(home.glob(sign), None) is not None for sign in _SIGNS)


def _listed(home: Path) -> list[str]:
    try:
        return [path.name for path in home.iterdir()]
    except OSError:
        return []  # What is wrong with it is said when it is claimed.
