"""Bodies whose names, numbers and depths are a trial."""

from __future__ import annotations

import os

from tests.faults.bodies.body import EITHER, FAILS, Body, Scene, body, plus

__all__ = ["Body"]
LONG = "n" * 255
BIDI = "invoice\u202egnp.txt"
DEEP = "/".join(["d"] * 500) + "/end"


def _write(scene: Scene, name: str | bytes, content: bytes = b"x") -> None:
    path = os.fsencode(scene.workspace) + b"/" + os.fsencode(name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.write(fd, content)
    os.close(fd)


@body("name/255 bytes", tree=plus({LONG: b"x"}))
def long_name(scene: Scene) -> None:
    _write(scene, LONG)


@body("name/longer than a key may be", FAILS, "^diff: .*longer than 1024", everywhere=True)
def long_path(scene: Scene) -> None:
    _write(scene, "/".join([LONG] * 5))


@body("name/not UTF-8", FAILS, r"^diff: .*not valid UTF-8", everywhere=True)
def not_utf8(scene: Scene) -> None:
    _write(scene, b"caf\xe9")


@body("name/directory that is not UTF-8", FAILS, r"^diff: .*not valid UTF-8")
def directory_not_utf8(scene: Scene) -> None:
    _write(scene, b"caf\xe9/file")


@body("name/empty directory that is not UTF-8")
def empty_directory_not_utf8(scene: Scene) -> None:
    """T7: empty directories are no content."""
    os.mkdir(os.fsencode(scene.workspace) + b"/caf\xe9")


@body("name/newline", EITHER, r"^diff: .*\\n", tree=plus({"a\nb": b"x"}))
def newline(scene: Scene) -> None:
    _write(scene, "a\nb")


@body("name/control characters", EITHER, r"^diff: .*\\x1b", tree=plus({"\x1b[2J\x07": b"x"}))
def control(scene: Scene) -> None:
    _write(scene, "\x1b[2J\x07")


@body("name/written right to left", EITHER, r"^diff: .*u202e", tree=plus({BIDI: b"x"}))
def bidirectional(scene: Scene) -> None:
    _write(scene, BIDI)


@body("name/backslash", FAILS, "^diff: .*backslash")
def backslash(scene: Scene) -> None:
    _write(scene, "a\\b")


@body(
    "name/spaces, dots and reserved words",
    tree=plus(
        {" ": b"x", "a ": b"x", "b.": b"x", "CON": b"x", "...": b"x", "-rf": b"x", "~": b"x"}
    ),
)
def strange(scene: Scene) -> None:
    for name in (" ", "a ", "b.", "CON", "...", "-rf", "~"):
        _write(scene, name)


@body(
    "name/percent, plus and question mark", tree=plus({"a%2Fb": b"x", "c+d": b"x", "e?f#g&h": b"x"})
)
def url_like(scene: Scene) -> None:
    for name in ("a%2Fb", "c+d", "e?f#g&h"):
        _write(scene, name)


@body("name/that Perago itself uses", tree=plus({".perago-deep-1": b"x", "workspace/w": b"x"}))
def own_names(scene: Scene) -> None:
    _write(scene, ".perago-deep-1")
    _write(scene, "workspace/w")


@body("name/twins by case", FAILS, "^diff: .*case or Unicode")
def case_twins(scene: Scene) -> None:
    _write(scene, "IN.txt")


@body("name/directories that are twins by case", FAILS, "^diff: .*case or Unicode")
def directory_twins(scene: Scene) -> None:
    _write(scene, "D/four.txt")


@body("name/twins by normal form", FAILS, "^diff: .*case or Unicode")
def normal_twins(scene: Scene) -> None:
    _write(scene, "caf\u00e9")
    _write(scene, "cafe\u0301")


@body("name/file where others keep a directory", FAILS, "skipped", quick=True)
def over_excluded(scene: Scene) -> None:
    """A holds ``skipped/x``, which this task does not see: nobody could download both."""
    (scene.workspace / "skipped").write_bytes(b"a file\n")


@body("name/twin of what others keep", FAILS, "(?i)skipped")
def twin_of_excluded(scene: Scene) -> None:
    _write(scene, "Skipped/y")


@body("name/hooks of the server", FAILS, "_lakefs_actions", task="whole")
def hooks(scene: Scene) -> None:
    _write(scene, "_lakefs_actions/evil.yaml", b"name: evil\n")


@body(
    "name/hooks of the server, other case",
    EITHER,
    "(?i)_lakefs_actions",
    tree=lambda tree: {**tree, "_LAKEFS_ACTIONS/evil.yaml": b"name: evil\n"},
    task="whole",
)
def hooks_other_case(scene: Scene) -> None:
    _write(scene, "_LAKEFS_ACTIONS/evil.yaml", b"name: evil\n")


@body("name/hooks below the prefix", tree=plus({"_lakefs_actions/a.yaml": b"x"}))
def hooks_below(scene: Scene) -> None:
    """Only those at the top of the repository are the server's."""
    _write(scene, "_lakefs_actions/a.yaml")


@body("number/ten thousand files", tree=plus({f"n/{n}": b"%d" % n for n in range(10_000)}))
def ten_thousand(scene: Scene) -> None:
    for number in range(10_000):
        _write(scene, f"n/{number}", b"%d" % number)


@body("number/ten thousand empty directories", everywhere=True)
def empty_directories(scene: Scene) -> None:
    for number in range(10_000):
        (scene.workspace / f"empty-{number}").mkdir()


@body("depth/500 directories", EITHER, "^diff: ", tree=plus({DEEP: b"x"}), everywhere=True)
def depth(scene: Scene) -> None:
    _write(scene, DEEP)


@body("depth/500 long names", FAILS, "^diff: ", everywhere=True)
def depth_long(scene: Scene) -> None:
    """Far beyond what one path may be."""
    here = os.open(scene.workspace, os.O_RDONLY)
    for _ in range(500):
        os.mkdir(LONG[:200], dir_fd=here)
        below = os.open(LONG[:200], os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    fd = os.open("end", os.O_WRONLY | os.O_CREAT, dir_fd=here)
    os.write(fd, b"x")
    os.close(fd)
    os.close(here)
