"""The notebook of ``examples/notebook`` shows what happens when its cells are run."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.patience import LIMIT

EXAMPLE = Path(__file__).parents[2] / "examples" / "notebook"
CHANGING = (
    (r"[0-9a-f]{8}-[0-9a-f-]{27}", "RUN"),
    (r"\b[0-9a-f]{12}\b", "COMMIT"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "WHEN"),
    (r"\b\d+\.\d\d( s)?\b", "SECONDS"),
    (r"(?<=kept.parquet)(</td><td>| +)\d+", " BYTES"),
    (r" +", " "),
)


def outputs(notebook: dict[str, Any]) -> list[str]:
    """List what the cells show, without what differs from run to run."""
    text = json.dumps([cell.get("outputs") for cell in notebook["cells"]], sort_keys=True)
    for pattern, stands_for in CHANGING:
        text = re.sub(pattern, stands_for, text)
    return text.split('", "')


def test_every_cell_shows_what_the_notebook_says(tmp_path: Path) -> None:
    file = EXAMPLE / "shop.ipynb"
    done = subprocess.run(
        [sys.executable, str(EXAMPLE / "play.py"), str(file)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert outputs(json.loads(done.stdout)) == outputs(json.loads(file.read_text()))
