"""Python functions declared at the top of a module: usable in every session that comes after.

PySpark ties such a function to the first JVM it is used with, and to the kind of session that was
current when its module was imported. An executor process outlives both.
"""

from __future__ import annotations

import copy
from typing import Any, Final

_MARK: Final = "_perago_adopted"


def adopt() -> None:
    """Have declared functions look at the session they are used in; done once per process."""
    from pyspark.sql.udf import UserDefinedFunction  # noqa: PLC0415 - an optional extra
    from pyspark.sql.utils import is_remote  # noqa: PLC0415 - as above

    if hasattr(UserDefinedFunction, _MARK):
        return
    local = UserDefinedFunction.__call__

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_remote():
            return _remote(self)(*args, **kwargs)
        # A copy: another thread may be using the same function in this moment.
        fresh = copy.copy(self)
        fresh._judf_placeholder = None  # noqa: SLF001 - the function as the last JVM knew it
        return local(fresh, *args, **kwargs)

    UserDefinedFunction.__call__ = call  # type: ignore[method-assign]
    setattr(UserDefinedFunction, _MARK, True)


def _remote(function: Any) -> Any:
    from pyspark.sql.connect.udf import UserDefinedFunction  # noqa: PLC0415 - as above

    return UserDefinedFunction(
        function.func,
        returnType=function.returnType,
        name=function._name,  # noqa: SLF001 - it has no public name
        evalType=function.evalType,
        deterministic=function.deterministic,
    )
