"""How long a person waits before anything happens."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench.comparison import Comparison, Fact, Options, Ratio, Work
from bench.peer import python_of_peer

HELP_MS, IMPORT_MS = 250.0, 50.0
_TIMES = 7


def python(*arguments: str, interpreter: str = sys.executable) -> Work:
    """Run an interpreter once; outside the checkout, whose perago is not everybody's."""

    def work() -> None:
        subprocess.run([interpreter, *arguments], check=True, capture_output=True, cwd="/")

    return work


# Whoever writes a task writes a model, and with the first one pydantic loads the rest of itself.
MODEL = "from pydantic import BaseModel\nclass Params(BaseModel): text: str = ''\n"
PYDANTIC = python("-c", MODEL)
PERAGO = python("-c", MODEL + "from perago import task, WorkspaceSpec")
HELP = python("-m", "perago", "--help")


@contextmanager
def comparison(options: Options) -> Iterator[Comparison]:
    """Compare with what pydantic alone costs, and with 0.6.1."""
    contenders = {"import pydantic": PYDANTIC, "import perago": PERAGO, "perago --help": HELP}
    ratios = [
        Ratio("import perago / pydantic", "import perago", "import pydantic", 1.5),
        Ratio("perago --help / import pydantic", "perago --help", "import pydantic", 3.0),
    ]
    if options.peer:
        peer = str(python_of_peer())
        contenders |= {
            "import 0.6.1": python("-c", "from perago import task", interpreter=peer),
            "0.6.1 --help": python("-m", "perago.cli", "--help", interpreter=peer),
        }
        ratios += [
            Ratio("startup: import 0.6.1 / perago", "import 0.6.1", "import perago", at_least=3),
            Ratio("startup: --help 0.6.1 / perago", "0.6.1 --help", "perago --help", at_least=3),
        ]
    yield Comparison(
        name="startup",
        what="from the shell's point of view",
        contenders=contenders,
        ratios=ratios,
        facts=lambda: [
            Fact("ms until perago --help is printed", _ms(HELP), at_most=HELP_MS),
            Fact("ms to import the task API", _ms(PERAGO) - _ms(PYDANTIC), at_most=IMPORT_MS),
        ],
    )


def _ms(work: Work) -> float:
    found = []
    for _ in range(_TIMES):
        began = time.perf_counter()
        work()
        found.append(time.perf_counter() - began)
    return 1000 * statistics.median(found)
