"""Making what the recipes describe: Go compiles, the Maven registry delivers."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from perago.dev.cache import Cache, sha256
from perago.dev.commands import CommandLine
from perago.dev.errors import BuildFailedError, WrongContentError
from perago.dev.progress import ProgressReporter
from perago.dev.recipes import GoRecipe, JarRecipe, Recipe
from perago.dev.tools import Tools
from perago.dev.unpacking import unpack


@dataclass(frozen=True, slots=True)
class Builder:
    """Makes the content of one directory of the cache."""

    cache: Cache
    tools: Tools
    narrator: ProgressReporter

    def make(self, recipe: Recipe, directory: Path) -> None:
        """Fill the directory with the programs of the recipe."""
        self.cache.log(recipe.key).write_bytes(b"")
        if isinstance(recipe, GoRecipe):
            self._compile(recipe, directory)
        else:
            self._fetch(recipe, directory)

    def _compile(self, recipe: GoRecipe, directory: Path) -> None:
        log = self.cache.log(recipe.key)
        go = str(self.tools.go())
        # The environment's own proxy and checksum settings stay as they are.
        environ = {**self.tools.environ, "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}
        paths = [path for _, path in recipe.packages]
        title = f"{recipe.name} {recipe.version}"
        with tempfile.TemporaryDirectory(prefix="perago-go-") as folder:
            module = Path(folder)
            for name, content in recipe.module().items():
                (module / name).write_bytes(content)
            listed = module / "packages.txt"
            with self.narrator.step(f"fetching the sources of {title}") as step:
                list_them = 'exec "$0" list -mod=readonly -deps "$@" >packages.txt'
                words = ["/bin/sh", "-c", list_them, go, *paths]
                CommandLine(words, module, environ).run(log, step)
            total = listed.read_bytes().count(b"\n")
            with self.narrator.step(f"compiling {title} (minutes, once)", total) as step:
                words = [go, "build", "-v", *recipe.flags, "-o", f"{directory}/", *paths]
                CommandLine(words, module, environ).run(log, step)

    def _fetch(self, recipe: JarRecipe, directory: Path) -> None:
        jar = directory / "boot.jar"
        try:
            self._run(recipe, jar, [*self.tools.maven_artifact(), recipe.coordinate, str(jar)])
        except BuildFailedError:
            # Where only a mirror is reachable, it is Maven's own settings that know it.
            maven = shutil.which("mvn", path=self.tools.environ.get("PATH"))
            if not maven:
                raise
            self._run(recipe, jar, _maven_words(maven, recipe, directory))
            next(directory.glob("*-boot.jar")).rename(jar)
        _insist(recipe.sha256, sha256(jar), recipe.coordinate)
        unpack(jar, directory / recipe.name)
        _insist(recipe.unpacked_sha256, sha256(directory / recipe.name), f"{recipe.name}, unpacked")
        jar.unlink()

    def _run(self, recipe: JarRecipe, file: Path, words: list[str]) -> None:
        command = CommandLine(words, file.parent, self.tools.environ)
        title = f"fetching {recipe.name} {recipe.version}"
        with self.narrator.step(title, recipe.size) as step:
            command.run(self.cache.log(recipe.key), step, lambda: _size(file))


def _maven_words(maven: str, recipe: JarRecipe, directory: Path) -> list[str]:
    group, artifact, extension, classifier, version = recipe.coordinate.split(":")
    return [
        maven,
        "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy",
        "--batch-mode",
        f"-Dartifact={group}:{artifact}:{version}:{extension}:{classifier}",
        f"-DoutputDirectory={directory}",
    ]


def _insist(pinned: str, found: str, what: str) -> None:
    if found != pinned:
        raise WrongContentError(
            f"{what} has SHA-256 {found} instead of {pinned}",
            remedy="check the proxy or mirror it came through and try again",
        )


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0
