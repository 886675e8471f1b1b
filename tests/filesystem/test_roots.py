"""Where Perago keeps things: nobody else can have laid the way there, or move it away."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from perago.app.local import Home
from perago.errors import RuntimeConfigError
from perago.filesystem import roots
from perago.settings import load_settings
from tests.filesystems import CannotMount, mounted
from tests.users import ALICE, MALLORY, as_user, needs_root, shared_directory

USES = [roots.HOME, roots.CACHE, roots.WORKSPACES, roots.LOGS, roots.SCRATCH, roots.SERVERS]


@pytest.fixture
def shared() -> Iterator[Path]:
    with shared_directory() as path:
        yield path


def claim(path: Path) -> None:
    roots.claim(path, roots.CACHE, lambda _: False)


# --- alone ----------------------------------------------------------------------------------------


def test_a_new_root_is_private_and_so_marked(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        claim(tmp_path / "a" / "b" / "root")
    finally:
        os.umask(before)
    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in tmp_path.rglob("*")}
    assert modes == {"a": 0o755, "b": 0o755, "root": 0o700, roots.MARK: 0o600}
    claim(tmp_path / "a" / "b" / "root")


def test_an_empty_directory_is_taken_and_closed(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root").chmod(0o775)
    (tmp_path / "root" / "lost+found").mkdir()
    claim(tmp_path / "root")
    assert stat.S_IMODE((tmp_path / "root").stat().st_mode) == 0o700


def test_a_link_of_ones_own_leads_to_the_root(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("big/disk")
    claim(tmp_path / "link")
    assert roots.is_marked(tmp_path / "big" / "disk", roots.CACHE)


@pytest.mark.parametrize("name", ["file", "file/below", "circle", "circle/below"])
def test_what_is_no_directory_is_one_sentence(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(RuntimeConfigError, match="PERAGO_CACHE_ROOT"):
        claim(tmp_path / name)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b"\xff"])
def test_a_damaged_mark_is_one_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / roots.MARK).write_bytes(content)
    with pytest.raises(RuntimeConfigError, match=r"cannot be read .*remove that file"):
        claim(tmp_path)


def test_a_mark_that_is_a_link_is_not_believed(tmp_path: Path) -> None:
    claim(tmp_path / "ours")
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / roots.MARK).symlink_to(tmp_path / "ours" / roots.MARK)
    with pytest.raises(RuntimeConfigError):
        claim(tmp_path / "theirs")


def test_a_directory_in_which_everybody_can_rename_is_refused(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(RuntimeConfigError, match=r"everybody can replace .*PERAGO_CACHE_ROOT"):
        claim(tmp_path / "open" / "root")
    assert list((tmp_path / "open").iterdir()) == []


# --- other users ----------------------------------------------------------------------------------


@needs_root
@pytest.mark.parametrize("use", USES, ids=lambda use: use.variable)
@pytest.mark.parametrize("place", ["root", "perago/root", "perago/deep/root"])
def test_what_another_user_made_is_refused(shared: Path, place: str, use: roots.Use) -> None:
    """The old default, ``/tmp/perago``, could be made by anybody beforehand."""
    as_user(MALLORY, lambda: (shared / place).mkdir(mode=0o777, parents=True))
    for attempt in (roots.check, roots.made, roots.secure):
        with pytest.raises(RuntimeConfigError, match=r"another user \(uid 61002\)") as caught:
            as_user(ALICE, partial(attempt, shared / place, use))
        assert use.variable in str(caught.value)


@needs_root
def test_a_link_of_another_user_is_refused(shared: Path) -> None:
    def mine() -> None:
        (shared / "alice").mkdir()
        claim(shared / "alice" / "root")

    as_user(ALICE, mine)
    as_user(MALLORY, lambda: (shared / "perago").symlink_to("alice"))
    with pytest.raises(RuntimeConfigError, match="another user"):
        as_user(ALICE, lambda: claim(shared / "perago" / "root"))


@needs_root
def test_a_directory_of_ones_own_in_a_shared_one_cannot_be_swapped(shared: Path) -> None:
    as_user(ALICE, lambda: claim(shared / "alice"))
    with pytest.raises(PermissionError):
        as_user(MALLORY, lambda: (shared / "alice").rename(shared / "aside"))
    with pytest.raises(PermissionError):
        as_user(MALLORY, lambda: list((shared / "alice").iterdir()))
    as_user(ALICE, lambda: claim(shared / "alice"))


@needs_root
def test_a_root_of_the_system_must_not_be_open_to_all(shared: Path) -> None:
    """A volume of a container belongs to root; below it is a place of one's own."""
    (shared / "volume").mkdir()
    (shared / "volume").chmod(0o1777)
    with pytest.raises(RuntimeConfigError, match="set PERAGO_CACHE_ROOT to a new directory below"):
        as_user(ALICE, lambda: claim(shared / "volume"))
    as_user(ALICE, lambda: claim(shared / "volume" / "mine"))


@needs_root
def test_a_volume_that_a_container_was_given_can_be_used(shared: Path) -> None:
    """Those of Kubernetes belong to root, and everybody may write and rename in them."""
    try:
        with mounted("tmpfs", shared / "pod") as volume:
            volume.chmod(0o2777)
            as_user(ALICE, lambda: claim(volume / "home"))
            as_user(MALLORY, (volume / "theirs").mkdir)
            with pytest.raises(RuntimeConfigError, match="another user"):
                as_user(ALICE, lambda: claim(volume / "theirs"))
    except CannotMount as why:
        pytest.skip(str(why))


@needs_root
def test_users_do_not_get_in_each_others_way(shared: Path) -> None:
    """Each has its own defaults; nobody can look into those of another."""

    def work(home: Path) -> list[str]:
        settings = load_settings({"HOME": str(home)}, home)
        roots.secure(settings.workspace_root, roots.WORKSPACES)
        roots.made(settings.log_root, roots.LOGS)
        roots.secure(settings.spark.scratch, roots.SCRATCH)
        claim(settings.cache_root)
        opened = Home(settings.home, settings.local_rooms)
        opened.store.create_repository("demo")
        found = [*opened.store.repositories()]
        opened.close()
        return found

    for uid in (ALICE, MALLORY):
        (shared / str(uid)).mkdir()
        os.chown(shared / str(uid), uid, uid)
        assert as_user(uid, partial(work, shared / str(uid))) == ["demo"]
    with pytest.raises(RuntimeConfigError, match="another user"):
        as_user(MALLORY, partial(work, shared / str(ALICE)))


# --- defaults -------------------------------------------------------------------------------------


def defaults(environ: dict[str, str], directory: Path) -> dict[str, Path]:
    found = load_settings(environ, directory)
    return {
        "PERAGO_WORKSPACE_ROOT": found.workspace_root,
        "PERAGO_LOG_ROOT": found.log_root,
        "PERAGO_CACHE_ROOT": found.cache_root,
        "scratch": found.spark.scratch,
        "jars": found.spark.jars,
    }


@pytest.mark.skipif(sys.platform != "linux", reason="the names are those of Linux")
def test_w7_defaults_are_below_directories_of_the_user(tmp_path: Path) -> None:
    assert defaults({"HOME": "/home/u"}, tmp_path) == {
        "PERAGO_WORKSPACE_ROOT": Path("/home/u/.local/state/perago/workspaces"),
        "PERAGO_LOG_ROOT": Path("/home/u/.local/state/perago/logs"),
        "PERAGO_CACHE_ROOT": Path("/home/u/.cache/perago/content"),
        "scratch": Path("/home/u/.cache/perago/spark"),
        "jars": Path("/home/u/.cache/perago/spark-jars"),
    }
    moved = {"HOME": "/home/u", "XDG_STATE_HOME": "/s", "XDG_CACHE_HOME": "/c"}
    assert {str(path).split("/")[1] for path in defaults(moved, tmp_path).values()} == {"s", "c"}


def test_a_relative_root_is_one_of_the_directory_the_command_started_in(tmp_path: Path) -> None:
    names = ("PERAGO_WORKSPACE_ROOT", "PERAGO_LOG_ROOT", "PERAGO_CACHE_ROOT")
    found = defaults(dict.fromkeys(names, "below/it"), tmp_path)
    assert {found[name] for name in names} == {tmp_path / "below/it"}


@needs_root
@pytest.mark.parametrize("home", ["", "relative", "/proc"])
def test_a_user_without_a_home_is_told_which_variable_to_set(shared: Path, home: str) -> None:
    """A service may have none, or one that cannot be written."""

    def secure(variable: str) -> None:
        found = load_settings({"HOME": home}, shared)
        if variable == "PERAGO_LOG_ROOT":
            roots.made(found.log_root, roots.LOGS)
        elif variable == "PERAGO_CACHE_ROOT":
            claim(found.cache_root)
        else:
            roots.secure(found.workspace_root, roots.WORKSPACES)

    for variable in ("PERAGO_LOG_ROOT", "PERAGO_CACHE_ROOT", "PERAGO_WORKSPACE_ROOT"):
        work: Callable[[], None] = partial(secure, variable)
        with pytest.raises(RuntimeConfigError, match=f"set {variable} to"):
            as_user(ALICE, work)


# --- .env -----------------------------------------------------------------------------------------


def test_settings_say_which_file_they_were_read_from(tmp_path: Path) -> None:
    assert load_settings({}, tmp_path).dotenv is None
    (tmp_path / ".env").write_text("PERAGO_INSTANCE_ID=one\n")
    found = load_settings({}, tmp_path)
    assert (found.dotenv, found.instance_id) == (tmp_path / ".env", "one")


@needs_root
def test_a_file_that_another_user_planted_is_not_read(shared: Path) -> None:
    """Otherwise it could send keys of the environment to a server of that user."""
    as_user(MALLORY, lambda: (shared / ".env").write_text("CONDUCTOR_SERVER_URL=http://evil/api\n"))
    with pytest.raises(RuntimeConfigError, match="belongs to another user"):
        as_user(ALICE, lambda: load_settings({}, shared).instance_id)


@needs_root
def test_the_owner_of_a_directory_may_configure_what_runs_in_it(shared: Path) -> None:
    """A container has the files of the host's user: task modules come from there as well."""
    (shared / "app").mkdir()
    (shared / "app" / ".env").write_text("PERAGO_INSTANCE_ID=one\n")
    for path in (shared / "app", shared / "app" / ".env"):
        os.chown(path, MALLORY, MALLORY)
    assert as_user(ALICE, lambda: load_settings({}, shared / "app").instance_id) == "one"


def test_a_file_that_everybody_can_write_is_not_read(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("PERAGO_INSTANCE_ID=one\n")
    (tmp_path / ".env").chmod(0o666)
    with pytest.raises(RuntimeConfigError, match="chmod 600"):
        load_settings({}, tmp_path)
