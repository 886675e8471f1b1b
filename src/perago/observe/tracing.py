"""Traces: one span per attempt, one below it per phase, made while the attempt runs.

The spans are current while their phase lasts, so that an author's own spans in the body hang
below it. Nothing of OpenTelemetry is imported unless it is to be used.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from perago.observe.secrets import Secrets
from perago.observe.telemetry import Warn, attempt_to, exported, require_http, resource_of
from perago.ports import Journal
from perago.protocol.values import Claim
from perago.redaction import hide
from perago.settings import Settings, keys_lent

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

_FLUSH_MILLIS: Final = 500.0
"""Executors are ended with SIGKILL: what waits longer than this may never be sent."""
_starting = threading.Lock()
_started: dict[int, AttemptTracing] = {}
Tell = Callable[[dict[str, object]], None]


class AttemptTracing:
    """What makes spans in this process, or does nothing at no cost."""

    def __init__(self, provider: TracerProvider | None, secrets: Secrets) -> None:
        self._provider = provider
        self._secrets = secrets

    @contextmanager
    def attempt(
        self, journal: Journal, claim: Claim, tell: Tell = lambda _: None
    ) -> Iterator[Journal]:
        """Return the journal to run this attempt with; ``tell`` hears where its own span is."""
        if self._provider is None:
            yield journal
            return
        from perago.observe.spans import AttemptSpans  # noqa: PLC0415 - needs the extra

        spans = AttemptSpans(self._provider, self._secrets, journal, claim)
        tell({"event": "traced", **spans.place()})
        try:
            yield spans
        finally:
            spans.end()

    @contextmanager
    def report(self, journal: Journal, claim: Claim) -> Iterator[Journal]:
        """Return the journal to report this attempt with; ``claim.trace`` is its own span."""
        if self._provider is None:
            yield journal
            return
        from perago.observe.spans import ReportSpan  # noqa: PLC0415 - needs the extra

        span = ReportSpan(self._provider, self._secrets, journal, claim)
        try:
            yield span
        finally:
            span.end()

    def flush(self, timeout_seconds: float) -> None:
        """Send what waits."""
        if self._provider is not None:
            self._provider.force_flush(round(timeout_seconds * 1000))


def start(settings: Settings, warn: Warn | None = None) -> AttemptTracing:
    """Get this process ready to trace; all executors of a process share one."""
    with _starting:
        found = _started.get(os.getpid())
        if found is None:
            provider = None
            if exported("traces", os.environ):
                provider = attempt_to(lambda: _provider(settings), "traces", warn or _to_stderr)
            found = _started[os.getpid()] = AttemptTracing(provider, Secrets.of(settings))
        return found


def _provider(settings: Settings) -> Any:
    require_http("traces", os.environ)
    from opentelemetry import trace  # noqa: PLC0415 - needs the extra
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415 - as above
        OTLPSpanExporter,
    )
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 - as above
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415 - as above

    given = os.environ.get("OTEL_BSP_SCHEDULE_DELAY", "").strip()
    delay = None if given else _FLUSH_MILLIS
    provider = TracerProvider(resource=resource_of(settings))
    with keys_lent(os.environ, settings.telemetry.variables):
        exporter = OTLPSpanExporter()
    provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=delay))
    # An author's `trace.get_tracer(...)` finds it, unless their module has set one of its own.
    trace.set_tracer_provider(provider)
    return provider


def _to_stderr(text: str) -> None:
    sys.stderr.write(f"warning: {hide(text)}\n")
