"""Where a program comes from: a variable, ``PATH``, the cache, and only then a build."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from perago.dev.builds import Builder
from perago.dev.cache import Cache, flaw
from perago.dev.docker import IMAGES, container_words
from perago.dev.progress import NoProgress, ProgressReporter
from perago.dev.recipes import PROGRAMS, GoRecipe, ServerProgram
from perago.dev.tools import Tools, answer
from perago.errors import RuntimeConfigError


class Sources:
    """Finds or makes the programs, in this order."""

    def __init__(
        self,
        environ: Mapping[str, str] | None = None,
        narrator: ProgressReporter | None = None,
        docker: Path | None = None,
    ) -> None:
        """``docker`` is the directory that containers see, where servers come from images."""
        self._docker = docker
        self._environ = os.environ if environ is None else environ
        self.narrator = narrator or NoProgress()
        self.cache = Cache.of(self._environ)
        self.tools = Tools(self.cache, self.narrator, self._environ)

    def program(self, name: str) -> Path:
        """Return the file of ``lakefs``, ``lakectl``, ``versitygw`` or ``conductor``."""
        wanted = PROGRAMS[name]
        return self._named(wanted) or self._on_path(wanted) or self._made(wanted)

    def at_hand(self, name: str) -> Path | None:
        """Return a program that is here and as it should be; nothing is built or fetched."""
        wanted = PROGRAMS[name]
        if found := self._named(wanted) or self._on_path(wanted):
            return found
        place = self.cache.place(wanted.recipe)
        return None if flaw(place, wanted.recipe) else place / wanted.file

    def words(self, name: str) -> list[str]:
        """Return what to run: the program, or a container where there is an image of it."""
        if self._docker is not None and name in IMAGES:
            return container_words(name, self._docker)
        return [str(self.program(name))]

    def version(self, name: str) -> str:
        """Return which version ``program`` gives; one that a variable names is not asked."""
        wanted = PROGRAMS[name]
        given = self._environ.get(wanted.variable, "").strip()
        return "given" if given else wanted.recipe.version

    def java(self) -> Path:
        """Return a Java that can run Conductor."""
        return self.tools.java()

    def _named(self, wanted: ServerProgram) -> Path | None:
        given = self._environ.get(wanted.variable, "").strip()
        if not given:
            return None
        path = Path(given).expanduser().absolute()
        if not path.is_file():
            raise RuntimeConfigError(
                f"{wanted.variable} names {path}, where there is no file",
                remedy="name the program itself, or unset the variable",
            )
        return path

    def _on_path(self, wanted: ServerProgram) -> Path | None:
        if not isinstance(wanted.recipe, GoRecipe):
            return None
        found = shutil.which(wanted.file, path=self._environ.get("PATH"))
        exact = rf"(?<![\d.]){re.escape(wanted.recipe.version)}(?![\d.])"
        return Path(found) if found and re.search(exact, answer(found, "--version")) else None

    def _made(self, wanted: ServerProgram) -> Path:
        builder = Builder(self.cache, self.tools, self.narrator)
        make = partial(builder.make, wanted.recipe)
        return self.cache.provide(wanted.recipe, make, self.narrator) / wanted.file
