"""What a disk may hold after a power cut, worked out from what it was asked to write; pure.

POSIX promises little: bytes are on disk when their file was synced since, a name when its directory
was, and everything when the file system was. The rest may be there or not, each for itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

SECTOR = 512
_NAMES = frozenset({"create", "unlink", "rename", "link", "mkdir", "rmdir"})
_DATA = frozenset({"write", "truncate"})


@dataclass(frozen=True)
class Op:
    """One request to the disk; ``file`` tells inodes apart whose number was used twice."""

    kind: str
    path: str
    target: str
    file: int
    offset: int
    data: bytes


@dataclass(frozen=True)
class State:
    """Files by path, directories as None; and which choice led to it."""

    how: str
    tree: dict[str, bytes | None]

    @property
    def key(self) -> str:
        """Tell equal states."""
        digest = hashlib.sha256()
        for path, content in sorted(self.tree.items()):
            digest.update(path.encode() + b"\0")
            digest.update(b"d" if content is None else hashlib.sha256(content).digest())
        return digest.hexdigest()


def read(log: bytes) -> list[Op]:
    """Read what the shim wrote."""
    found: list[Op] = []
    numbers: dict[int, int] = {}
    at = 0
    while at < len(log):
        end = log.index(b"\n", at)
        kind, path, target, inode, offset, size = log[at:end].decode().split("\t")
        if kind in {"create", "mkdir"} or int(inode) not in numbers:
            numbers[int(inode)] = len(numbers) + len(found)
        data = log[end + 1 : end + 1 + int(size)]
        found.append(Op(kind, path, target, numbers[int(inode)], int(offset), data))
        at = end + 2 + int(size)
    return found


def states(ops: Sequence[Op], *, each: bool) -> Iterator[State]:
    """List what may be on disk when the power fails after these; ``each``: op by op too."""
    settled = _settled(ops)
    pending = [number for number, op in enumerate(ops) if number not in settled and _lasts(op)]
    names = {number for number in pending if ops[number].kind in _NAMES}
    chosen = {"what was synced only": settled, "names without bytes": settled | names}
    if each:
        chosen["all of it"] = settled | set(pending)
        chosen["bytes without names"] = settled | (set(pending) - names)
    for how, kept in chosen.items():
        yield State(how, _applied(ops, kept))
    writes = [number for number in pending if ops[number].kind == "write"]
    if writes:
        yield State("the last write torn", _applied(_torn(ops, writes[-1]), settled | set(pending)))
    if not each:
        return
    for number in pending:
        what = f"{ops[number].kind} {ops[number].path}"
        yield State(f"all but {what}", _applied(ops, settled | (set(pending) - {number})))
        yield State(f"only {what}", _applied(ops, settled | {number}))
        yield State(f"nothing after {what}", _applied(ops, settled | _until(pending, number)))


def lay_out(state: State, old: Path, root: Path) -> None:
    """Write a state to a directory; what cannot be reached from the root is lost."""
    for path, content in sorted(state.tree.items()):
        place = root / PurePosixPath(path).relative_to(old)
        if not place.parent.is_dir():
            continue
        if content is None:
            place.mkdir(exist_ok=True)
        else:
            place.write_bytes(content)


def _lasts(op: Op) -> bool:
    return op.kind in _NAMES or op.kind in _DATA


def _until(pending: Sequence[int], last: int) -> set[int]:
    return {number for number in pending if number <= last}


def _settled(ops: Sequence[Op]) -> set[int]:
    """Find what must be on disk: bytes of synced files, names in synced directories."""
    found: set[int] = set()
    waiting: list[int] = []
    for number, op in enumerate(ops):
        if op.kind == "syncfs":
            found.update(waiting)
            waiting = []
        elif op.kind == "sync":
            done = [one for one in waiting if _is_synced(ops[one], op)]
            found.update(done)
            waiting = [one for one in waiting if one not in set(done)]
        elif _lasts(op):
            waiting.append(number)
    return found


def _is_synced(op: Op, sync: Op) -> bool:
    if op.kind in _DATA:
        return op.file == sync.file
    return str(PurePosixPath(op.target or op.path).parent) == sync.path


def _torn(ops: Sequence[Op], number: int) -> list[Op]:
    """Have a write reach the disk for half of its sectors."""
    op = ops[number]
    kept = max(SECTOR, len(op.data) // 2 // SECTOR * SECTOR) if len(op.data) > SECTOR else 0
    torn = [*ops]
    torn[number] = replace(op, data=op.data[:kept])
    return torn


def _applied(ops: Sequence[Op], kept: set[int]) -> dict[str, bytes | None]:
    names: dict[str, int | None] = {}
    content: dict[int, bytearray] = {}
    for number in sorted(kept):
        op = ops[number]
        if op.kind in _DATA:
            _write(content.setdefault(op.file, bytearray()), op)
        else:
            _name(names, op)
    return {
        path: None if file is None else bytes(content.get(file, b""))
        for path, file in names.items()
    }


def _write(content: bytearray, op: Op) -> None:
    if op.kind == "truncate":
        del content[op.offset :]
        content.extend(bytes(op.offset - len(content)))
        return
    if len(content) < op.offset:
        content.extend(bytes(op.offset - len(content)))
    content[op.offset : op.offset + len(op.data)] = op.data


def _name(names: dict[str, int | None], op: Op) -> None:
    if op.kind == "create":
        names[op.path] = op.file
    elif op.kind == "mkdir":
        names[op.path] = None
    elif op.kind in {"unlink", "rmdir"}:
        names.pop(op.path, None)
    elif op.path in names:
        names[op.target] = names[op.path] if op.kind == "link" else names.pop(op.path)
