"""Bodies that leave a mount in their directory; each case has a mount namespace of its own.

A removal that walks into a mount deletes what was mounted; stopping at another device is not
enough, because a bind mount has the device of what it shows.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.faults.bodies.body import EITHER, FAILS, Body, Register, Scene, body
from tests.patience import LIMIT

__all__ = ["Body"]
REFUSED = r"^(body|result model|post guardrail|diff|stage): "


def _mount(*words: str | Path) -> None:
    subprocess.run(["mount", *map(str, words)], check=True, capture_output=True, timeout=LIMIT)


def _tmpfs(place: Path) -> None:
    _mount("-t", "tmpfs", "-o", "size=1m", "tmpfs", place)


def mounting(
    name: str,
    statuses: frozenset[str] = FAILS,
    *,
    quick: bool = False,
    worker: bool = False,
    task: str = "write",
) -> Register:
    """Register a deed that mounts; what it leaves may stay until its namespace is gone."""
    return body(
        f"mount/{name}",
        statuses,
        REFUSED,
        needs="mounts",
        everywhere=True,
        quick=quick,
        worker=worker,
        task=task,
        stays=True,
    )


@mounting("dataset on a directory", quick=True, worker=True)
def dataset(scene: Scene) -> None:
    (scene.workspace / "mounted").mkdir()
    _mount("--bind", scene.outside, scene.workspace / "mounted")


@mounting("dataset on an input directory")
def dataset_on_input(scene: Scene) -> None:
    _mount("--bind", scene.outside / "table", scene.workspace / "d")


@mounting("dataset on the workspace")
def dataset_on_workspace(scene: Scene) -> None:
    _mount("--bind", scene.outside, scene.workspace)


@mounting("dataset on the workspace of a read-only task", EITHER, task="look")
def dataset_on_workspace_read_only(scene: Scene) -> None:
    _mount("--bind", scene.outside, scene.workspace)


@mounting("dataset on the attempt directory")
def dataset_on_room(scene: Scene) -> None:
    _mount("--bind", scene.outside, scene.attempt_dir)


@mounting("dataset on what is excluded", EITHER)
def dataset_on_excluded(scene: Scene) -> None:
    (scene.workspace / "skipped").mkdir()
    _mount("--bind", scene.outside, scene.workspace / "skipped")


@mounting("dataset, read-only")
def dataset_read_only(scene: Scene) -> None:
    (scene.workspace / "mounted").mkdir()
    _mount("--bind", "-o", "ro", scene.outside, scene.workspace / "mounted")


@mounting("dataset, and the body fails")
def dataset_and_fail(scene: Scene) -> None:
    dataset(scene)
    raise RuntimeError("enough")


@mounting("file on an input file")
def file_on_input(scene: Scene) -> None:
    _mount("--bind", scene.outside / "in.bin", scene.workspace / "in.bin")


@mounting("dataset deep inside")
def dataset_deep(scene: Scene) -> None:
    deep = scene.workspace / "a" / "b" / "c"
    deep.mkdir(parents=True)
    _mount("--bind", scene.outside, deep)


@mounting("workspace on a directory of itself")
def itself(scene: Scene) -> None:
    (scene.workspace / "mounted").mkdir()
    _mount("--bind", scene.workspace, scene.workspace / "mounted")


@mounting("tmpfs on a directory")
def tmpfs(scene: Scene) -> None:
    (scene.workspace / "mounted").mkdir()
    _tmpfs(scene.workspace / "mounted")
    (scene.workspace / "mounted" / "file").write_bytes(b"x")


@mounting("tmpfs on the workspace")
def tmpfs_on_workspace(scene: Scene) -> None:
    _tmpfs(scene.workspace)
    (scene.workspace / "file").write_bytes(b"x")
