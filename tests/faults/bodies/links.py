"""Bodies that leave links: in place of files and directories, out of the workspace and into it."""

from __future__ import annotations

import ctypes
import os
import shutil
import threading

from tests.faults.bodies.body import EITHER, FAILS, Body, Scene, body, more, plus

__all__ = ["Body"]
SYMLINK = r"^diff: .*does not support symlinks: .*{}"
HARD = r"^diff: .*does not support hard links to outside: .*{}"


# --- symbolic links -----------------------------------------------------------------------------

LIBC = ctypes.CDLL(None, use_errno=True)
AT_FDCWD, RENAME_EXCHANGE = -100, 2


@body("link/file to outside", FAILS, SYMLINK.format("leak"), everywhere=True)
def file_outside(scene: Scene) -> None:
    (scene.workspace / "leak").symlink_to(scene.outside / "in.txt")


@body("link/file to a file nobody may read", FAILS, SYMLINK.format("leak"))
def file_closed(scene: Scene) -> None:
    (scene.workspace / "leak").symlink_to(scene.outside / "closed")


@body("link/relative, inside", FAILS, SYMLINK.format("again.txt"))
def relative_inside(scene: Scene) -> None:
    (scene.workspace / "again.txt").symlink_to("d/one.txt")


@body("link/directory to outside", FAILS, SYMLINK.format("leak"), everywhere=True, worker=True)
def directory_outside(scene: Scene) -> None:
    (scene.workspace / "leak").symlink_to(scene.outside, target_is_directory=True)


@body("link/deep directory to outside", FAILS, SYMLINK.format("d/deep/leak"))
def deep_directory(scene: Scene) -> None:
    (scene.workspace / "d" / "deep" / "leak").symlink_to(scene.outside / "table")


@body("link/loop", FAILS, SYMLINK.format("loop"))
def loop(scene: Scene) -> None:
    (scene.workspace / "loop-a").symlink_to("loop-b")
    (scene.workspace / "loop-b").symlink_to("loop-a")


@body("link/to the workspace itself", FAILS, SYMLINK.format("self"))
def to_itself(scene: Scene) -> None:
    (scene.workspace / "d" / "self").symlink_to("..")


@body("link/dangling", FAILS, SYMLINK.format("dangling"), everywhere=True)
def dangling(scene: Scene) -> None:
    (scene.workspace / "dangling").symlink_to(scene.scratch / "nowhere")


@body("link/input file by an equal one outside", FAILS, SYMLINK.format("in.bin"))
def input_file(scene: Scene) -> None:
    """Who follows it sees nothing changed."""
    (scene.workspace / "in.bin").unlink()
    (scene.workspace / "in.bin").symlink_to(scene.outside / "in.bin")


@body("link/input directory by a dataset", FAILS, SYMLINK.format("d"), everywhere=True)
def input_directory(scene: Scene) -> None:
    shutil.rmtree(scene.workspace / "d")
    (scene.workspace / "d").symlink_to(scene.outside / "table")


@body("link/name that spoils a log", FAILS, r"^diff: .*symlinks: 'a\\n\\x1b\[31mb'")
def ugly_name(scene: Scene) -> None:
    (scene.workspace / "a\n\x1b[31mb").symlink_to(scene.outside)


@body("link/among what is excluded", everywhere=True)
def excluded(scene: Scene) -> None:
    """Scratch space is the author's own; what it links to is not."""
    (scene.workspace / "skipped").mkdir()
    (scene.workspace / "skipped" / "leak").symlink_to(scene.outside)
    (scene.workspace / "skipped" / "file").symlink_to(scene.outside / "in.txt")


@body("link/left by a read-only task", task="look", everywhere=True)
def read_only(scene: Scene) -> None:
    shutil.rmtree(scene.workspace / "d")
    (scene.workspace / "d").symlink_to(scene.outside / "table")
    (scene.workspace / "leak").symlink_to(scene.outside)


@body("link/ten thousand", FAILS, SYMLINK.format(""))
def ten_thousand(scene: Scene) -> None:
    for number in range(10_000):
        (scene.workspace / f"link-{number}").symlink_to(scene.outside / "table")


def exchange(one: str, other: str) -> bool:
    """Swap two names in one act: nobody ever finds either of them missing."""
    first, second = os.fsencode(one), os.fsencode(other)
    done: int = LIBC.renameat2(AT_FDCWD, first, AT_FDCWD, second, RENAME_EXCHANGE)
    return done == 0


@body("link/a directory swapped for one again and again", EITHER, everywhere=True, quick=True)
def directory_swapped(scene: Scene) -> None:
    """Whoever lists it as a directory may open it as a link."""
    here, aside = str(scene.workspace / "d"), str(scene.attempt_dir / ".perago-aside")
    going_on, target = scene.going_on(), str(scene.outside / "table")

    def swap() -> None:
        os.symlink(target, aside)
        while going_on() and exchange(here, aside):
            pass

    threading.Thread(target=swap, daemon=True).start()


@body("link/a file swapped for one again and again", EITHER, everywhere=True)
def file_swapped(scene: Scene) -> None:
    here, aside = str(scene.workspace / "in.bin"), str(scene.attempt_dir / ".perago-aside")
    going_on, target = scene.going_on(), str(scene.outside / "in.txt")

    def swap() -> None:
        os.symlink(target, aside)
        while going_on() and exchange(here, aside):
            pass

    threading.Thread(target=swap, daemon=True).start()


@body("link/swapped by a process of its own", EITHER, everywhere=True)
def swapped_by_a_child(scene: Scene) -> None:
    """Directories that a removal walks down become links, in another process at full speed."""
    for number in range(50):
        (scene.workspace / f"sub{number}" / "deep").mkdir(parents=True)
        (scene.workspace / f"sub{number}" / "deep" / "file").write_bytes(b"x")
    going_on, target = scene.going_on(), str(scene.outside)
    if os.fork():
        return
    os.setsid()
    number = 0
    while going_on():
        number = (number + 1) % 50
        here = f"{scene.workspace}/sub{number}"
        try:
            os.rename(here, f"{here}-aside")
            os.symlink(target, here)
        except OSError:
            if not os.path.isdir(scene.workspace):
                break
    os._exit(0)


# --- hard links ---------------------------------------------------------------------------------


@body("hard link/to a file outside", FAILS, HARD.format("hard"), loose=True, everywhere=True)
def hard_outside(scene: Scene) -> None:
    os.link(scene.outside / "in.txt", scene.workspace / "hard")


@body("hard link/to a file of mode 000", FAILS, HARD.format("hard"), loose=True, everywhere=True)
def hard_closed(scene: Scene) -> None:
    """A removal that changes modes to get at it would change the other name too."""
    os.link(scene.outside / "closed", scene.workspace / "hard")


@body("hard link/in place of an equal input", FAILS, HARD.format("in.bin"), loose=True, quick=True)
def hard_input(scene: Scene) -> None:
    (scene.workspace / "in.bin").unlink()
    os.link(scene.outside / "in-again.bin", scene.workspace / "in.bin")


@body("hard link/of an input file, kept outside", FAILS, HARD.format("in.bin"), everywhere=True)
def hard_kept(scene: Scene) -> None:
    os.link(scene.workspace / "in.bin", scene.elsewhere / "kept.bin")


@body("hard link/of the marker", EITHER, tree=more(hard=b""), valid=lambda path, _: path == "hard")
def hard_marker(scene: Scene) -> None:
    os.link(scene.marker, scene.workspace / "hard")


@body("hard link/twice inside", tree=plus({"twin-a": b"twin\n", "d/twin-b": b"twin\n"}))
def hard_inside(scene: Scene) -> None:
    (scene.workspace / "twin-a").write_bytes(b"twin\n")
    os.link(scene.workspace / "twin-a", scene.workspace / "d" / "twin-b")


@body("hard link/of an input file, inside", tree=plus({"again.bin": bytes(range(256)) * 256}))
def hard_input_inside(scene: Scene) -> None:
    os.link(scene.workspace / "in.bin", scene.workspace / "again.bin")


@body("hard link/among what is excluded", loose=True, everywhere=True)
def hard_excluded(scene: Scene) -> None:
    (scene.workspace / "skipped").mkdir()
    os.link(scene.outside / "read-only", scene.workspace / "skipped" / "hard")
