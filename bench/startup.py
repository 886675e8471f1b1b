"""How long a person waits before anything happens."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from bench.comparison import Comparison, Options, Ratio, Work


def python(*arguments: str) -> Work:
    """Run the interpreter once."""

    def work() -> None:
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True)

    return work


@contextmanager
def comparison(_: Options) -> Iterator[Comparison]:
    """Compare with what pydantic alone costs."""
    yield Comparison(
        name="startup",
        what="from the shell's point of view",
        contenders={
            "import pydantic": python("-c", "from pydantic import BaseModel"),
            "import perago": python("-c", "import perago"),
            "perago --help": python("-m", "perago", "--help"),
        },
        ratios=[
            Ratio("import perago / pydantic", "import perago", "import pydantic", 1.5),
            Ratio("perago --help / import pydantic", "perago --help", "import pydantic", 3.0),
        ],
    )
