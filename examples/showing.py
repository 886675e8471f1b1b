"""How the examples talk to a person."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence

from rich.console import Console

console = Console(highlight=False, soft_wrap=True)


def perago(*arguments: str, **environment: str) -> int:
    """Run a command the way a person would, and show it."""
    console.print(f"[bold green]$[/bold green] [bold]{shlex.join(('perago', *arguments))}[/bold]")
    command = [sys.executable, "-m", "perago", *arguments]
    return subprocess.run(command, env=os.environ | environment, check=False).returncode  # noqa: S603


def what_next(commands: Sequence[tuple[str, str]]) -> None:
    """Name commands to try, each with what it shows."""
    console.print("\n[bold]what to try next[/bold]")
    for command, why in commands:
        console.print(f"  [bold]{command:<46}[/bold] [dim]{why}[/dim]")
