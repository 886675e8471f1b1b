"""Objects into files: a new file of the task's own, verified before anyone reads it (D3)."""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import file_digest, sha256
from pathlib import Path

from perago.errors import CorruptObjectError, StoreUnavailableError, WorkspaceError
from perago.ports import Advance, Damage, Fetch
from perago.protocol.values import Entry, ObjectInfo
from perago.stores.embedded.objects import ObjectDirectory
from perago.stores.embedded.ranges import ALGORITHM
from perago.transfer import copying
from perago.transfer.creating import create


def deliver(objects: ObjectDirectory, fetch: Fetch, advance: Advance) -> None:
    """Copy an object to ``fetch.to``; never a hard link, a task may write to its file."""
    source = open_object(objects, fetch.key, fetch.entry)
    try:
        target = _new(fetch.to)
        try:
            _fill(source, target, fetch, advance)
        except BaseException:
            with suppress(OSError):
                fetch.to.unlink()  # a file that was not verified must not stay
            raise
        finally:
            os.close(target)
    finally:
        os.close(source)


def _new(path: Path) -> int:
    try:
        return create(path)
    except OSError as error:
        raise _unwritable(path, error) from error


def _fill(source: int, target: int, fetch: Fetch, advance: Advance) -> None:
    try:
        found = copying.copy(source, target, fetch.entry.size, advance, ALGORITHM)
    except OSError as error:
        raise _unwritable(fetch.to, error) from error
    if found != fetch.entry:
        raise corrupt(fetch.key, f"is {found.size} bytes of {found.checksum}")


def check(objects: ObjectDirectory, info: ObjectInfo) -> Damage | None:
    """Read the file of an object again and compare it with what its listing says."""
    wanted = Entry(info.size, info.checksum)
    try:
        with objects.path(wanted).open("rb", buffering=0) as file:
            digest = file_digest(file, sha256)
            found = Entry(file.tell(), f"{ALGORITHM}:{digest.hexdigest()}")
    except FileNotFoundError:
        return Damage(info.key, "missing", f"{objects.path(wanted)} is not there")
    except OSError as error:
        return Damage(info.key, "corrupt", f"it cannot be read: {error.strerror}")
    if found == wanted:
        return None
    return Damage(info.key, "corrupt", f"it is {found.size} bytes of {found.checksum}")


def open_object(objects: ObjectDirectory, key: str, entry: Entry) -> int:
    """Open the file of an object that must be there."""
    try:
        return os.open(objects.path(entry), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise corrupt(key, "is missing") from error
    except OSError as error:
        raise StoreUnavailableError(
            f"object {key!a} cannot be opened in {objects.objects}: {error.strerror}",
            remedy="make the directory readable for this user, then run again",
        ) from error


def corrupt(key: str, what: str) -> CorruptObjectError:
    """Name a damaged object and the way out."""
    return CorruptObjectError(
        f"object {key!a} is damaged in the store: it {what}",
        remedy="put its content again from a good copy, or restore the store's objects directory",
    )


def _unwritable(path: Path, error: OSError) -> WorkspaceError:
    return WorkspaceError(
        f"file {path} cannot be written: {error.strerror}",
        remedy="give the attempt an empty directory with enough space",
    )
