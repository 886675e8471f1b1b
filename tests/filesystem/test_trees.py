"""Directories by descriptor: nothing outside is read, changed or removed (V6)."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from perago.errors import UnpublishableFileError
from perago.filesystem import trees
from perago.protocol.paths import Selection
from perago.workspace.scan import Baseline, scan
from tests.filesystems import CannotMount, bound, mounted

Act = Callable[[], None]
_WATCHERS: list[Callable[[str, str], None]] = []


def _heard(event: str, arguments: tuple[object, ...]) -> None:
    if event in {"open", "os.remove", "os.rmdir", "os.rename"}:
        for watcher in tuple(_WATCHERS):
            watcher(event, str(arguments[0]))


@pytest.fixture(scope="module", autouse=True)
def _listening() -> None:
    sys.addaudithook(_heard)  # It cannot be removed again.


@contextmanager
def just_before(event: str, name: str, act: Act) -> Iterator[None]:
    """Do something once, right before the interpreter does something to a name."""

    def watch(found: str, given: str) -> None:
        if (found, given) == (event, name) and watch in _WATCHERS:
            _WATCHERS.remove(watch)
            act()

    _WATCHERS.append(watch)
    yield
    assert watch not in _WATCHERS, f"{event} of {name} never came: the case had no fault"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A dataset that is none of our business."""
    path = tmp_path / "dataset"
    (path / "part").mkdir(parents=True)
    (path / "precious").write_bytes(b"1")
    (path / "part" / "too").write_bytes(b"2")
    return path


@pytest.fixture
def top(tmp_path: Path) -> Path:
    path = tmp_path / "top"
    (path / "room" / "d" / "e").mkdir(parents=True)
    (path / "room" / "a").write_bytes(b"a")
    (path / "room" / "d" / "b").write_bytes(b"b")
    return path


def contents(path: Path) -> dict[str, bytes]:
    return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_file()}


PRECIOUS = {"precious": b"1", "part/too": b"2"}


def remove(top: Path, name: str = "room") -> None:
    with trees.opened(top) as fd:
        trees.remove(fd, name)


def walked(path: Path) -> list[str]:
    with trees.opened(path) as fd:
        return [found for found, _ in trees.walk(fd)]


# --- plain use ---------------------------------------------------------------------------------


def test_a_tree_is_walked_in_order_and_removed(top: Path) -> None:
    assert walked(top / "room") == ["a", "d/b"]
    remove(top)
    assert list(top.iterdir()) == []
    remove(top)  # What is gone is fine.


def test_names_that_are_kept_stay(top: Path) -> None:
    with trees.opened(top / "room") as fd:
        trees.empty(fd, keep=("a",))
    assert contents(top / "room") == {"a": b"a"}


def test_a_directory_must_be_the_one_that_was_made(top: Path) -> None:
    made = trees.identity((top / "room").stat())
    (top / "room").rename(top / "moved")
    (top / "room").mkdir()
    with trees.opened(top) as fd:
        with trees.entered(fd, "moved", made):
            pass
        with pytest.raises(OSError, match="not the directory that was made"):
            trees.entered(fd, "room", made).__enter__()
    with pytest.raises(OSError, match="not the directory that was made"):
        trees.opened(top / "room", made).__enter__()


# --- links -------------------------------------------------------------------------------------


def test_v6_a_link_in_the_place_of_a_directory_is_not_followed(top: Path, outside: Path) -> None:
    (top / "link").symlink_to(outside)
    with pytest.raises(OSError, match=r"Not a directory|symbolic links"):
        trees.opened(top / "link").__enter__()
    with trees.opened(top) as fd:
        with pytest.raises(OSError, match=r"Not a directory|symbolic links"):
            trees.entered(fd, "link").__enter__()
        with pytest.raises(OSError, match=r"Not a directory|symbolic links"):
            trees.open_beneath(fd, "link/precious")
    assert "link" in walked(top)
    remove(top, "link")
    assert contents(outside) == PRECIOUS


@pytest.mark.parametrize("name", ["room", "d", "e"])
def test_v6_a_directory_swapped_for_a_link_before_it_is_opened(
    top: Path, outside: Path, name: str
) -> None:
    """It was listed as a directory; when it is opened it leads elsewhere."""
    path = next(path for path in top.rglob(name))

    def swap() -> None:
        path.rename(top / "aside")
        path.symlink_to(outside)

    with just_before("open", name, swap), pytest.raises(OSError, match=r"directory|links"):
        remove(top)
    assert contents(outside) == PRECIOUS
    with trees.opened(top) as fd:
        trees.empty(fd)
    assert list(top.iterdir()) == [], "the next sweep removes the rest, links included"
    assert contents(outside) == PRECIOUS


def test_v6_a_directory_swapped_for_a_link_after_it_was_emptied(top: Path, outside: Path) -> None:
    def swap() -> None:
        (top / "room" / "d" / "e").rename(top / "aside")
        (top / "room" / "d" / "e").symlink_to(outside)

    with just_before("os.rmdir", "e", swap), pytest.raises(OSError, match=r"directory|empty"):
        remove(top)
    assert contents(outside) == PRECIOUS


def test_v6_a_file_swapped_for_a_directory_before_it_is_removed(top: Path, outside: Path) -> None:
    def swap() -> None:
        (top / "room" / "a").unlink()
        outside.rename(top / "room" / "a")

    with just_before("os.remove", "a", swap), pytest.raises(OSError, match=r"directory|permitted"):
        remove(top)
    assert contents(top / "room" / "a") == PRECIOUS


def test_v6_a_directory_swapped_for_a_link_while_it_is_walked(top: Path, outside: Path) -> None:
    def swap() -> None:
        (top / "room" / "d").rename(top / "aside")
        (top / "room" / "d").symlink_to(outside)

    with just_before("open", "d", swap), pytest.raises(OSError, match=r"directory|links") as caught:
        walked(top / "room")
    assert caught.value.filename == "d"


# --- mounts ------------------------------------------------------------------------------------


@contextmanager
def shown(source: Path, to: Path) -> Iterator[None]:
    """Bind a directory to another place, on the same device: only the mount tells them apart."""
    try:
        with bound(source, to):
            yield
    except CannotMount as why:
        pytest.skip(str(why))


@pytest.mark.parametrize("place", ["room", "room/d", "room/d/e", "room/a"])
def test_v6_what_is_mounted_inside_is_never_emptied(top: Path, outside: Path, place: str) -> None:
    """On the same device: a bind mount. What is not mounted goes all the same."""
    source = outside / "precious" if place == "room/a" else outside
    with shown(source, top / place):
        with pytest.raises(OSError, match=r"another file system or mount|busy") as caught:
            remove(top)
        assert caught.value.errno in {errno.EXDEV, errno.EBUSY}
        assert contents(outside) == PRECIOUS
        if place == "room/d":
            assert not (top / "room" / "a").exists()
    remove(top)
    assert not (top / "room").exists()


def test_v6_a_mount_that_comes_right_before_a_directory_is_opened(
    top: Path, outside: Path, request: pytest.FixtureRequest
) -> None:
    def mount() -> None:
        mounting = shown(outside, top / "room" / "d")
        mounting.__enter__()
        request.addfinalizer(lambda: mounting.__exit__(None, None, None))

    with just_before("open", "d", mount), pytest.raises(OSError, match="another file system"):
        remove(top)
    assert contents(outside) == PRECIOUS


def test_v6_another_device_is_not_entered(top: Path, tmp_path: Path) -> None:
    try:
        with mounted("tmpfs", tmp_path / "scratch") as other, shown(other, top / "room" / "d"):
            (other / "precious").write_bytes(b"1")
            with pytest.raises(OSError, match="another file system"):
                remove(top)
            with pytest.raises(OSError, match="another file system") as caught:
                walked(top / "room")
            assert caught.value.filename == "d"
            assert (other / "precious").read_bytes() == b"1"
    except CannotMount as why:
        pytest.skip(str(why))


def test_v6_a_mount_inside_is_not_walked(top: Path, outside: Path) -> None:
    with shown(outside, top / "room" / "d"), pytest.raises(OSError, match="another") as caught:
        walked(top / "room")
    assert caught.value.filename == "d"


@pytest.mark.parametrize("name", ["d", "a", "odd name\n"])
def test_s3_mounts_are_named_files_too(top: Path, outside: Path, name: str) -> None:
    """A file that is mounted has the device of the others, and looks like any of them."""
    place = top / "room" / name
    if not place.exists():
        place.touch()
    with shown(outside / "precious" if place.is_file() else outside, place):
        with trees.opened(top / "room") as fd:
            assert trees.mounts(fd) == [name]
        with pytest.raises(UnpublishableFileError, match="does not support mounts: "):
            scan(top / "room", Selection(), "md5", Baseline({}, {}, 0))
    with trees.opened(top / "room") as fd:
        assert trees.mounts(fd) == []


# --- what cannot be removed --------------------------------------------------------------------


def test_v7_time_is_up_in_the_middle(top: Path) -> None:
    asked = iter([False, True])
    with trees.opened(top) as fd, pytest.raises(TimeoutError):
        trees.remove(fd, "room", lambda: next(asked))
    assert (top / "room").is_dir()


def test_v7_a_deep_tree_needs_few_descriptors(top: Path) -> None:
    fd = os.open(top / "room", os.O_RDONLY)
    for _ in range(500):
        os.mkdir("n" * 40, dir_fd=fd)
        fd, parent = os.open("n" * 40, os.O_RDONLY, dir_fd=fd), fd
        os.close(parent)
    os.close(fd)
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = max(int(path.name) for path in Path("/proc/self/fd").iterdir()) + 1
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 40, before[1]))
    try:
        remove(top)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert list(top.iterdir()) == []
