"""The line with which the help of each command begins; it works when pasted.

The lines are for a project made by ``perago init``; those about servers need them running, those
about people a step that waits for one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

EXAMPLES: Final[Mapping[str, str]] = {
    "perago": "perago init words && cd words && perago run workflow.json tasks --from data",
    "perago init": "perago init words",
    "perago check": "perago check tasks workflow.json",
    "perago run": "perago run workflow.json tasks --from data",
    "perago extract": "perago extract tasks -o taskdefs.json",
    "perago schema": "perago schema > tasks.schema.json",
    "perago register": "perago register tasks workflow.json",
    "perago start": "perago start tasks",
    "perago submit": "perago submit words --repo words",
    "perago watch": "perago watch last",
    "perago cancel": "perago cancel last",
    "perago restart": "perago restart last",
    "perago human": "perago human list",
    "perago human list": "perago human list",
    "perago human show": "perago human show correct",
    "perago human take": "perago human take correct fix",
    "perago human diff": "perago human diff fix",
    "perago human check": "perago human check fix",
    "perago human submit": "perago human submit fix",
    "perago human approve": "perago human approve release --yes",
    "perago human reject": "perago human reject correct --reason 'the file is empty'",
    "perago human return": "perago human return correct",
    "perago graph": "perago graph workflow.json tasks",
    "perago new": "perago new workflow tasks -o first.json",
    "perago new workflow": "perago new workflow tasks -o chain.json",
    "perago branch": "perago branch list",
    "perago branch create": "perago branch create try",
    "perago branch list": "perago branch list",
    "perago branch delete": "perago branch delete try",
    "perago dev shell": "perago dev shell -- lakectl repo list",
    "perago repo": "perago repo init words",
    "perago repo init": "perago repo init words",
    "perago dev": "perago dev up",
    "perago dev up": "perago dev up",
    "perago dev fetch": "perago dev fetch",
    "perago dev status": "perago dev status",
    "perago dev down": "perago dev down",
    "perago dev logs": "perago dev logs lakefs -n 10",
    "perago status": "perago status",
    "perago runs": "perago runs",
    "perago log": "perago log",
    "perago inspect": "perago inspect main",
    "perago diff": "perago diff",
    "perago checkout": "perago checkout words-now",
    "perago report": "perago report",
    "perago ui": "perago ui --open",
    "perago verify": "perago verify",
    "perago ledger": "PERAGO_LEDGER=sqlite:///$PWD/ledger.sqlite perago ledger show",
    "perago ledger show": "PERAGO_LEDGER=sqlite:///$PWD/ledger.sqlite perago ledger show",
    "perago doctor": "perago doctor",
    "perago conform": "perago conform --task count_words --only kill",
    "perago gc": "perago gc",
}
