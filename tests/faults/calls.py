"""The calls of an attempt on lakeFS, for rules that mean the repository of one case only."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.faults.proxy import Exchange, Fault, Rule, Seen


@dataclass(frozen=True)
class Call:
    """One kind of request; ``path`` is what follows the repository."""

    name: str
    method: str
    path: str

    def rule(
        self,
        fault: Fault,
        repository: str,
        times: int | None = 1,
        where: Callable[[Seen], bool] | None = None,
    ) -> Rule:
        path = f"/repositories/{repository}/{self.path}"
        return Rule(fault, self.method, path, times=times, where=where)

    def __str__(self) -> str:
        return self.name


LIST = Call("list", "GET", ".*objects/ls")
GET_OBJECT = Call("get object", "GET", r"refs/[^/]+/objects\?path=")
GET_BRANCH = Call("get branch", "GET", "branches/main$")
GET_COMMIT = Call("get commit", "GET", "commits/[0-9a-f]{64}")
CREATE = Call("create branch", "POST", "branches$")
UPLOAD = Call("upload", "POST", r"branches/[^/]+/objects\?path=")
DELETE = Call("delete", "POST", ".*objects/delete$")
COMMIT = Call("commit", "POST", "branches/perago-staging[^/]*/commits$")
MERGE = Call("merge", "POST", ".*merge/main$")
RESET = Call("hard reset", "PUT", "branches/main/hard_reset")
DROP = Call("delete branch", "DELETE", "branches/perago-staging")
READS = (LIST, GET_OBJECT, GET_COMMIT, GET_BRANCH)
EARLY = (LIST, GET_OBJECT, GET_COMMIT)
"""Made before the first fence, where nothing depends on the fence yet."""
WRITES = (CREATE, UPLOAD, DELETE, COMMIT, MERGE, DROP)


def by_attempt(retry: int) -> Callable[[Seen], bool]:
    """Tell whether a merge is of this attempt, by the metadata it carries."""
    words = (f'"perago.retry_count": "{retry}"', f'"perago.retry_count":"{retry}"')
    return lambda seen: any(word.encode() in seen.body for word in words)


def sender(exchange: Exchange, candidates: list[int]) -> int:
    """Find which process holds the other end of a connection."""
    port = f":{exchange.port:04X}"
    inodes = {
        f"socket:[{line.split()[9]}]"
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]
        if line.split()[1].endswith(port)
    }
    for pid in candidates:
        if _links(pid) & inodes:
            return pid
    raise AssertionError(f"nobody of {candidates} sent {exchange.seen}")


def _links(pid: int) -> set[str]:
    """Read what a process has open; what it closes meanwhile does not count."""
    found = set()
    with suppress(OSError):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                found.add(str(link.readlink()))
    return found
