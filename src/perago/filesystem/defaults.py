"""Where a user's own things are kept when nothing else is said: never where others can write."""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Mapping
from pathlib import Path

from perago.filesystem.roots import NO_HOME


def state(environ: Mapping[str, str]) -> Path:
    """Name the place of what the workers of this user work on."""
    below = "Library" if sys.platform == "darwin" else ".local/state"
    return _given(environ, "XDG_STATE_HOME", below) / "perago"


def cache(environ: Mapping[str, str]) -> Path:
    """Name the place of what they share and can get again."""
    below = "Library/Caches" if sys.platform == "darwin" else ".cache"
    return _given(environ, "XDG_CACHE_HOME", below) / "perago"


def _given(environ: Mapping[str, str], name: str, below: str) -> Path:
    """Take the directory a variable names, which has to be absolute, or one in the user's home."""
    given = Path(environ.get(name, "").strip())
    return given if given.is_absolute() else _home(environ) / below


def _home(environ: Mapping[str, str]) -> Path:
    given = Path(environ.get("HOME", "").strip())
    if given.is_absolute():
        return given
    try:
        return Path(pwd.getpwuid(os.geteuid()).pw_dir)
    except KeyError:
        return NO_HOME
