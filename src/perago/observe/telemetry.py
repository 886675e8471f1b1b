"""Whether OpenTelemetry is wanted, and its parts made so that no variable can break a command."""

from __future__ import annotations

import importlib.util
import logging
import os
import platform
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, Literal, TypeVar

from perago.settings import Settings

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource

Signal = Literal["traces", "metrics"]
Warn = Callable[[str], None]
T = TypeVar("T")
_PROTOCOL: Final = "http/protobuf"
_EXTRA: Final = "install 'perago[otel]'"


def installed() -> bool:
    """Return whether the extra is there, without importing it."""
    return all(
        importlib.util.find_spec(name) is not None
        for name in ("opentelemetry", "prometheus_client")
    ) and all(
        importlib.util.find_spec(f"opentelemetry.{name}") is not None
        for name in ("sdk", "exporter")
    )


def exported(signal: Signal, environ: Mapping[str, str]) -> bool:
    """Return whether a signal is to be sent, as the variables of OpenTelemetry say.

    Without any of them nothing is: the default address of the specification would be a guess.
    """
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    chosen = environ.get(f"OTEL_{signal.upper()}_EXPORTER", "").strip().lower()
    if chosen:
        return "otlp" in (word.strip() for word in chosen.split(","))
    names = ("OTEL_EXPORTER_OTLP_ENDPOINT", f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT")
    return any(environ.get(name, "").strip() for name in names)


def require_http(signal: Signal, environ: Mapping[str, str]) -> None:
    """Refuse a protocol that is not spoken here."""
    for name in (f"OTEL_EXPORTER_OTLP_{signal.upper()}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        wanted = environ.get(name, "").strip().lower()
        if wanted and wanted != _PROTOCOL:
            raise ValueError(f"{name} is {wanted!r}, and only {_PROTOCOL} is supported here")
        if wanted:
            return


def attempt_to(make: Callable[[], T], what: str, warn: Warn) -> T | None:
    """Make a part of OpenTelemetry; whatever goes wrong is one warning, and None."""
    if not installed():
        warn(f"OpenTelemetry {what} are wanted but off: {_EXTRA}")
        return None
    quieten(warn)
    try:
        return make()
    except Exception as error:  # noqa: BLE001 - a bad variable may raise anything anywhere
        warn(
            f"OpenTelemetry {what} are off: {type(error).__name__}: {error}; "
            "check the variables that begin with OTEL_"
        )
        return None


def quieten(warn: Warn) -> None:
    """Let the library say its first trouble once; its logger would fill the task's own log."""
    logger = logging.getLogger("opentelemetry")
    if not any(isinstance(handler, _Once) for handler in logger.handlers):
        logger.addHandler(_Once(warn))
        logger.propagate = False


class _Once(logging.Handler):
    def __init__(self, warn: Warn) -> None:
        super().__init__(logging.WARNING)
        self._warn: Warn | None = warn

    def emit(self, record: logging.LogRecord) -> None:
        warn, self._warn = self._warn, None
        if warn is not None:
            warn(f"OpenTelemetry: {record.getMessage()} (reported once; see the variables OTEL_*)")


def resource_of(settings: Settings) -> Resource:
    """Name this worker; OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win."""
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource  # noqa: PLC0415 - extra

    ours = Resource(
        {
            "service.name": "perago",
            "service.instance.id": settings.instance_id or f"{platform.node()}-{os.getpid()}",
            "host.name": platform.node(),
        }
    )
    return ours.merge(OTELResourceDetector().detect())
