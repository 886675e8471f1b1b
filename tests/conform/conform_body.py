"""The body that ``perago conform`` asks for, as a program of a manifest."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path


def main() -> None:
    params = json.loads(Path(os.environ["PERAGO_PARAMS"]).read_text())
    attempt = json.loads(Path(os.environ["PERAGO_ATTEMPT"]).read_text())
    for path, text in params["write"].items():
        to = Path(path)
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(text)
    for path in params["delete"]:
        Path(path).unlink(missing_ok=True)
    time.sleep(params["pause_seconds"])  # as it is told
    if params["terminal"]:
        sys.exit(65)
    if attempt["retry_count"] < params["fail_attempts"]:
        sys.exit("the params ask for it")


if __name__ == "__main__":
    main()
