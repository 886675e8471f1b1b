"""What Spark raises, told in one sentence: one table for the whole package."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from perago.errors import PeragoError, StaleAttemptError, TaskFailed

# "[ERROR_CLASS] what happened SQLSTATE: 42P01", the part of a Java trace that is for people.
_TOLD = re.compile(r"\[(?P<name>[A-Z0-9_.]+)\] (?P<text>.+?)(?: SQLSTATE: \w{5}\b|$)", re.DOTALL)
_CAUSED = re.compile(r"^Caused by: (?P<text>.+)$", re.MULTILINE)
_JAVA = re.compile(r"^: (?P<text>.+)$", re.MULTILINE)
_PYTHON = re.compile(r"^(?P<text>\w+(?:\.\w+)*(?:Error|Exception)\b.*)$", re.MULTILINE)
_LONGEST = 300
_UNAVAILABLE = "StatusCode.UNAVAILABLE"
_SERVER_GONE = "the Spark Connect server is gone, or cannot be reached any more"
_GONE = "the JVM is gone; it may have run out of memory (spark.driver.memory)"


@contextmanager
def explained() -> Iterator[None]:
    """Turn an error of Spark into one of ours; the original stays behind it, for the log."""
    try:
        yield
    except PeragoError:
        raise
    except Exception as error:
        if (text := sentence(error)) is None:
            raise
        if is_cancelled(text):
            raise StaleAttemptError(f"Spark: {text}") from error
        raise TaskFailed(f"Spark: {text}") from error


def is_cancelled(text: str) -> bool:
    """Return whether a job ended because it was cancelled."""
    return "JOB_CANCELLED" in text or "OPERATION_CANCELED" in text


def sentence(error: BaseException) -> str | None:
    """Say in one line what went wrong, or None when it is not an error of Spark."""
    refused = isinstance(error, ConnectionError) and _raised_by_py4j(error)
    if not refused and not type(error).__module__.startswith(("pyspark.", "py4j.", "grpc.")):
        return None
    text, kind = str(error), type(error).__name__
    if _UNAVAILABLE in text or _UNAVAILABLE in str(error.__cause__):
        return _SERVER_GONE
    # A bare Py4JError says only which call it was: there was nobody to answer it.
    if refused or kind == "Py4JNetworkError" or (kind == "Py4JError" and "Trace:" not in text):
        return _GONE
    if kind == "PythonException" and (found := _PYTHON.findall(text)):
        return _one_line(found[-1])
    if told := _TOLD.search(text):
        return _one_line(f"[{told['name']}] {told['text']}")
    match = _CAUSED.search(text) or _JAVA.search(text)
    return _one_line(match["text"] if match else text) or kind


def _raised_by_py4j(error: BaseException) -> bool:
    """Return whether a call to the JVM failed, and not one of the author's own connections."""
    frames = traceback.extract_tb(error.__traceback__)
    return any("py4j" in Path(frame.filename).parts for frame in frames)


def _one_line(text: str) -> str:
    """Join the first lines, up to the plan or the stack that follows them."""
    lines = []
    for line in text.splitlines():
        if line.startswith(("'", "+-", "\tat ", "== ")) or not line.strip():
            break
        lines.append(line.strip())
    joined = " ".join(lines)
    return joined if len(joined) <= _LONGEST else joined[: _LONGEST - 1] + "…"
