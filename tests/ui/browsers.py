"""Finds a Chromium, or installs that of the system."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.patience import LIMIT

NAMES = ("chromium", "chromium-browser", "google-chrome")
INSTALL = (["apt-get", "update", "-qq"], ["apt-get", "install", "-y", "-qq", "chromium"])


def chromium() -> Path:
    """Return the program; it is installed where this user may install it."""
    if found := _found():
        return found
    if os.geteuid() == 0 and shutil.which("apt-get"):
        quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        # Another process of these tests may be installing it: wait for its lock.
        wait = ["-o", f"DPkg::Lock::Timeout={5 * LIMIT:.0f}"]
        for words in INSTALL:
            subprocess.run([*words, *wait], check=True, env=quiet, capture_output=True)
    if found := _found():
        return found
    raise AssertionError("the tests of the page need a Chromium: install the system's package")


def _found() -> Path | None:
    return next((Path(path) for name in NAMES if (path := shutil.which(name))), None)
