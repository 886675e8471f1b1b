"""What can go wrong between asking for a server and having one."""

from __future__ import annotations

from perago.errors import PeragoError


class BuildFailedError(PeragoError):
    """A server or a tool could not be built or fetched."""


class WrongContentError(BuildFailedError):
    """What was fetched is not what the recipe pins."""


class ServerNotStartedError(PeragoError):
    """A server was started and did not come up."""


class NotRunningError(PeragoError):
    """The instance or the server that was asked for is not there."""
