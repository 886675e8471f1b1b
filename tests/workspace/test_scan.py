"""What is in an attempt directory, however hostile: S2, S3, T7, V6."""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from perago.errors import UnpublishableFileError
from perago.filesystem import trees
from perago.protocol.diff import diff
from perago.protocol.paths import ACTIONS, MARKER, Selection
from perago.protocol.values import Entry, Manifest
from perago.workspace import scan as scan_module
from perago.workspace.attempt_dirs import remove_tree
from perago.workspace.scan import Baseline, Source, baseline, look, scan, survey
from tests.patience import LIMIT

ALL = Selection()
NOTHING = Baseline({}, {}, 0)


def entry(content: bytes, algorithm: str = "md5") -> Entry:
    digest = hashlib.new(algorithm, content, usedforsecurity=False).hexdigest()
    return Entry(len(content), f"{algorithm}:{digest}")


def write(root: Path, files: Mapping[str, bytes]) -> dict[str, Entry]:
    """Write files as a download does, and say what they are."""
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
    return {path: entry(content) for path, content in files.items()}


def scanned(root: Path, selection: Selection = ALL, before: Baseline = NOTHING) -> Manifest:
    return scan(root, selection, "md5", before)


LISTENERS: list[Callable[[str], None]] = []


def _heard(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open":
        for listener in tuple(LISTENERS):
            listener(str(arguments[0]))


@pytest.fixture(scope="module")
def opens() -> list[Callable[[str], None]]:
    """Whoever is in this list is told what the interpreter opens; a hook cannot be removed."""
    sys.addaudithook(_heard)
    return LISTENERS


@contextmanager
def told(listeners: list[Callable[[str], None]], listener: Callable[[str], None]) -> Iterator[None]:
    listeners.append(listener)
    try:
        yield
    finally:
        listeners.remove(listener)


# --- plain content -----------------------------------------------------------------------------


def test_s2_the_directory_is_the_wanted_state(tmp_path: Path) -> None:
    wanted = write(tmp_path, {"a": b"1", "deep/er/b": b"22", "empty": b"", ".hidden": b"x"})
    assert scanned(tmp_path) == wanted
    assert survey(tmp_path, ALL).files == set(wanted)


def test_an_empty_workspace_is_an_empty_manifest(tmp_path: Path) -> None:
    assert scanned(tmp_path) == {}
    assert survey(tmp_path, ALL).files == frozenset()


def test_t7_empty_directories_modes_and_times_are_not_content(tmp_path: Path) -> None:
    wanted = write(tmp_path, {"a": b"1"})
    before = baseline(tmp_path, wanted)
    (tmp_path / "empty" / "deeper").mkdir(parents=True)
    (tmp_path / "a").chmod(0o755)
    os.utime(tmp_path / "a", (0, 0))
    assert not diff(wanted, scanned(tmp_path, before=before))
    assert survey(tmp_path, ALL).directories == frozenset()


def test_a_sparse_file_is_read_as_what_it_holds(tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(5_000_000)
    assert scanned(tmp_path) == {"sparse": entry(bytes(5_000_000))}


@pytest.mark.parametrize("algorithm", ["md5", "sha256"])
def test_d3_new_files_are_hashed_as_the_store_does(tmp_path: Path, algorithm: str) -> None:
    write(tmp_path, {"a": b"1"})
    assert scan(tmp_path, ALL, algorithm, NOTHING) == {"a": entry(b"1", algorithm)}


def test_d3_a_known_file_is_compared_in_the_hash_it_came_with(tmp_path: Path) -> None:
    write(tmp_path, {"a": b"1", "b": b"2"})
    before = baseline(tmp_path, {"a": entry(b"1", "sha1"), "b": Entry(1, "")})
    found = scan(tmp_path, ALL, "md5", before)
    assert found == {"a": entry(b"1", "sha1"), "b": entry(b"2", "md5")}


def test_d3_a_content_listed_by_another_tag_is_the_same_while_its_hash_is(tmp_path: Path) -> None:
    """Its stamp may be too fresh to trust, and its tag cannot be computed from the file."""
    write(tmp_path, {"a": b"1", "b": b"2"})
    tag = Entry(1, f"md5:{'0' * 32}")
    contents = {tag: entry(b"1", "md5")}
    before = baseline(tmp_path, {"a": tag, "b": tag}, "md5", lambda listed: contents[listed])
    assert scan(tmp_path, ALL, "md5", before) == {"a": tag, "b": entry(b"2", "md5")}


def test_s2_excluded_paths_and_markers_are_not_content(tmp_path: Path) -> None:
    write(tmp_path, {"a": b"1", "tmp/x": b"2", MARKER: b"{}", f"deep/{MARKER}": b"{}"})
    (tmp_path / "tmp" / "link").symlink_to("/etc/passwd")
    (tmp_path / "tmp" / "bad\udcff").touch()
    selection = Selection(exclude=("tmp/**",))
    assert set(scanned(tmp_path, selection)) == {"a"}
    assert survey(tmp_path, selection).files == {"a"}


def test_a_spoofed_marker_is_neither_seen_nor_published(tmp_path: Path) -> None:
    """A body may write the marker's name; it says nothing to anybody (S2)."""
    wanted = write(tmp_path, {"a": b"1"})
    before = baseline(tmp_path, wanted)
    (tmp_path / MARKER).write_text('{"owner_pid": 1}')
    assert not diff(wanted, scanned(tmp_path, before=before))
    assert survey(tmp_path, ALL).matching("**/*.json") == ()


# --- what is refused (S3) ----------------------------------------------------------------------


def link_to_file(root: Path) -> None:
    (root / "a").write_bytes(b"1")
    (root / "x").symlink_to("a")


def link_to_directory(root: Path) -> None:
    (root / "d").mkdir()
    (root / "d" / "a").write_bytes(b"1")
    (root / "x").symlink_to("d")


def link_outside(root: Path) -> None:
    (root / "x").symlink_to("/etc/passwd")


def link_to_directory_outside(root: Path) -> None:
    (root / "x").symlink_to("/etc")


def link_to_nothing(root: Path) -> None:
    (root / "x").symlink_to("gone")


def link_to_itself(root: Path) -> None:
    (root / "x").symlink_to("x")


def link_to_its_own_directory(root: Path) -> None:
    (root / "x").symlink_to(".")


def hard_link_outside(root: Path) -> None:
    outside = root.parent / "outside"
    outside.write_bytes(b"secret")
    (root / "x").hardlink_to(outside)


def fifo(root: Path) -> None:
    os.mkfifo(root / "x")


def listening_socket(root: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.fspath(root / "x"))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (link_to_file, "workspace publication does not support symlinks: x"),
        (link_to_directory, "workspace publication does not support symlinks: x"),
        (link_outside, "workspace publication does not support symlinks: x"),
        (link_to_directory_outside, "workspace publication does not support symlinks: x"),
        (link_to_nothing, "workspace publication does not support symlinks: x"),
        (link_to_itself, "workspace publication does not support symlinks: x"),
        (link_to_its_own_directory, "workspace publication does not support symlinks: x"),
        (hard_link_outside, "hard links to outside: x"),
        (fifo, "plain files only: x"),
        (listening_socket, "plain files only: x"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_s3_what_is_no_plain_file_is_refused_and_never_opened(
    tmp_path: Path, make: Callable[[Path], None], text: str
) -> None:
    root = tmp_path / "w"
    root.mkdir()
    make(root)
    with pytest.raises(UnpublishableFileError) as caught:
        scanned(root)
    assert text in str(caught.value)
    assert caught.value.remedy
    assert "x" not in survey(root, ALL).files or make is hard_link_outside


def test_s3_a_symlink_is_named_with_its_whole_path(tmp_path: Path) -> None:
    (tmp_path / "path" / "to").mkdir(parents=True)
    (tmp_path / "path" / "to" / "link").symlink_to("nowhere")
    expected = r"^workspace publication does not support symlinks: path/to/link;"
    with pytest.raises(UnpublishableFileError, match=expected):
        scanned(tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
def test_s3_a_device_is_refused(tmp_path: Path) -> None:
    try:
        os.mknod(tmp_path / "x", 0o600 | 0o020000, os.makedev(1, 3))
    except OSError:
        pytest.skip("devices cannot be made here")
    with pytest.raises(UnpublishableFileError, match="plain files only: x"):
        scanned(tmp_path)


def test_s3_hard_links_that_stay_inside_are_two_files(tmp_path: Path) -> None:
    write(tmp_path, {"a": b"1"})
    (tmp_path / "b").hardlink_to(tmp_path / "a")
    assert scanned(tmp_path) == {"a": entry(b"1"), "b": entry(b"1")}


def test_s3_a_hard_link_into_excluded_scratch_does_not_leave_the_directory(tmp_path: Path) -> None:
    write(tmp_path, {"tmp/a": b"1"})
    (tmp_path / "b").hardlink_to(tmp_path / "tmp" / "a")
    assert scanned(tmp_path, Selection(exclude=("tmp/**",))) == {"b": entry(b"1")}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (b"bad-\xff", r"'bad-\udcff' is not valid UTF-8"),
        (b"back\\slash", "backslash"),
        (ACTIONS.encode(), "no task may write"),
    ],
    ids=["undecodable", "backslash", "hooks"],
)
def test_s3_hostile_names_are_refused_and_shown_escaped(
    tmp_path: Path, name: bytes, text: str
) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).touch()
    with pytest.raises(UnpublishableFileError) as caught:
        scanned(tmp_path)
    assert text in str(caught.value)
    assert str(caught.value).isascii()


def test_s3_hooks_of_the_server_may_not_be_written(tmp_path: Path) -> None:
    write(tmp_path, {f"{ACTIONS}/mine.yaml": b"on: pre-merge"})
    with pytest.raises(UnpublishableFileError, match=f"{ACTIONS}/mine.yaml"):
        scanned(tmp_path)
    assert scanned(tmp_path, Selection(prefix="ws")), "below a prefix it is an ordinary name"


def test_a_newline_in_a_name_is_content_and_never_breaks_a_log_line(tmp_path: Path) -> None:
    wanted = write(tmp_path, {"two\nlines": b"1"})
    assert scanned(tmp_path) == wanted
    (tmp_path / "a\nlink").symlink_to("x")
    with pytest.raises(UnpublishableFileError) as caught:
        scanned(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "names",
    [("Data", "data"), ("caf\u00e9", "cafe\u0301"), ("D/x", "d/y")],
    ids=["case", "Unicode form", "case of directories"],
)
def test_d2_twins_that_another_machine_could_not_hold_are_refused(
    tmp_path: Path, names: tuple[str, str]
) -> None:
    write(tmp_path, dict.fromkeys(names, b"1"))
    if len(list(tmp_path.rglob("*"))) < len(names):
        pytest.skip("this file system does not hold twins")
    with pytest.raises(UnpublishableFileError, match="differ only by case or Unicode form"):
        scanned(tmp_path)


# --- size and depth ----------------------------------------------------------------------------


def test_a_tree_of_500_levels_is_scanned(tmp_path: Path) -> None:
    path = "d/" * 500 + "a"
    fd = os.open(tmp_path, os.O_RDONLY)
    try:
        for _ in range(500):
            os.mkdir("d", dir_fd=fd)
            fd, parent = os.open("d", os.O_RDONLY, dir_fd=fd), fd
            os.close(parent)
        os.close(os.open("a", os.O_WRONLY | os.O_CREAT, dir_fd=fd))
    finally:
        os.close(fd)
    assert scanned(tmp_path) == {path: entry(b"")}
    assert len(survey(tmp_path, ALL).directories) == 500


def test_a_key_that_no_store_takes_is_refused_however_deep_it_is(tmp_path: Path) -> None:
    write(tmp_path, {"directory/" * 110 + "a": b"1"})
    with pytest.raises(UnpublishableFileError, match="longer than 1024 bytes"):
        scanned(tmp_path)


def test_100_000_files_are_scanned_and_untouched_ones_are_not_read_again(
    tmp_path: Path, opens: list[Callable[[str], None]]
) -> None:
    """Bounded by what is counted, not by time: an untouched file is not even opened."""
    for number in range(100):
        (tmp_path / f"d{number}").mkdir()
    paths = [f"d{number % 100}/{number}" for number in range(100_000)]
    for path in paths:
        os.close(os.open(f"{tmp_path}/{path}", os.O_WRONLY | os.O_CREAT))
    before = aged(baseline(tmp_path, dict.fromkeys(paths, entry(b""))))
    (tmp_path / paths[7]).write_bytes(b"new")
    (tmp_path / paths[8]).unlink()
    opened: list[str] = []
    with told(opens, opened.append):
        after = scanned(tmp_path, before=before)
    steps = diff(before.manifest, after)
    assert (steps.added, steps.changed, steps.removed) == ((), (paths[7],), (paths[8],))
    numbers = [name for name in opened if name.isdecimal()]
    assert paths[7].partition("/")[2] in numbers
    assert len(numbers) == 2, "one file, and its descriptor"
    remove_tree(tmp_path, lambda: False)
    assert not tmp_path.exists()


# --- what is unchanged, and what only looks so (S2) --------------------------------------------


def aged(taken: Baseline) -> Baseline:
    """Pretend that the download was long before the body began to work."""
    return Baseline(taken.manifest, taken.stamps, taken.taken_ns + 10**9)


def test_s2_an_untouched_file_is_not_read(
    tmp_path: Path, opens: list[Callable[[str], None]]
) -> None:
    wanted = write(tmp_path, {"a": b"1"})
    before = aged(baseline(tmp_path, wanted))
    opened: list[str] = []
    with told(opens, opened.append):
        assert scanned(tmp_path, before=before) == wanted
    assert "a" not in opened


def test_s2_a_touched_but_equal_file_is_unchanged(tmp_path: Path) -> None:
    wanted = write(tmp_path, {"a": b"1", "b": b"2"})
    before = aged(baseline(tmp_path, wanted))
    (tmp_path / "a").touch()
    (tmp_path / "b").unlink()
    (tmp_path / "b").write_bytes(b"2")
    assert not diff(wanted, scanned(tmp_path, before=before))


def test_s2_an_edit_of_the_same_size_right_after_the_download_is_found(tmp_path: Path) -> None:
    """Times too fresh to trust are not trusted: the clock of a file system has coarse ticks."""
    for attempt in range(50):
        path = f"f{attempt}"
        wanted = write(tmp_path, {path: b"old"})
        before = baseline(tmp_path, wanted)
        (tmp_path / path).write_bytes(b"new")
        assert scanned(tmp_path, before=before)[path] == entry(b"new")


def test_s2_an_edit_in_the_same_tick_of_the_clock_is_found(tmp_path: Path) -> None:
    """As on a coarse clock: size, times and inode after the edit are those of the download."""
    wanted = write(tmp_path, {"a": b"old"})
    taken = baseline(tmp_path, wanted).taken_ns
    (tmp_path / "a").write_bytes(b"new")
    same_tick = Baseline(wanted, baseline(tmp_path, wanted).stamps, taken)
    assert scanned(tmp_path, before=same_tick) == {"a": entry(b"new")}


def test_s2_an_edit_that_puts_the_old_times_back_is_found(tmp_path: Path) -> None:
    wanted = write(tmp_path, {"a": b"old"})
    before = aged(baseline(tmp_path, wanted))
    was = (tmp_path / "a").stat()
    time.sleep(0.06)  # longer than a tick of any file system's clock
    (tmp_path / "a").write_bytes(b"new")
    os.utime(tmp_path / "a", ns=(was.st_atime_ns, was.st_mtime_ns))
    assert scanned(tmp_path, before=before) == {"a": entry(b"new")}


def test_s2_a_file_put_in_the_place_of_another_is_found(tmp_path: Path) -> None:
    wanted = write(tmp_path, {"a": b"old", "b": b"new"})
    before = aged(baseline(tmp_path, wanted))
    (tmp_path / "b").rename(tmp_path / "a")
    assert scanned(tmp_path, before=before) == {"a": entry(b"new")}


def test_s2_a_directory_takes_the_place_of_a_file_and_a_file_that_of_a_directory(
    tmp_path: Path,
) -> None:
    given = write(tmp_path, {"file": b"a", "tree/deep/b": b"b", "tree/c": b"c", "kept": b"k"})
    before = baseline(tmp_path, given)
    (tmp_path / "file").unlink()
    shutil.rmtree(tmp_path / "tree")
    wanted = write(tmp_path, {"file/a": b"a", "tree": b"d"})
    assert scanned(tmp_path, before=before) == wanted | {"kept": given["kept"]}


def test_g2_an_unknown_checksum_is_always_read(tmp_path: Path) -> None:
    write(tmp_path, {"a": b"1"})
    before = aged(baseline(tmp_path, {"a": Entry(1, "")}))
    assert scanned(tmp_path, before=before) == {"a": entry(b"1")}


# --- while it is read (S3, V6) -----------------------------------------------------------------


@pytest.mark.parametrize("mode", ["r+b", "ab"], ids=["same size", "growing"])
def test_s3_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path, mode: str) -> None:
    """A writer that does not stop: the reader meets it in the middle of a large file."""
    target = tmp_path / "busy"
    with target.open("wb") as file:
        file.truncate(64 << 20)
    stop = threading.Event()

    def keep_writing() -> None:
        with target.open(mode, buffering=0) as file:
            while not stop.is_set():
                file.write(b"x")
                time.sleep(0.001)  # lets the reader have its turn

    writer = threading.Thread(target=keep_writing)
    writer.start()
    try:
        with pytest.raises(UnpublishableFileError, match="busy changed while it was read"):
            scanned(tmp_path)
    finally:
        stop.set()
        writer.join(LIMIT)


def test_v6_a_directory_swapped_for_a_link_is_not_followed(
    tmp_path: Path, opens: list[Callable[[str], None]]
) -> None:
    """The swap happens between the look and the read: the first file read triggers it."""
    outside, root = tmp_path / "outside", tmp_path / "w"
    write(outside, {"a": b"secret"})
    write(root, {"0": b"first", "d/a": b"public"})

    def swap(opened: str) -> None:
        if opened == "0":
            (root / "d").rename(tmp_path / "moved")
            (root / "d").symlink_to(outside)

    with told(opens, swap), pytest.raises(UnpublishableFileError, match="d/a cannot be read"):
        scanned(root)


def test_v6_a_file_swapped_for_a_link_is_not_followed(
    tmp_path: Path, opens: list[Callable[[str], None]]
) -> None:
    root = tmp_path / "w"
    write(root, {"0": b"first", "a": b"public"})
    (tmp_path / "secret").write_bytes(b"secret")

    def swap(opened: str) -> None:
        if opened == "0":
            (root / "a").unlink()
            (root / "a").symlink_to(tmp_path / "secret")

    with told(opens, swap), pytest.raises(UnpublishableFileError, match="a cannot be read"):
        scanned(root)


def test_v6_a_file_swapped_for_a_fifo_does_not_hang_the_worker(
    tmp_path: Path, opens: list[Callable[[str], None]]
) -> None:
    write(tmp_path, {"0": b"first", "a": b"public"})

    def swap(opened: str) -> None:
        if opened == "0":
            (tmp_path / "a").unlink()
            os.mkfifo(tmp_path / "a")

    with told(opens, swap), pytest.raises(UnpublishableFileError, match="a changed while"):
        scanned(tmp_path)


# --- what may not be read ----------------------------------------------------------------------

AS_NOBODY = textwrap.dedent(
    """
    import os, sys
    from pathlib import Path
    from perago.errors import UnpublishableFileError
    from perago.protocol.paths import Selection
    from perago.workspace.attempt_dirs import remove_tree
    from perago.workspace.scan import Baseline, scan

    root = Path(sys.argv[1])
    if os.geteuid() == 0:
        os.chown(root, 65534, 65534)
        for path in root.rglob("*"):
            os.chown(path, 65534, 65534)
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    try:
        scan(root, Selection(), "md5", Baseline({}, {}, 0))
    except UnpublishableFileError as error:
        print(error)
    remove_tree(root / "d", lambda: False)
    print("d" in os.listdir(root) or "removed")
    """
)


@pytest.mark.parametrize(
    ("locked", "text"),
    [("d", "directory 'd' cannot be read: Permission denied"), ("d/a", "file d/a cannot be read")],
    ids=["directory of mode 000", "file of mode 000"],
)
def test_what_the_worker_may_not_read_is_refused_by_name(locked: str, text: str) -> None:
    """Run without the rights of root, who may read everything."""
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        write(root, {"d/a": b"1"})
        (root / locked).chmod(0)
        done = subprocess.run(
            [sys.executable, "-c", AS_NOBODY, directory],
            env={"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
    assert text in done.stdout, done.stderr
    assert "leave the workspace readable" in done.stdout
    assert "removed" in done.stdout, "V7: modes do not keep a directory alive"


# --- from the scan to the upload (S3, V6) ------------------------------------------------------


def swap_directory_for_link(root: Path, outside: Path) -> None:
    (root / "d").rename(root.parent / "moved")
    (root / "d").symlink_to(outside)


def swap_file_for_link(root: Path, outside: Path) -> None:
    (root / "d" / "a").unlink()
    (root / "d" / "a").symlink_to(outside / "a")


def swap_file_for_its_like(root: Path, outside: Path) -> None:
    """The same bytes, size and time: only the inode tells."""
    was = (root / "d" / "a").stat()
    os.utime(outside / "a", ns=(was.st_atime_ns, was.st_mtime_ns))
    (outside / "a").replace(root / "d" / "a")


def swap_root_for_link(root: Path, outside: Path) -> None:
    root.rename(root.parent / "moved")
    outside.rename(root.parent / "elsewhere")
    (root.parent / "elsewhere" / "d").mkdir()
    (root.parent / "elsewhere" / "a").rename(root.parent / "elsewhere" / "d" / "a")
    root.symlink_to(root.parent / "elsewhere")


def swap_file_for_fifo(root: Path, outside: Path) -> None:
    (root / "d" / "a").unlink()
    os.mkfifo(root / "d" / "a")


@pytest.mark.parametrize(
    "swap",
    [
        swap_directory_for_link,
        swap_file_for_link,
        swap_file_for_its_like,
        swap_root_for_link,
        swap_file_for_fifo,
    ],
    ids=lambda swap: swap.__name__,
)
def test_v6_what_is_uploaded_is_what_was_scanned_and_nothing_else(
    tmp_path: Path, swap: Callable[[Path, Path], None]
) -> None:
    """Also when it has the same content: it may change again, and it is not ours to read."""
    root, outside = tmp_path / "w", tmp_path / "outside"
    write(root, {"d/a": b"content"})
    write(outside, {"a": b"content"})
    found = look(root, ALL, "md5", NOTHING)
    with Source(root, found.stamps) as source:
        os.close(source.opener("d/a")())
    swap(root, outside)
    with (
        Source(root, found.stamps) as source,
        pytest.raises((OSError, UnpublishableFileError)),
    ):
        source.opener("d/a")()


def test_v6_a_file_that_goes_during_the_first_look_is_an_error(tmp_path: Path) -> None:
    """Not a removal that would be published: nobody has worked yet."""
    wanted = write(tmp_path, {"a": b"1", "b": b"2"})
    (tmp_path / "b").unlink()
    with pytest.raises(UnpublishableFileError, match="b changed while it was read"):
        baseline(tmp_path, wanted)


def test_v6_the_directory_that_is_scanned_is_no_link(tmp_path: Path) -> None:
    write(tmp_path / "real", {"a": b"1"})
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for use in (
        lambda: scanned(tmp_path / "link"),
        lambda: survey(tmp_path / "link", ALL),
        lambda: baseline(tmp_path / "link", {"a": entry(b"1")}),
    ):
        with pytest.raises(UnpublishableFileError, match=r"directory '\.' cannot be read"):
            use()


def test_s2_a_file_that_is_there_and_was_not_listed_is_not_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While names are exchanged a file system may list neither of them."""
    given = write(tmp_path, {"d/a": b"a", "d/b": b"b", "c": b"c"})
    before = baseline(tmp_path, given, "md5")
    with trees.opened(tmp_path) as top:
        seen = list(trees.walk(top))

    def without(missing: str) -> None:
        left = [(path, found) for path, found in seen if not path.startswith(missing)]
        monkeypatch.setattr(scan_module, "_walk", lambda _: iter(left))

    for missing in ("c", "d/a", "d"):
        without(missing)
        with pytest.raises(UnpublishableFileError, match="changed while it was read"):
            scanned(tmp_path, before=before)
    (tmp_path / "c").unlink()
    without("c")
    assert set(scanned(tmp_path, before=before)) == {"d/a", "d/b"}
    (tmp_path / "d").rename(tmp_path.parent / "elsewhere")
    without("")
    assert scanned(tmp_path, before=before) == {}
    (tmp_path / "d").symlink_to(tmp_path.parent / "elsewhere")
    with pytest.raises(UnpublishableFileError, match="changed while it was read"):
        scanned(tmp_path, before=before)


def test_a_directory_that_changes_while_it_is_listed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"d/a": b"a"})
    listed = os.scandir

    def scandir(directory: int) -> object:
        found = listed(directory)
        os.utime(tmp_path / "d", (1, 1))
        return found

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(UnpublishableFileError, match="changed while it was listed"):
        scanned(tmp_path)
