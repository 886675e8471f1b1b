"""A key that a body can reach and that must appear nowhere (V8, sharper).

Three parts, for whoever runs attempts and wants to know what left the process:

- ``reach()`` is what a curious body finds: the worker's own keys, in its own memory;
- ``chatter(secret)`` is what a careless body says: the key in every spelling;
- ``leaks(secret, places)`` searches what was written, in every spelling, and ``assert_absent`` is
  the same as an assertion. ``files``, ``execution`` and ``commits`` are the usual places.
"""

from __future__ import annotations

import base64
import gc
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from perago.brokers.conductor.client import ConductorClient
from perago.errors import PeragoError
from perago.ports import Store
from perago.protocol.values import Commit

Place = tuple[str, bytes]
"""A name for people, and what is there."""
_ALIGNMENTS = 3
_KEYS = {
    "LakeFSSettings": ("secret_access_key",),
    "ConductorSettings": ("auth_secret",),
}
_SHARE = 2


def reach() -> list[str]:
    """Find the worker's keys as any code of the same process can: in memory, not by name."""
    found = {
        str(value)
        for kept in gc.get_objects()
        for name in _KEYS.get(type(kept).__name__, ())
        if (value := getattr(kept, name, None))
    }
    return sorted(found)


def chatter(secret: str) -> str:
    """Say a key in every spelling, each between words, so that nothing else is alike."""
    return " | ".join(f"{name} {text}" for name, text in spellings(secret).items())


def spellings(secret: str) -> dict[str, str]:
    """Spell a key in every way in which it could be read back without knowing it."""
    data = secret.encode()
    found = {
        "plain": secret,
        "url": quote(secret, safe=""),
        "url lower": "".join(c if c.isalnum() else f"%{ord(c):02x}" for c in secret),
        "json": json.dumps(secret)[1:-1],
        "json escapes": "".join(c if c.isalnum() else f"\\u{ord(c):04x}" for c in secret),
        "repr": repr(secret)[1:-1],
        "hex": data.hex(),
        "HEX": data.hex().upper(),
    }
    for lead in range(_ALIGNMENTS):
        padded = b"k:"[:lead] + data
        for kind, encode in (("base64", base64.b64encode), ("base64url", base64.urlsafe_b64encode)):
            text = encode(padded).decode()
            found[f"{kind} at {lead}"] = text
            found[f"{kind} at {lead} unpadded"] = text.rstrip("=")
            found[f"{kind} at {lead} inside"] = encode(padded + b":tail").decode()
    return found


def traces(secret: str) -> dict[str, bytes]:
    """Return what is searched for: of base64 only the characters that the key alone decides."""
    data, found = secret.encode(), {}
    for name, text in spellings(secret).items():
        if not name.startswith("base64"):
            found[name] = text.encode()
    for lead in range(_ALIGNMENTS):
        first, last = -(-8 * lead // 6), (8 * lead + 8 * len(data)) // 6
        for kind, encode in (("base64", base64.b64encode), ("base64url", base64.urlsafe_b64encode)):
            found[f"{kind} at {lead}"] = encode(b"\0" * lead + data)[first:last]
    # Half of a key is too much, too: a limit may have cut it.
    half = max(len(secret) // _SHARE, min(len(secret), 8))
    return found | {"first half": secret[:half].encode(), "second half": secret[-half:].encode()}


def leaks(secret: str, places: Iterable[Place]) -> list[str]:
    """Return a sentence for each place that holds the key, or half of it, in some spelling."""
    wanted = traces(secret)
    return [
        f"V8: a key is in {name} ({kind})"
        for name, content in places
        for kind, trace in wanted.items()
        if trace in content
    ]


def assert_absent(secret: str, *places: Place | Iterable[Place]) -> None:
    """Assert that a key is nowhere; each place is one of the below, or a name and its content."""
    flat: list[Place] = []
    for place in places:
        if isinstance(place, tuple) and len(place) == 2 and isinstance(place[0], str):
            flat.append((place[0], place[1]))
        else:
            flat.extend(place)
    assert flat, "there is nothing to search: the case left nothing behind"
    assert leaks(secret, flat) == []


def told(name: str, *values: object) -> Place:
    """Make a place of values: as text, as repr, and as JSON where that is possible."""
    parts = [part for value in values for part in (str(value), repr(value), _json(value))]
    return name, "\n".join(parts).encode(errors="backslashreplace")


def files(*roots: Path, apart: Iterable[Path] = ()) -> Iterator[Place]:
    """Read every file below some directories, and their names; ``apart`` is left out.

    Logs, event logs, the ledger and the state of runs are files; so is the content cache, whose
    bytes are the body's own and may hold what it likes.
    """
    left_out = tuple(apart)
    for root in roots:
        for path in sorted((root, *root.rglob("*")) if root.is_dir() else (root,)):
            if any(path.is_relative_to(other) for other in left_out):
                continue
            yield f"the name of {path}", str(path).encode(errors="backslashreplace")
            try:
                if path.is_file() and not path.is_symlink():
                    yield str(path), path.read_bytes()
            except OSError:
                continue  # It went while we looked.


def execution(client: ConductorClient, workflow_id: str) -> Iterator[Place]:
    """Read what Conductor keeps of a workflow: its tasks as JSON, and the log of each."""
    found: Mapping[str, Any] = client.execution(workflow_id) or {}
    yield f"Conductor's execution {workflow_id}", json.dumps(found).encode()
    for task in found.get("tasks", ()):
        yield f"Conductor's log of task {task['taskId']}", _task_log(client, task["taskId"])


def commits(store: Store, repository: str, *refs: str) -> Iterator[Place]:
    """Read messages and metadata of all commits behind some refs, staged ones included."""
    seen: dict[str, Commit] = {}
    waiting = list(refs) or ["main"]
    while waiting:
        ref = waiting.pop()
        try:
            history = list(store.history(repository, ref))
        except PeragoError:
            continue  # A staging commit that was never kept.
        for commit in history:
            if commit.id in seen:
                continue
            seen[commit.id] = commit
            if staged := commit.metadata.get("perago.staging_commit"):
                waiting.append(staged)
    for commit in seen.values():
        said = {"message": commit.message, "metadata": dict(commit.metadata)}
        yield f"commit {commit.id} of {repository}", json.dumps(said).encode()


def _task_log(client: ConductorClient, task_id: str) -> bytes:
    from perago.brokers.conductor.client import Ask  # noqa: PLC0415 - only here

    found = client.ask(Ask(f"read the log of task {task_id}", "GET", f"/tasks/{task_id}/log"))
    return json.dumps(found or []).encode()


def _json(value: object) -> str:
    try:
        return json.dumps(value, default=str)
    except (TypeError, ValueError):
        return ""
