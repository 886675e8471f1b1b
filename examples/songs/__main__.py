"""``make songs``: Python, a shell script, TypeScript, Spark and two people in one workflow."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from examples.showing import console, perago, what_next
from tests.typescript.project import Node

HERE = Path("examples/songs")
MODULES = ("examples.songs.tasks", f"{HERE}/songs.toml")
CORRECTIONS = {"key": "quay", "see": "sea", "peek": "peak", "song": "sung"}
WAITING = 5
"""The exit code of a run that has come to a person."""


def main() -> int:
    """Run the workflow, do what its two people do, and show what came of it."""
    arguments = _arguments()
    scratch = arguments.scratch.absolute()
    console.rule("[bold]songs that a machine heard", align="left")
    console.print(
        "Python writes down what was heard, a shell script tidies it, TypeScript lists the words\n"
        "that sound like others. Then a person has to listen: the run waits.\n"
    )
    path = Node.at(scratch / "bin").path
    manifest = _typescript(scratch, path, arguments.package)
    flow, modules = f"{HERE}/workflow.json", (*MODULES, str(manifest))
    code = perago("run", flow, *modules, "--repo", "songs", PATH=path)
    if code != WAITING:
        return code
    return _ada(scratch / "fix", path) or _ben(path)


def _ada(taken: Path, path: str) -> int:
    """Correct the songs."""
    shutil.rmtree(taken, ignore_errors=True)
    console.print("\n[bold]ada listens[/bold], corrects the words and says how many it were:\n")
    ada = {"PERAGO_PERSON": "ada", "PATH": path}
    if code := perago("human", "take", "correct", str(taken), **ada):
        return code
    corrected = correct(taken / "workspace")
    perago("human", "diff", str(taken), **ada)
    submit = ("human", "submit", str(taken), "--result", f"corrected={corrected}")
    code = perago(*submit, **ada)
    return 0 if code == WAITING else code or 1


def _ben(path: str) -> int:
    """Release them."""
    console.print("\n[bold]ben looks[/bold] at what changed, and approves that very commit:\n")
    ben = {"PERAGO_PERSON": "ben", "PATH": path}
    perago("human", "show", "release", **ben)
    if code := perago("human", "approve", "release", "--yes", "--comment", "sounds right", **ben):
        return code
    console.print()
    perago("log", "songs", "-n", "8")
    what_next(_NEXT)
    return 0


def correct(workspace: Path) -> int:
    """Do what a person does: every doubt is settled, and the list of them removed."""
    doubts = (workspace / "doubts.txt").read_text().splitlines()
    for doubt in doubts:
        song, _, _ = doubt.partition(":")
        word = doubt.rpartition(": ")[2].partition(",")[0]
        file = workspace / "lyrics" / song
        lines = [
            " ".join(CORRECTIONS[each] if each == word else each for each in line.split(" "))
            for line in file.read_text().splitlines()
        ]
        file.write_text("\n".join(lines) + "\n")
    (workspace / "doubts.txt").unlink()
    return len(doubts)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make songs ARGS=...", description=main.__doc__)
    parser.add_argument(
        "--scratch", type=Path, default=Path(".cache/songs"), help="where things are put"
    )
    parser.add_argument("--package", type=Path, help="the TypeScript package; that in dist/")
    return parser.parse_args()


def _typescript(scratch: Path, path: str, packed: Path | None) -> Path:
    """Install the package of Perago beside the step in TypeScript, and make its manifest."""
    packed = packed or max(Path("dist").glob("perago-*.tgz"), default=None)
    if packed is None:
        sys.exit("error: the TypeScript package is not built; run: make songs")
    project = scratch / "typescript"
    project.mkdir(parents=True, exist_ok=True)
    zod = json.loads(Path("typescript/package.json").read_text())["devDependencies"]["zod"]
    needs = {"perago": f"file:{packed.absolute()}", "zod": zod}
    wanted = {"name": "songs", "private": True, "type": "module", "dependencies": needs}
    (project / "package.json").write_text(json.dumps(wanted))
    shutil.copy(HERE / "doubts.ts", project / "doubts.ts")
    quiet = {"npm_config_update_notifier": "false", "npm_config_loglevel": "error"}
    for words in (
        ("npm", "install", "--no-audit", "--no-fund"),
        ("npx", "perago", "manifest", "doubts.ts"),
    ):
        environment = os.environ | {"PATH": path} | quiet
        done = subprocess.run(words, cwd=project, env=environment, check=False)  # noqa: S603
        if done.returncode:
            sys.exit(f"error: {' '.join(words)} failed")
    return project / "doubts.toml"


_NEXT = (
    ("perago runs", "the run, whose id 'perago inspect' takes"),
    ("perago diff --repo songs", "what the newest commit changed"),
    ("perago graph examples/songs/workflow.json", "the workflow as a picture"),
)

if __name__ == "__main__":
    sys.exit(main())
