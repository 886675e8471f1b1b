"""How long a person waits before anything happens."""

from __future__ import annotations

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
TASK_API = "from perago import task, WorkspaceSpec"
PERAGO = python("-c", MODEL + TASK_API)
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
            Fact("ms to import the task API", _ms_to_import(), at_most=IMPORT_MS),
        ],
    )


def _ms(work: Work) -> float:
    """Take the best of some: what else the machine does can only add to it."""
    found = []
    for _ in range(_TIMES):
        began = time.perf_counter()
        work()
        found.append(time.perf_counter() - began)
    return 1000 * min(found)


def _ms_to_import() -> float:
    """Have an interpreter that has pydantic say how long it took beyond it, the best of some."""
    timed = f"{MODEL}import time\nbegan = time.perf_counter()\n{TASK_API}\n"
    command = [sys.executable, "-c", timed + "print(time.perf_counter() - began)"]
    found = [subprocess.check_output(command, cwd="/") for _ in range(_TIMES)]
    return 1000 * min(float(seconds) for seconds in found)
