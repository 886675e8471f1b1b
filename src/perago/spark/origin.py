"""Where a Spark job finds a store and an event log: a value that may travel, without secrets.

Workers open the store themselves, with the keys of their own environment (I7).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from perago.errors import UsageError
from perago.filesystem import home
from perago.history.event_log import EventLog
from perago.settings import load_settings
from perago.stores import opening
from perago.stores.embedded import EmbeddedStore


@dataclass(frozen=True, slots=True)
class Origin:
    """A home, the directory whose ``.env`` counts, and the kind of store.

    ``store`` is ``embedded``, ``lakefs``, or ``module:function`` that returns one.
    """

    home: str
    directory: str
    store: str = "embedded"

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Origin:
        """Read it from options, completed with the settings as seen from here."""
        directory = Path(options.get("directory", ".")).absolute()
        home = options.get("home") or load_settings(os.environ, directory).home
        return cls(str(Path(home).absolute()), str(directory), options.get("store", "embedded"))

    @property
    def options(self) -> dict[str, str]:
        """Return it as options of the data source."""
        return {"home": self.home, "directory": self.directory, "store": self.store}

    @contextmanager
    def open(self) -> Iterator[Any]:
        """Open the store for as long as the block lasts."""
        store = self._opened()
        try:
            yield store
        finally:
            if hasattr(store, "close"):
                store.close()

    @contextmanager
    def events(self) -> Iterator[EventLog]:
        """Open the event log for as long as the block lasts."""
        path = self._existing() / "events.sqlite"
        log = EventLog(path)
        try:
            yield log
        finally:
            log.close()

    def _opened(self) -> Any:
        if self.store == "lakefs":
            return opening.lakefs_of(load_settings(os.environ, Path(self.directory)))
        if self.store == "embedded":
            return EmbeddedStore(self._existing() / "store")
        module, sign, name = self.store.partition(":")
        if not sign:
            raise UsageError(
                f"there is no kind of store called {self.store!r}",
                remedy="use embedded or lakefs",
            )
        return getattr(import_module(module), name)()

    def _existing(self) -> Path:
        if not Path(self.home).is_dir():
            raise UsageError(
                f"there is no Perago home at {self.home}",
                remedy="give the option 'home', or set PERAGO_HOME",
            )
        home.claim(Path(self.home))
        return Path(self.home)
