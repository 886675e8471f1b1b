"""A file larger than memory passes through in chunks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from perago.stores.embedded import EmbeddedStore
from tests.patience import LIMIT

STREAMER = Path(__file__).with_name("streamer.py")
BYTES = int(os.environ.get("PERAGO_TEST_BIG_BYTES", str(1 << 30)))
CEILING = 200 * 1000 * 1000


def test_a_big_file_needs_little_memory(store: EmbeddedStore, root: Path, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    with source.open("wb") as opened:  # a few real blocks in a sea of holes
        for place in range(0, BYTES - 8, BYTES // 16):
            opened.seek(place)
            opened.write(b"block%3d" % (place % 1000))
        opened.truncate(BYTES)
    try:
        done = subprocess.run(
            [sys.executable, str(STREAMER), str(root), str(source), str(target)],
            stdout=subprocess.PIPE,
            check=True,
            timeout=LIMIT,
        )
        assert target.stat().st_size == BYTES
        assert int(done.stdout) < CEILING
    finally:
        for path in (source, target, *(root / "objects").rglob("*")):
            if path.is_file():
                path.unlink()
