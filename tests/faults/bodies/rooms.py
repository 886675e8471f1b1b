"""Bodies that take away or replace the workspace directory, the attempt directory, the marker."""

from __future__ import annotations

import json
import os
import shutil
import threading

from tests.faults.bodies import canary
from tests.faults.bodies.body import EITHER, FAILS, Body, Scene, body, more

__all__ = ["Body"]
REFUSED = r"^(body|result model|post guardrail|diff|stage): "
"""Whoever notices first that the directory is not the one that was made."""


# --- the workspace directory ------------------------------------------------------------------


@body("root/link to a dataset", FAILS, REFUSED, everywhere=True, quick=True, worker=True)
def link_to_a_dataset(scene: Scene) -> None:
    shutil.rmtree(scene.workspace)
    scene.workspace.symlink_to(scene.outside)


@body("root/link to a dataset, read-only task", EITHER, REFUSED, everywhere=True, task="look")
def link_to_a_dataset_read_only(scene: Scene) -> None:
    link_to_a_dataset(scene)


@body("root/link to a dataset, and the body fails", FAILS, "^body: .*enough", everywhere=True)
def link_to_a_dataset_and_fail(scene: Scene) -> None:
    link_to_a_dataset(scene)
    raise RuntimeError("enough")


@body("root/relative link to a dataset", FAILS, REFUSED)
def relative_link(scene: Scene) -> None:
    shutil.rmtree(scene.workspace)
    scene.workspace.symlink_to(os.path.relpath(scene.outside, scene.attempt_dir))


@body("root/dangling link", FAILS, REFUSED, everywhere=True)
def dangling_link(scene: Scene) -> None:
    shutil.rmtree(scene.workspace)
    scene.workspace.symlink_to(scene.scratch / "nowhere")


@body("root/link to an empty directory", FAILS, REFUSED)
def link_to_empty(scene: Scene) -> None:
    shutil.rmtree(scene.workspace)
    scene.workspace.symlink_to(scene.outside / "empty")


@body("root/link to itself", FAILS, REFUSED)
def link_to_itself(scene: Scene) -> None:
    shutil.rmtree(scene.workspace)
    scene.workspace.symlink_to("workspace")


@body("root/link to the attempt directory", FAILS, REFUSED)
def link_to_room(scene: Scene) -> None:
    shutil.rmtree(scene.workspace)
    scene.workspace.symlink_to(".")


@body("root/link to the directory of all attempts", FAILS, REFUSED, everywhere=True)
def link_to_all_rooms(scene: Scene) -> None:
    shutil.rmtree(scene.workspace)
    scene.workspace.symlink_to("..")


@body("root/link to the parent of the root", FAILS, REFUSED)
def link_to_ground(scene: Scene) -> None:
    shutil.rmtree(scene.workspace)
    scene.workspace.symlink_to(scene.ground)


@body("root/link to where it was moved", FAILS, REFUSED, everywhere=True)
def link_to_moved(scene: Scene) -> None:
    scene.workspace.rename(scene.attempt_dir / "moved")
    scene.workspace.symlink_to("moved")


@body("root/link to a copy outside", FAILS, REFUSED)
def link_to_copy(scene: Scene) -> None:
    copy = scene.elsewhere / "copy"
    shutil.copytree(scene.workspace, copy)
    canary.age(copy)
    scene.watch(copy)
    link = scene.workspace
    shutil.rmtree(link)
    link.symlink_to(copy)


@body("root/moved outside", FAILS, REFUSED, everywhere=True)
def moved_outside(scene: Scene) -> None:
    to = scene.elsewhere / "moved"
    scene.workspace.rename(to)
    canary.age(to)
    scene.watch(to)


@body("root/moved outside, with a link to it", FAILS, REFUSED)
def moved_outside_with_link(scene: Scene) -> None:
    moved_outside(scene)
    scene.workspace.symlink_to(scene.elsewhere / "moved")


@body("root/removed", FAILS, REFUSED, everywhere=True)
def removed(scene: Scene) -> None:
    shutil.rmtree(scene.workspace)


@body("root/made again", EITHER, REFUSED, everywhere=True, tree=lambda _: _made_again())
def made_again(scene: Scene) -> None:
    """Begin with an empty directory of the same name, as a careless author might."""
    shutil.rmtree(scene.workspace)
    scene.workspace.mkdir()
    (scene.workspace / "again.txt").write_bytes(b"again\n")


def _made_again() -> dict[str, bytes]:
    return {
        "data/again.txt": b"again\n",
        "data/skipped/x": b"not for this task\n",
        "other/x.txt": b"of others\n",
    }


@body("root/replaced by a file", FAILS, REFUSED, everywhere=True)
def replaced_by_file(scene: Scene) -> None:
    shutil.rmtree(scene.workspace)
    scene.workspace.write_bytes(b"no directory\n")


@body("root/replaced by a FIFO", FAILS, REFUSED, everywhere=True)
def replaced_by_fifo(scene: Scene) -> None:
    shutil.rmtree(scene.workspace)
    os.mkfifo(scene.workspace)


@body("root/swapped for a link again and again", EITHER, everywhere=True)
def root_swapped(scene: Scene) -> None:
    scene.elsewhere.joinpath("link").symlink_to(scene.outside)
    going_on, here, there = scene.going_on(), str(scene.workspace), str(scene.elsewhere / "link")
    aside = f"{here}-aside"

    def swap() -> None:
        while going_on():
            try:
                os.rename(here, aside)
                os.symlink(str(scene.outside), here)
                os.unlink(here)
                os.rename(aside, here)
            except OSError:
                return

    assert there
    threading.Thread(target=swap, daemon=True).start()


# --- the attempt directory ----------------------------------------------------------------------


@body("attempt directory/renamed", FAILS, REFUSED, everywhere=True, renames=True)
def room_renamed(scene: Scene) -> None:
    scene.attempt_dir.rename(scene.attempt_dir.with_name(f"{scene.attempt_dir.name}-renamed"))


@body("attempt directory/moved outside", FAILS, REFUSED, everywhere=True)
def room_moved(scene: Scene) -> None:
    to = scene.elsewhere / "room"
    scene.attempt_dir.rename(to)
    canary.age(to)
    scene.watch(to)


@body("attempt directory/removed", FAILS, REFUSED, everywhere=True, worker=True)
def room_removed(scene: Scene) -> None:
    shutil.rmtree(scene.attempt_dir)


@body("attempt directory/replaced by a file", FAILS, REFUSED, everywhere=True)
def room_replaced_by_file(scene: Scene) -> None:
    shutil.rmtree(scene.attempt_dir)
    scene.attempt_dir.write_bytes(b"no directory\n")


@body("attempt directory/replaced by a link to a dataset", FAILS, REFUSED, everywhere=True)
def room_link(scene: Scene) -> None:
    shutil.rmtree(scene.attempt_dir)
    scene.attempt_dir.symlink_to(scene.outside)


@body("attempt directory/link to a dataset that looks like one", FAILS, REFUSED, everywhere=True)
def room_link_to_twin(scene: Scene) -> None:
    """Everything a sweep goes by is there: marker, name and workspace."""
    twin = scene.elsewhere / scene.attempt_dir.name
    shutil.copytree(scene.attempt_dir, twin)
    canary.plant(twin / "workspace" / "dataset")
    canary.age(twin)
    scene.watch(twin)
    shutil.rmtree(scene.attempt_dir)
    scene.attempt_dir.symlink_to(twin)


@body(
    "attempt directory/replaced by a dataset",
    FAILS,
    REFUSED,
    everywhere=True,
    quick=True,
    renames=True,
)
def room_dataset(scene: Scene) -> None:
    """What stands there now carries no marker: it is not ours to remove."""
    dataset = scene.elsewhere / "dataset"
    canary.plant(dataset)
    scene.attempt_dir.rename(scene.attempt_dir.with_name("aside"))
    dataset.rename(scene.attempt_dir)
    scene.watch(scene.attempt_dir)


@body(
    "attempt directory/replaced by a dataset, and the executor ends",
    FAILS,
    "^executor died.*exit code 3",
    renames=True,
    worker=True,
)
def room_dataset_and_exit(scene: Scene) -> None:
    """Nor for whoever removes what the dead have left."""
    room_dataset(scene)
    os._exit(3)


@body("attempt directory/something else beside the workspace", EITHER, everywhere=True)
def room_with_more(scene: Scene) -> None:
    (scene.attempt_dir / "temporary" / "deep").mkdir(parents=True)
    (scene.attempt_dir / "temporary" / "deep" / "file").write_bytes(b"x")
    (scene.attempt_dir / "link").symlink_to(scene.outside)


@body("attempt directory/read-only", EITHER, everywhere=True)
def room_read_only(scene: Scene) -> None:
    scene.attempt_dir.chmod(0o555)


@body("attempt directory/the root is closed", EITHER, stays=True)
def all_rooms_closed(scene: Scene) -> None:
    scene.attempt_dir.parent.chmod(0o500)


# --- the marker ---------------------------------------------------------------------------------


@body("marker/removed", EITHER, everywhere=True, stays=True)
def marker_removed(scene: Scene) -> None:
    scene.marker.unlink()


@body("marker/not JSON", EITHER, stays=True)
def marker_garbled(scene: Scene) -> None:
    scene.marker.write_bytes(b"\xff{]")


@body("marker/empty", EITHER, stays=True)
def marker_empty(scene: Scene) -> None:
    scene.marker.write_bytes(b"")


@body("marker/nested too deep", EITHER, stays=True)
def marker_deep(scene: Scene) -> None:
    scene.marker.write_bytes(b"[" * 200_000)


@body("marker/of another owner", EITHER, stays=True)
def marker_of_another(scene: Scene) -> None:
    """Say that a process owns it that lives for ever."""
    found = json.loads(scene.marker.read_text())
    scene.marker.write_text(json.dumps(found | {"owner_pid": 1, "owner_token": ""}))


@body("marker/impossible values", EITHER, stays=True)
def marker_impossible(scene: Scene) -> None:
    strange = {"owner_pid": 10**30, "owner_token": [1], "execution_id": {}, "started_at": "x"}
    scene.marker.write_text(json.dumps(strange))


@body("marker/link to a canary", EITHER, stays=True, everywhere=True)
def marker_link(scene: Scene) -> None:
    scene.marker.unlink()
    scene.marker.symlink_to(scene.outside / "in.txt")


@body("marker/directory", EITHER, stays=True)
def marker_directory(scene: Scene) -> None:
    scene.marker.unlink()
    scene.marker.mkdir()
    (scene.marker / "file").write_bytes(b"x")


@body("marker/FIFO", EITHER, stays=True, quick=True)
def marker_fifo(scene: Scene) -> None:
    """Whoever opens it to read waits for ever."""
    scene.marker.unlink()
    os.mkfifo(scene.marker)


@body("marker/FIFO, and the executor ends", FAILS, "^executor died.*exit code 3", renames=True)
def marker_fifo_and_exit(scene: Scene) -> None:
    """A directory that cannot be told from somebody else's stays, and ``perago gc`` names it."""
    marker_fifo(scene)
    os._exit(3)


@body("marker/8 GiB", EITHER, stays=True)
def marker_huge(scene: Scene) -> None:
    """Sparse: nothing is written; whoever reads it whole needs the memory."""
    with scene.marker.open("r+b") as file:
        file.truncate(8 << 30)


@body("marker/a file of that name in the workspace", tree=more(kept__file=b"x"))
def marker_in_workspace(scene: Scene) -> None:
    """D1: the name is never mapped, so it is not content."""
    shutil.copy(scene.marker, scene.workspace / scene.marker.name)
    (scene.workspace / "kept").mkdir()
    (scene.workspace / "kept" / "file").write_bytes(b"x")
