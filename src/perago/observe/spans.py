"""The spans of one attempt, made from its journal."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Final

from opentelemetry import context as contexts
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from perago.observe.logs import identity
from perago.observe.secrets import Secrets
from perago.ports import Journal
from perago.protocol.events import (
    Claimed,
    Event,
    MetricRecorded,
    OutcomeDecided,
    PhaseBegan,
    PhaseEnded,
    Traceback,
)
from perago.protocol.values import Claim, Phase
from perago.protocol.values import Status as TaskStatus

_SCOPE: Final = "perago"
Attribute = str | bool | int | float


class AttemptSpans:
    """A journal that keeps the spans of its attempt; all else it passes on.

    Phases begin and end in the thread that runs the attempt, so that is where spans are current.
    """

    def __init__(
        self, provider: TracerProvider, secrets: Secrets, inner: Journal, claim: Claim
    ) -> None:
        self._inner = inner
        self._secrets = secrets
        self._tracer = provider.get_tracer(_SCOPE)
        self._thread = threading.get_ident()
        caller = TraceContextTextMapPropagator().extract(dict(claim.trace), contexts.Context())
        self._root = self._tracer.start_span(
            f"attempt {claim.attempt.task_def_name}",
            context=caller,
            kind=SpanKind.CONSUMER,
            attributes={
                f"perago.{name}": value
                for name, value in _attributes(identity(claim, ""), secrets).items()
                if value != ""
            },
        )
        self._tokens = [contexts.attach(set_span_in_context(self._root, caller))]
        self._phase: Span | None = None

    def event(self, event: Event) -> None:
        """Record, and begin or end the span of a phase."""
        here = threading.get_ident() == self._thread
        if here and not isinstance(event, PhaseBegan):
            self._follow(event)
        self._inner.event(event)
        if here and isinstance(event, PhaseBegan):
            self._begin(str(event.phase))

    def _follow(self, event: Event) -> None:
        match event:
            case PhaseEnded():
                self._end_phase(None)
            case OutcomeDecided():
                self._decided(event)
            case Traceback(text):
                # Named as OpenTelemetry names it, so that backends show it.
                trace = {"exception.stacktrace": self._secrets.hide(text)}
                (self._phase or self._root).add_event("exception", trace)
            case MetricRecorded() | Claimed():
                pass
            case _:
                facts = _attributes(event.facts, self._secrets)
                (self._phase or self._root).add_event(event.title, facts)

    def progress(self, phase: str, done: int, total: int) -> None:
        """Pass on."""
        self._inner.progress(phase, done, total)

    def place(self) -> dict[str, str]:
        """Return where the attempt's own span is, for spans made elsewhere."""
        carrier: dict[str, str] = {}
        TraceContextTextMapPropagator().inject(carrier, set_span_in_context(self._root))
        return carrier

    def end(self) -> None:
        """End what is still open, whatever became of the attempt."""
        self._end_phase("it did not end")
        while self._tokens:
            contexts.detach(self._tokens.pop())
        self._root.end()

    def _begin(self, phase: str) -> None:
        self._end_phase("it did not end")
        self._phase = self._tracer.start_span(phase, attributes={"perago.phase": phase})
        self._tokens.append(contexts.attach(set_span_in_context(self._phase)))

    def _end_phase(self, problem: str | None) -> None:
        if self._phase is None:
            return
        if problem:
            self._phase.set_status(Status(StatusCode.ERROR, self._secrets.hide(problem)))
        contexts.detach(self._tokens.pop())
        self._phase.end()
        self._phase = None

    def _decided(self, outcome: OutcomeDecided) -> None:
        self._root.set_attribute("perago.status", outcome.status)
        if outcome.status != TaskStatus.COMPLETED:
            self._root.set_status(Status(StatusCode.ERROR, self._secrets.hide(outcome.reason)))
            self._end_phase(outcome.reason)


class ReportSpan:
    """A journal that keeps one span below the attempt's: that of its report."""

    def __init__(
        self, provider: TracerProvider, secrets: Secrets, inner: Journal, claim: Claim
    ) -> None:
        self._inner = inner
        self._secrets = secrets
        above = TraceContextTextMapPropagator().extract(dict(claim.trace), contexts.Context())
        phase = str(Phase.REPORT)
        self._span = provider.get_tracer(_SCOPE).start_span(
            phase, context=above, attributes={"perago.phase": phase}
        )

    def event(self, event: Event) -> None:
        """Record; what neither begins nor ends a phase is an event of the span."""
        self._inner.event(event)
        if not isinstance(event, PhaseBegan | PhaseEnded):
            self._span.add_event(event.title, _attributes(event.facts, self._secrets))

    def progress(self, phase: str, done: int, total: int) -> None:
        """Pass on."""
        self._inner.progress(phase, done, total)

    def end(self) -> None:
        """End it."""
        self._span.end()


def _attributes(facts: Mapping[str, object], secrets: Secrets) -> dict[str, Attribute]:
    """Flatten facts: of a list its length, of a mapping nothing but plain values."""
    found: dict[str, Attribute] = {}
    for name, value in facts.items():
        if isinstance(value, bool | int | float):
            found[name] = value
        elif isinstance(value, list | tuple):
            found[name] = len(value)
        elif isinstance(value, str):
            found[name] = secrets.hide(value)
    return found
