"""Tasks on Spark: what their authors import, and the runtime behind it (X1 to X5).

PySpark itself is imported when the first session is opened, not before.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perago.spark.source import register
    from perago.spark.workspace import SparkWorkspace
    from perago.tasks.spec import SparkSpec

__all__ = ["SparkSpec", "SparkWorkspace", "register"]

_HOME = {
    "SparkSpec": "perago.tasks.spec",
    "SparkWorkspace": "perago.spark.workspace",
    "register": "perago.spark.source",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'perago.spark' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
