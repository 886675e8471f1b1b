"""The process that reads a file for a page: bounded in memory, bytes and time (Z4).

It is started with no key in its environment, is told on its standard input what to read, and says
in JSON on its standard output what it found. It bounds itself before it opens a file: whatever a
file makes a library do ends with this process. Connections and programs are refused where Python is
asked for them; the libraries used here ask the system for none.
"""

from __future__ import annotations

import json
import resource
import sys
from contextlib import suppress
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any, Final, NoReturn

from perago.errors import PeragoError
from perago.protocol.delta_log import active_files
from perago.ui.contents import hex_lines, lines_of, side_by_side, text_of

MOST_LINES: Final = 2000
MOST_HEX: Final = 2048
MOST_ROWS: Final = 50
MOST_COLUMNS: Final = 50
MOST_SAMPLES: Final = 10
MOST_BESIDE: Final = 800
_DENIED: Final = ("socket.", "subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.fork")
_NO_MEMORY: Final = "a preview would need more memory than it may use"


def main() -> None:
    """Read one request and answer it."""
    request = json.loads(sys.stdin.buffer.read())
    _bound(request["memory"], request["seconds"], request["answer"])
    try:
        answer = _answer(request)
    except PeragoError as error:
        answer = {"problem": error.message}
    except MemoryError:
        answer = {"problem": _NO_MEMORY}
    except ModuleNotFoundError as error:
        missing = f"tables need the package {error.name!r}: install 'perago[data]'"
        answer = {"problem": missing}
    except Exception as error:  # noqa: BLE001 - of whatever library reads the file
        answer = {"problem": f"it cannot be read ({type(error).__name__})"}
    sys.stdout.buffer.write(json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace"))


def _bound(memory: int, seconds: int, answer: int) -> None:
    """Take away what reading a file does not need."""
    _limit(resource.RLIMIT_AS, memory)
    _limit(resource.RLIMIT_CPU, seconds)
    _limit(resource.RLIMIT_FSIZE, answer)
    _limit(resource.RLIMIT_CORE, 0)
    sys.addaudithook(_deny)


def _limit(which: int, most: int) -> None:
    with suppress(ValueError, OSError):  # macOS does not know all of them.
        resource.setrlimit(which, (most, most))


def _deny(event: str, _: object) -> None:
    if event.startswith(_DENIED):
        _refuse(event)


def _refuse(event: str) -> NoReturn:
    raise PermissionError(f"a preview needs no {event}")


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    match request["what"]:
        case "text":
            return _text(Path(request["file"]), whole=request["whole"])
        case "hex":
            return {"lines": hex_lines(Path(request["file"]).read_bytes()[:MOST_HEX])}
        case "beside":
            return _beside(request["before"], request["after"], whole=request["whole"])
        case "table":
            return _table(Path(request["root"]), request["table"])
        case "delta":
            log = {name: Path(path).read_text("utf-8") for name, path in request["log"].items()}
            return {"paths": active_files(log)}
        case "rows":
            return _rows(request)
        case other:
            raise ValueError(other)


def _text(path: Path, *, whole: bool) -> dict[str, Any]:
    content = path.read_bytes()
    text = text_of(content, whole=whole)
    if text is None:
        return {"lines": hex_lines(content[:MOST_HEX]), "binary": True}
    return {"lines": lines_of(text)[:MOST_LINES]}


def _beside(before: str | None, after: str | None, *, whole: bool) -> dict[str, Any]:
    texts = [
        text_of(Path(path).read_bytes(), whole=whole) if path else "" for path in (before, after)
    ]
    if None in texts:
        return {"problem": "it is not text in both versions"}
    old, new = (lines_of(text or "")[:MOST_LINES] for text in texts)
    return {"beside": [asdict(row) for row in islice(side_by_side(old, new), MOST_BESIDE)]}


def _keep_small() -> None:
    """Keep pyarrow from importing what it has no use for here: that takes seconds and memory."""
    for name in ("numpy", "pandas"):
        sys.modules[name] = None  # type: ignore[assignment]


def _table(root: Path, table: str) -> dict[str, Any]:
    _keep_small()
    from perago.data.showing import show, use_one_thread  # noqa: PLC0415 - an optional extra

    use_one_thread()
    return asdict(show(root, table, MOST_ROWS, MOST_COLUMNS))


def _rows(request: dict[str, Any]) -> dict[str, Any]:
    _keep_small()
    from perago.data.row_changes import row_changes  # noqa: PLC0415 - an optional extra
    from perago.data.showing import use_one_thread  # noqa: PLC0415 - as above

    use_one_thread()
    before, after = Path(request["before"]), Path(request["after"])
    return asdict(row_changes(before, after, request["table"], request["key"], MOST_SAMPLES))


if __name__ == "__main__":
    main()
