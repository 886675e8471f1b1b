"""The notebook of ``examples/notebook`` shows what happens when a real kernel runs its cells.

Make its outputs again with ``jupyter execute --inplace shop.ipynb``, on a copy in an empty
directory, and leave the times out that it writes into the cells' metadata.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.patience import LIMIT

NOTEBOOK = Path(__file__).parents[2] / "examples/notebook/shop.ipynb"
CHANGING = (
    (r"\\u001b\[\d+m", ""),
    (r"[0-9a-f]{8}-[0-9a-f-]{27}", "RUN"),
    (r"\b[0-9a-f]{12}\b", "COMMIT"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "WHEN"),
    (r"\b\d+\.\d\d( s)?\b", "SECONDS"),
    (r"(?<=kept.parquet)(</td><td>| +)\d+", " BYTES"),
    (r" +", " "),
)


def outputs(file: Path) -> list[str]:
    """List what the cells show, without what differs from run to run."""
    notebook: dict[str, Any] = json.loads(file.read_text())
    text = json.dumps([cell.get("outputs") for cell in notebook["cells"]], sort_keys=True)
    for pattern, stands_for in CHANGING:
        text = re.sub(pattern, stands_for, text)
    return text.split('", "')


def test_every_cell_shows_what_the_notebook_says(tmp_path: Path) -> None:
    played = tmp_path / NOTEBOOK.name
    shutil.copy(NOTEBOOK, played)
    done = subprocess.run(
        [sys.executable, "-m", "jupyter", "execute", "--inplace", f"--timeout={LIMIT:.0f}", played],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=2 * LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert outputs(played) == outputs(NOTEBOOK)
