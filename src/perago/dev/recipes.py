"""What is made, from what, in which exact version.

A Go recipe is a module under ``modules/``: its ``go.sum`` is committed, so every build is checked
against the sources that were seen when the version was chosen. To move to another version, edit
its ``go.mod``, run ``go mod tidy`` there, and change the version here.
"""

from __future__ import annotations

import hashlib
import platform
from dataclasses import dataclass
from importlib.resources import files

MODULE_FILES = ("go.mod", "go.sum", "tools.go")


@dataclass(frozen=True, slots=True)
class GoRecipe:
    """Programs compiled from one Go module."""

    name: str
    version: str
    packages: tuple[tuple[str, str], ...]
    version_variable: str

    @property
    def programs(self) -> tuple[str, ...]:
        return tuple(program for program, _ in self.packages)

    @property
    def key(self) -> str:
        """Name the place in the cache; a home shared by two kinds of machine has both."""
        system = f"{platform.system()}-{platform.machine()}".lower()
        return f"{self.name}-{self.version}-{system}"

    def module(self) -> dict[str, bytes]:
        """Read the files of the module, by name."""
        folder = files("perago.dev") / "modules" / self.name
        return {name: (folder / name).read_bytes() for name in MODULE_FILES}

    @property
    def flags(self) -> tuple[str, ...]:
        """Ask for what the projects' own releases are: static, and without machine paths."""
        stamp = f"-s -w -X {self.version_variable}={self.version}"
        return ("-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", stamp)

    @property
    def fingerprint(self) -> str:
        """Identify everything that decides the result, but the compiler."""
        parts = [*self.module().values(), repr((self.packages, self.flags)).encode()]
        return hashlib.sha256(b"\0".join(parts)).hexdigest()


@dataclass(frozen=True, slots=True)
class JarRecipe:
    """One published Spring Boot jar, unpacked; both are the same bytes for everybody."""

    name: str
    version: str
    coordinate: str
    size: int
    sha256: str
    unpacked_sha256: str

    @property
    def programs(self) -> tuple[str, ...]:
        """Name the one directory it is unpacked to."""
        return (self.name,)

    @property
    def key(self) -> str:
        return f"{self.name}-{self.version}"

    @property
    def fingerprint(self) -> str:
        return f"{self.sha256}-{self.unpacked_sha256}"


Recipe = GoRecipe | JarRecipe

LAKEFS = GoRecipe(
    name="lakefs",
    version="1.84.0",
    packages=(
        ("lakefs", "github.com/treeverse/lakefs/cmd/lakefs"),
        ("lakectl", "github.com/treeverse/lakefs/cmd/lakectl"),
    ),
    version_variable="github.com/treeverse/lakefs/pkg/version.Version",
)
VERSITYGW = GoRecipe(
    name="versitygw",
    version="1.8.0",
    packages=(("versitygw", "github.com/versity/versitygw/cmd/versitygw"),),
    version_variable="main.Version",
)
CONDUCTOR = JarRecipe(
    name="conductor",
    version="3.32.3",
    coordinate="org.conductoross:conductor-server:jar:boot:3.32.3",
    size=457_760_812,
    sha256="6b1615a5beb82bbbfa05219d0f1b84440aa8c0bef1371662803ef5588d7d507b",
    unpacked_sha256="8b22fb7ebbf8f9495f475cc0b89b91aceb02060b1aa522cf6bc12be1de975a36",
)


@dataclass(frozen=True, slots=True)
class ServerProgram:
    """A file that is run, and where a person may say to take it from."""

    file: str
    recipe: Recipe
    variable: str


PROGRAMS: dict[str, ServerProgram] = {
    "lakefs": ServerProgram("lakefs", LAKEFS, "PERAGO_DEV_LAKEFS_BINARY"),
    "lakectl": ServerProgram("lakectl", LAKEFS, "PERAGO_DEV_LAKECTL_BINARY"),
    "versitygw": ServerProgram("versitygw", VERSITYGW, "PERAGO_DEV_VERSITYGW_BINARY"),
    "conductor": ServerProgram("conductor", CONDUCTOR, "PERAGO_DEV_CONDUCTOR_JAR"),
}
