"""Servers from images instead of builds. UNTESTED: no engine ran where this was written.

The container shares the network and the instance's directory, so that ports, configuration and
data are as with a program of one's own; the ``docker run`` that holds it passes signals on.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from perago.dev.recipes import LAKEFS, VERSITYGW
from perago.errors import RuntimeConfigError

IMAGES = {
    "lakefs": (f"treeverse/lakefs:{LAKEFS.version}", "/app/lakefs", ()),
    "versitygw": (
        f"versity/versitygw:v{VERSITYGW.version}",
        "/usr/local/bin/versitygw",
        ("ROOT_ACCESS_KEY", "ROOT_SECRET_KEY"),
    ),
}
"""By program: the image, the program in it, and the variables it gets from ours."""


def container_words(program: str, directory: Path) -> list[str]:
    """Return what to run in place of a program, up to its own arguments."""
    engine = shutil.which("docker")
    if engine is None:
        raise RuntimeConfigError(
            "there is no docker on PATH", remedy="install it, or leave --docker out"
        )
    image, entry, variables = IMAGES[program]
    # A name alone: the values are in the environment, not on a command line all can read.
    passed = [word for name in variables for word in ("--env", name)]
    user = ["--user", f"{os.getuid()}:{os.getgid()}"]
    mount = ["--volume", f"{directory}:{directory}"]
    run = [engine, "run", "--rm", "--init", "--network", "host", *user, *mount, *passed]
    return [*run, "--entrypoint", entry, image]
