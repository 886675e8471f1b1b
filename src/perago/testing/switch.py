"""Puts faults between an attempt and its world; after a crash the power is off.

A killed process does nothing more, so once a fault has crashed the attempt every further call on
any service raises too: no cleanup, no report, just what was there at that instant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from perago.ports import AttemptDirs, Broker, Journal, Ledger, Store
from perago.protocol.events import Event
from perago.testing.faults import Crashed, Fault, Scene

S = TypeVar("S")


class Switch:
    """One attempt's connection to its services."""

    def __init__(self, faults: Sequence[Fault], scene: Scene) -> None:
        self._faults = faults
        self._scene = scene
        self._off = False

    def store(self, store: Store) -> Store:
        """Connect a store whose calls can be spoiled."""
        return cast("Store", _Wired(store, self._through))

    def broker(self, broker: Broker) -> Broker:
        """Connect a broker."""
        return cast("Broker", _Wired(broker, self._plain))

    def attempt_dirs(self, attempt_dirs: AttemptDirs) -> AttemptDirs:
        """Connect attempt directories."""
        return cast("AttemptDirs", _Wired(attempt_dirs, self._plain))

    def ledger(self, ledger: Ledger) -> Ledger:
        """Connect a ledger."""
        return cast("Ledger", _Wired(ledger, self._plain))

    def journal(self, journal: Journal) -> Journal:
        """Connect the journal: each event is a point where something may happen."""
        return _Points(journal, self._reach)

    def _reach(self, point: str) -> None:
        self._alive()
        for fault in self._faults:
            try:
                fault.at(point, self._scene)
            except Crashed:
                self._off = True
                raise

    def _plain(self, _: str, action: Callable[[], object]) -> object:
        self._alive()
        return action()

    def _through(self, call: str, action: Callable[[], object]) -> object:
        self._alive()
        for fault in self._faults:
            action = _around(fault, call, action)
        return action()

    def _alive(self) -> None:
        if self._off:
            raise Crashed


class _Wired:
    """Any service, with every method call led through the switch."""

    def __init__(
        self, inner: object, through: Callable[[str, Callable[[], object]], object]
    ) -> None:
        self._inner = inner
        self._through = through

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not callable(found):
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            return self._through(name, lambda: found(*args, **kwargs))

        return call


class _Points:
    """A journal that tells the switch first."""

    def __init__(self, inner: Journal, reach: Callable[[str], None]) -> None:
        self._inner = inner
        self._reach = reach

    def event(self, event: Event) -> None:
        """Record that a point was reached, then let the faults act."""
        self._inner.event(event)
        self._reach(event.title)

    def progress(self, phase: str, done: int, total: int) -> None:
        """Pass on."""
        self._inner.progress(phase, done, total)


def _around(fault: Fault, call: str, action: Callable[[], object]) -> Callable[[], object]:
    return lambda: fault.around(call, action)
