"""Exit codes, documented in ``docs/reference/exit-codes.md``."""

from __future__ import annotations

from perago.errors import (
    BrokerError,
    LedgerUnavailableError,
    PeragoError,
    RuntimeConfigError,
    StoreError,
    TaskDefinitionError,
    TaskInputError,
    UsageError,
    WorkflowDefinitionError,
    WorkspaceError,
)

OK = 0
FAILED = 1
USAGE = 2
CONFIGURATION = 3
UNREACHABLE = 4
WAITING = 5
"""A run goes on when a person has done a step."""
INTERRUPTED = 130

_CODES: tuple[tuple[type[PeragoError], int], ...] = (
    (UsageError, USAGE),
    (TaskDefinitionError, USAGE),
    (WorkflowDefinitionError, USAGE),
    (TaskInputError, USAGE),
    (WorkspaceError, USAGE),
    (RuntimeConfigError, CONFIGURATION),
    (StoreError, UNREACHABLE),
    (BrokerError, UNREACHABLE),
    (LedgerUnavailableError, UNREACHABLE),
)


def exit_code(error: PeragoError) -> int:
    """Map an error to the code that scripts can rely on."""
    for kind, code in _CODES:
        if isinstance(error, kind):
            return code
    return FAILED
