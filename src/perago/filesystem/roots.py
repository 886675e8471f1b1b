"""The directories that Perago keeps things in: whose they are, and who may look inside.

Before anything is written or removed below a root, it is checked: nobody else could have laid the
way to it or can move it away, it belongs to this user, nobody else may enter, and it is either new
or carries our mark. What others put there is never ours to remove.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from perago.errors import RuntimeConfigError

MARK: Final = ".perago-root"
NO_HOME: Final = Path("/nonexistent")
"""Where the defaults of a user without a home directory would be; nothing is ever made there."""
PRIVATE_DIRECTORY: Final = 0o700
PRIVATE_FILE: Final = 0o600
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_MOST_LINKS: Final = 40
_SYSTEM: Final = frozenset({"lost+found"})  # In every new ext4: a root may be a mount.
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

Recognise = Callable[[Path], bool]
"""Tells whether a directory without a mark was filled by an earlier version of ours."""


@dataclass(frozen=True, slots=True)
class Use:
    """What a root is for, and the variable that names another."""

    name: str
    variable: str

    @property
    def remedy(self) -> str:
        """Return what helps whatever is wrong with it."""
        return f"set {self.variable} to a new directory of this user's own"


HOME: Final = Use("home", "PERAGO_HOME")
CACHE: Final = Use("cache", "PERAGO_CACHE_ROOT")
WORKSPACES: Final = Use("workspace root", "PERAGO_WORKSPACE_ROOT")
LOGS: Final = Use("log directory", "PERAGO_LOG_ROOT")
SCRATCH: Final = Use("scratch directory of Spark", "XDG_CACHE_HOME")
JARS: Final = Use("directory of Spark's jars", "XDG_CACHE_HOME")
SERVERS: Final = Use("cache of servers", "PERAGO_DEV_CACHE")


def check(root: Path, use: Use) -> os.stat_result | None:
    """Refuse a root that is not this user's, or that others could replace; None: not there yet."""
    if root.is_relative_to(NO_HOME):
        raise RuntimeConfigError(
            f"there is no place for the {use.name}: this user has no home directory",
            remedy=use.remedy,
        )
    _check_way(root, use)
    try:
        found = root.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unusable(root, use, error.strerror or str(error)) from error
    if found.st_uid not in {0, os.geteuid()}:
        raise _unusable(root, use, f"it belongs to another user (uid {found.st_uid})")
    if found.st_uid != os.geteuid() and found.st_mode & stat.S_IWOTH:
        raise RuntimeConfigError(
            f"the {use.name} {root} cannot be used: everybody can write to it",
            remedy=f"set {use.variable} to a new directory below it, or to another one",
        )
    return found  # What the system set up for a group may stay as it is.


def secure(root: Path, use: Use) -> bool:
    """Make a directory that only this user can enter, or see that it is one.

    Returns True when others could enter it until now.
    """
    found = made(root, use)
    if found.st_uid != os.geteuid() or not found.st_mode & _OTHERS:
        return False
    root.chmod(stat.S_IMODE(found.st_mode) & ~_OTHERS)
    return True


def made(root: Path, use: Use) -> os.stat_result:
    """Make a directory, private if it is new, or see that the one that is there is safe."""
    root = root.absolute()
    check(root, use)
    try:
        _make(root)
    except OSError as error:
        raise RuntimeConfigError(
            f"the {use.name} {root} cannot be made: {error.strerror or error}", remedy=use.remedy
        ) from error
    found = check(root, use)  # Again: somebody may have been quicker than we.
    if found is None:
        raise _unusable(root, use, "another process keeps removing it")
    return found


def claim(root: Path, use: Use, recognise: Recognise) -> bool:
    """Secure a root and mark it as ours; refuse one that holds what is not.

    Returns True when others could enter it until now.
    """
    root = root.absolute()
    there = check(root, use) is not None
    if there and not is_marked(root, use) and _holds_something(root, use) and not recognise(root):
        raise RuntimeConfigError(
            f"{root} cannot be the {use.name}: it holds files that Perago did not make",
            remedy=use.remedy,
        )
    opened = secure(root, use)
    if not is_marked(root, use):
        _mark(root, use)
    return opened


def adopt(root: Path, use: Use) -> bool:
    """Mark a directory that is ours among other things; it is checked, and stays open as it is.

    Returns False, as it was not closed.
    """
    check(root, use)
    if not is_marked(root, use):
        _mark(root, use)
    return False


def is_marked(root: Path, use: Use) -> bool:
    """Return whether a directory carries our mark for this use; one for another use is refused."""
    try:
        with _opened(root / MARK) as fd:
            found = json.loads(os.read(fd, 4096))["use"]
    except FileNotFoundError:
        return False
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RuntimeConfigError(
            f"{root / MARK} cannot be read ({type(error).__name__}): is {root} the {use.name}?",
            remedy=f"remove that file if it is, or {use.remedy}",
        ) from None
    if found != use.name:
        raise RuntimeConfigError(
            f"{root} is a {found} of Perago already, and cannot be the {use.name} as well",
            remedy=use.remedy,
        )
    return True


def write_private(path: Path, text: str, suffix: str = ".draft") -> None:
    """Replace a file that only its owner may read; whoever reads it finds all of it, or the old.

    Several who write it at once need a suffix each.
    """
    draft = path.with_name(path.name + suffix)
    draft.unlink(missing_ok=True)
    fd = os.open(draft, _CREATE, PRIVATE_FILE)
    try:
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            file.write(text)
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def close_to_others(root: Path, names: Iterable[str]) -> bool:
    """Take the rights of others from entries of a directory, and from all below an open one.

    Links are neither followed nor changed, nor is what belongs to others. Returns True when
    there was something to close.
    """
    closed = False
    with suppress(OSError), _opened(root.resolve(), os.O_DIRECTORY) as above:
        for name in names:
            if not _close_entry(above, name):
                continue
            closed = True  # From here on nobody else gets at what is below it.
            with suppress(OSError), _opened(name, os.O_DIRECTORY, above) as top:
                for _, folders, files, fd in os.fwalk(".", dir_fd=top):
                    for inner in (*folders, *files):
                        _close_entry(fd, inner)
    return closed


def refuse_planted(path: Path) -> None:
    """Refuse a file that another user put where everybody may: it would say where keys go."""
    found, above = path.stat(), path.parent.stat()
    if found.st_uid not in {0, os.geteuid(), above.st_uid}:
        raise RuntimeConfigError(
            f"{path} belongs to another user (uid {found.st_uid}), so it is not read",
            remedy="change to a directory of your own",
        )
    if found.st_mode & stat.S_IWOTH:
        raise RuntimeConfigError(
            f"everybody can write to {path}, so it is not read", remedy=f"chmod 600 {path}"
        )


def tell_closed(root: Path) -> None:
    """Say on standard error that a place was open to others."""
    import logging  # noqa: PLC0415 - seldom needed, and every command starts without it

    logging.getLogger("perago").warning(
        "note: other users of this machine could look into %s; from now on they cannot", root
    )


# --- the way to a root ---------------------------------------------------------------------------


def _check_way(root: Path, use: Use) -> None:
    """Refuse a path of which a part is in the hands of another user.

    That is one below a directory that everybody may write to, unless what is there is ours or the
    system's, and cannot be renamed by others (the sticky bit).
    """
    for place, found, above in _steps(root, use):
        if not above.st_mode & stat.S_IWOTH:
            continue
        if not above.st_mode & stat.S_ISVTX and not _is_volume(place.parent, above):
            raise RuntimeConfigError(
                f"the {use.name} {root} is not safe: everybody can replace {place}",
                remedy=f"{use.remedy}, or chmod o-w {place.parent}",
            )
        if found is not None and found.st_uid not in {0, os.geteuid()}:
            raise RuntimeConfigError(
                f"the {use.name} {root} is not safe: {place} belongs to another user "
                f"(uid {found.st_uid})",
                remedy=use.remedy,
            )


def _is_volume(place: Path, found: os.stat_result) -> bool:
    """Tell a file system of its own that the system gave to everybody: containers get such."""
    return found.st_uid == 0 and place.parent.stat().st_dev != found.st_dev


def _steps(root: Path, use: Use) -> Iterator[tuple[Path, os.stat_result | None, os.stat_result]]:
    """Walk from the top to a root through links: each place, what is there, what is above it."""
    waiting = list(reversed(root.parts[1:]))
    here, above, links = Path(root.anchor), os.lstat(root.anchor), 0
    while waiting:
        name = waiting.pop()
        if name == "..":
            here = here.parent
            above = here.stat()
            continue
        place = here / name
        try:
            found = place.lstat()
        except FileNotFoundError:
            yield place, None, above
            return
        except OSError as error:
            raise _unusable(root, use, f"{place}: {error.strerror}") from error
        yield place, found, above
        if stat.S_ISLNK(found.st_mode):
            links += 1
            target = place.readlink()
            if links > _MOST_LINKS:
                raise _unusable(root, use, f"{place} is a loop of links")
            waiting += reversed(target.parts[1:] if target.is_absolute() else target.parts)
            if target.is_absolute():
                here, above = Path(target.anchor), os.lstat(target.anchor)
        elif stat.S_ISDIR(found.st_mode):
            here, above = place, found
        else:
            raise _unusable(root, use, f"{place} is not a directory")


def _unusable(root: Path, use: Use, why: str) -> RuntimeConfigError:
    return RuntimeConfigError(f"the {use.name} {root} cannot be used: {why}", remedy=use.remedy)


# --- the root itself -----------------------------------------------------------------------------


def _make(root: Path) -> None:
    missing = []
    place = root.resolve()  # A link to a directory that is not there yet is made as well.
    while not place.is_dir():
        missing.append(place)
        place = place.parent
    for place in reversed(missing):
        with suppress(FileExistsError):
            place.mkdir(PRIVATE_DIRECTORY if place == missing[0] else 0o755)


def _holds_something(root: Path, use: Use) -> bool:
    try:
        with os.scandir(root) as found:
            return any(entry.name not in _SYSTEM for entry in found)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _unusable(root, use, error.strerror or str(error)) from error


def _mark(root: Path, use: Use) -> None:
    try:
        mine = f".{os.getpid()}.{os.urandom(4).hex()}"
        write_private(root / MARK, json.dumps({"use": use.name}) + "\n", mine)
    except OSError as error:
        raise _unusable(root, use, error.strerror or str(error)) from error


def _close_entry(above: int, name: str) -> bool:
    """Take the rights of others from one entry; False when there was nothing to take."""
    try:
        found = os.stat(name, dir_fd=above, follow_symlinks=False)
        plain = stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)
        if not plain or found.st_uid != os.geteuid() or not found.st_mode & _OTHERS:
            return False
        _chmod(above, name, found)
    except OSError:
        return False
    return True


def _chmod(above: int, name: str, seen: os.stat_result) -> None:
    """Change the mode of what was seen, and of nothing that took its place."""
    mode = stat.S_IMODE(seen.st_mode) & ~_OTHERS
    if os.chmod in os.supports_follow_symlinks:
        os.chmod(name, mode, dir_fd=above, follow_symlinks=False)
        return
    # A descriptor that only names the file: closing it does not let go of SQLite's locks on it.
    with _opened(name, os.O_PATH, above) as fd:
        if os.path.samestat(os.fstat(fd), seen):
            Path(f"/proc/self/fd/{fd}").chmod(mode)


@contextmanager
def _opened(path: Path | str, more: int = 0, above: int | None = None) -> Iterator[int]:
    """Open what is there, no link, for as long as the block lasts."""
    fd = os.open(path, _OPEN | more, dir_fd=above)
    try:
        yield fd
    finally:
        os.close(fd)
