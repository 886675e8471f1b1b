"""A shell, or one command, that finds the servers of an instance and their tools."""

from __future__ import annotations

import os
import shutil
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path

from perago.dev.endpoints import variables
from perago.dev.errors import NotRunningError
from perago.dev.record import PRIVATE_DIRECTORY, InstanceRecord
from perago.dev.sources import Sources
from perago.errors import UsageError

TOOLS = ("lakectl",)
"""Programs for people that are built along with a server."""


def link_tools(directory: Path, sources: Sources) -> None:
    """Link the tools that are on this machine into one directory; nothing is built for it."""
    for tool in TOOLS:
        program, link = sources.at_hand(tool), directory / tool
        if link.is_symlink() and (program is None or link.readlink() != program):
            link.unlink()
        if program is not None and not link.exists():
            directory.mkdir(parents=True, exist_ok=True, mode=PRIVATE_DIRECTORY)
            link.symlink_to(program)


def tools_in(directory: Path) -> dict[str, Path]:
    """Name the tools that are linked there."""
    return {tool: directory / tool for tool in TOOLS if (directory / tool).exists()}


def refuse_stopped(record: InstanceRecord) -> None:
    """Refuse an instance whose servers do not run: every command would fail on its own."""
    down = [name for name, known in record.servers.items() if not known.process.alive]
    if down:
        raise NotRunningError(
            f"{' and '.join(sorted(down))} of instance {record.name} "
            f"{'does' if len(down) == 1 else 'do'} not run",
            remedy=f"start with: perago dev up --name {record.name} "
            + " ".join(f"--{name}" for name in sorted(record.servers)),
        )


def surroundings(record: InstanceRecord, tools: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Add the addresses, the keys and the tools of an instance to an environment."""
    paths = [str(tools), *filter(None, [environ.get("PATH", os.defpath)])]
    if shutil.which("perago", path=os.pathsep.join(paths)) is None:
        paths.append(sysconfig.get_path("scripts"))
    return {**environ, **variables(record), "PATH": os.pathsep.join(paths)}


def become(words: Sequence[str], environment: Mapping[str, str]) -> None:
    """Turn this process into the command, or into the user's shell when there is none."""
    chosen = list(words) or [environment.get("SHELL") or "/bin/sh"]
    found = shutil.which(chosen[0], path=environment["PATH"])
    if found is None:
        raise UsageError(
            f"there is no command {chosen[0]!r}",
            remedy="check its name; 'perago dev fetch' builds lakectl if it is not here yet"
            if chosen[0] in TOOLS
            else "check its name and the PATH",
        )
    try:
        os.execve(found, chosen, dict(environment))  # noqa: S606 - it is what was asked for
    except OSError as error:
        raise UsageError(
            f"{found} cannot be started: {error.strerror}", remedy="check the file"
        ) from None
