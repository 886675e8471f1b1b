"""A worker that keeps the protocol, written from its page with the standard library alone.

It does one attempt at a time. ``python -m tests.conform.native_worker TASK PREFIX`` polls for
``TASK``; the servers are named by the usual variables.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
import threading
import time
import unicodedata
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

JSON = Any
CALL_SECONDS = 60.0
AMBIGUOUS = {408, 499, 500, 502, 503, 504}
MARGIN_READS = 20
PAGE = 1000
LONGEST_PART = 48


class RefusedError(Exception):
    """The attempt ends without success; Conductor may try again."""

    status = "FAILED"


class LostError(RefusedError):
    """The attempt is another's, or over: there is nothing to report."""


class TerminalError(RefusedError):
    """The attempt ends, and a retry cannot help."""

    status = "FAILED_WITH_TERMINAL_ERROR"


class AnsweredError(Exception):
    """A server said no."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(f"{code} {words}")
        self.code = code


def call(
    method: str, url: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
) -> bytes:
    request = urllib.request.Request(url, body, dict(headers or {}), method=method)  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=CALL_SECONDS) as answer:  # noqa: S310
            content: bytes = answer.read()
            return content
    except urllib.error.HTTPError as error:
        raise AnsweredError(error.code, error.read().decode(errors="replace")) from None


class Conductor:
    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")

    def ask(self, method: str, path: str, body: JSON = None) -> JSON:
        sent = None if body is None else json.dumps(body).encode()
        found = call(method, self.url + path, sent, {"Content-Type": "application/json"})
        try:
            return json.loads(found) if found else None
        except ValueError:
            return found.decode()

    def task(self, task_id: str) -> JSON:
        try:
            return self.ask("GET", f"/tasks/{task_id}")
        except AnsweredError as error:
            if error.code == 404:
                return None
            raise


class LakeFS:
    def __init__(self, url: str, key: str, secret: str) -> None:
        self.url = url.rstrip("/").removesuffix("/api/v1") + "/api/v1"
        token = base64.b64encode(f"{key}:{secret}".encode()).decode()
        self.headers = {"Authorization": f"Basic {token}"}

    def raw(self, method: str, path: str, body: bytes | None = None) -> bytes:
        headers = {**self.headers, "Content-Type": "application/octet-stream"}
        return call(method, self.url + path, body, headers)

    def ask(self, method: str, path: str, body: JSON = None) -> JSON:
        sent = None if body is None else json.dumps(body).encode()
        headers = {**self.headers, "Content-Type": "application/json"}
        found = call(method, self.url + path, sent, headers)
        try:
            return json.loads(found) if found else None
        except ValueError:
            return found.decode()

    def pages(self, path: str) -> list[JSON]:
        found, after = [], ""
        while True:
            page = self.ask("GET", f"{path}&amount={PAGE}&after={quote(after, safe='')}")
            found += page["results"]
            if not page["pagination"]["has_more"]:
                return found
            after = page["pagination"]["next_offset"]


class Attempt:
    """One delivery of a task, and what is known of it on the way."""

    def __init__(self, task: JSON) -> None:
        self.task = task
        self.id: str = task["taskId"]
        self.workflow: str = task["workflowInstanceId"]
        self.retry: int = task.get("retryCount") or 0
        self.reference: str = task["referenceTaskName"]
        self.iteration: int = task.get("iteration") or 0
        self.execution = uuid.uuid4().hex
        self.key = f"{self.workflow}:{self.reference}:{self.iteration}"
        self.staging = (
            f"perago-staging-{part(self.workflow)}-{part(self.reference)}"
            f"-seq-{task.get('seq') or 0}-iteration-{self.iteration}"
            f"-task-id-{part(self.id)}-retry-{self.retry}-exec-{self.execution}"
        )
        self.phase = "input"
        self.workspace: dict[str, str] = {}
        self.params: dict[str, Any] = {}

    @property
    def repository(self) -> str:
        return f"/repositories/{quote(self.workspace['repository'], safe='')}"

    @property
    def target(self) -> str:
        return f"{self.repository}/branches/{quote(self.workspace['branch'], safe='')}"

    @property
    def a(self) -> str:
        return self.workspace["ref"]

    def identity(self) -> dict[str, str]:
        return {
            "perago.execution_id": self.execution,
            "perago.logical_task_key": self.key,
            "perago.task": self.task["taskDefName"],
            "perago.workflow_instance_id": self.workflow,
            "perago.task_id": self.id,
            "perago.retry_count": str(self.retry),
        }


class Worker:
    def __init__(self, task: str, prefix: str) -> None:
        env = os.environ
        self.task = task
        self.prefix = prefix.strip("/") + "/" if prefix.strip("/") else ""
        self.conductor = Conductor(env["CONDUCTOR_SERVER_URL"])
        self.lakefs = LakeFS(
            env["LAKECTL_SERVER_ENDPOINT_URL"],
            env["LAKECTL_CREDENTIALS_ACCESS_KEY_ID"],
            env["LAKECTL_CREDENTIALS_SECRET_ACCESS_KEY"],
        )

    def serve(self) -> None:
        while True:
            path = f"/tasks/poll/batch/{self.task}?workerid=native&count=1&timeout=500"
            try:
                found = self.conductor.ask("GET", path) or []
            except (AnsweredError, OSError):
                time.sleep(1.0)  # before the next poll
                continue
            for task in found:
                self.run(Attempt(task))

    def run(self, attempt: Attempt) -> None:
        over = threading.Event()
        heartbeat = threading.Thread(target=self.extend, args=(attempt, over), daemon=True)
        heartbeat.start()
        try:
            status, output, reason = "COMPLETED", self.transact(attempt), ""
        except LostError as error:
            sys.stderr.write(f"{attempt.id}: {error}\n")
            return
        except Exception as error:  # noqa: BLE001 - whatever it is, it is reported
            status = error.status if isinstance(error, RefusedError) else "FAILED"
            words = f"{attempt.phase}: {type(error).__name__}: {error}"
            output, reason = {}, " ".join(words.split())[:500]
        finally:
            over.set()
            heartbeat.join()
        self.report(attempt, status, output, reason)

    def extend(self, attempt: Attempt, over: threading.Event) -> None:
        """Keep the lease until the attempt is over; a lost one is left to the fence."""
        lease = attempt.task.get("responseTimeoutSeconds") or 600
        body = {
            "workflowInstanceId": attempt.workflow,
            "taskId": attempt.id,
            "status": "IN_PROGRESS",
            "extendLease": True,
            "workerId": "native",
        }
        while not over.wait(lease / 3):
            try:
                self.conductor.ask("POST", "/tasks", body)
            except (AnsweredError, OSError):
                continue

    def report(self, attempt: Attempt, status: str, output: JSON, reason: str) -> None:
        body = {
            "workflowInstanceId": attempt.workflow,
            "taskId": attempt.id,
            "status": status,
            "outputData": output,
            "workerId": "native",
        }
        if reason:
            body["reasonForIncompletion"] = reason
        for _ in range(5):
            try:
                self.conductor.ask("POST", "/tasks", body)
            except (AnsweredError, OSError):
                time.sleep(0.5)  # before it is sent again
            found = self.conductor.task(attempt.id)  # R2: the answer says nothing.
            if found is None or found["status"] != "IN_PROGRESS":
                return

    # --- the attempt ------------------------------------------------------------------------

    def transact(self, attempt: Attempt) -> JSON:
        self.validate(attempt)
        with tempfile.TemporaryDirectory(prefix="native-") as place:
            directory = Path(place)
            attempt.phase = "download"
            before = self.download(attempt, directory)
            attempt.phase = "body"
            result = self.body(attempt, directory)
            attempt.phase = "diff"
            after = self.scan(directory)
            attempt.phase = "first attempt fence"
            self.fence(attempt)
            try:
                ref = self.confirm(attempt, directory, before, after)
            finally:
                shutil.rmtree(directory, ignore_errors=True)
                directory.mkdir()
        return {"workspace": {**attempt.workspace, "ref": ref}, "result": result}

    def confirm(
        self, attempt: Attempt, directory: Path, before: dict[str, str], after: dict[str, str]
    ) -> str:
        if before == after:
            return self.publish(attempt, None)
        try:
            attempt.phase = "stage"
            staged = self.stage(attempt, directory, before, after)
            return self.publish(attempt, staged)
        finally:
            self.clean(attempt)

    def validate(self, attempt: Attempt) -> None:
        given = dict(attempt.task["inputData"])
        for name in ("traceparent", "tracestate"):
            given.pop(name, None)
        if set(given) != {"workspace", "params"}:
            raise RefusedError(f"the input has the keys {sorted(given)}")
        workspace, params = given["workspace"], given["params"]
        if not isinstance(workspace, dict) or not isinstance(params, dict):
            raise RefusedError("workspace and params have to be objects")
        spelling = "refType" if "refType" in workspace else "ref_type"
        if set(workspace) != {"repository", "branch", spelling, "ref"}:
            raise RefusedError(f"workspace has the keys {sorted(workspace)}")
        if any(not isinstance(v, str) or not v.strip() for v in workspace.values()):
            raise RefusedError("a field of workspace is blank")
        if workspace[spelling] != "commit":
            raise RefusedError(f"{spelling} is not commit")
        attempt.workspace, attempt.params = workspace, params
        ref = quote(workspace["ref"], safe="")
        found = self.lakefs.ask("GET", f"{attempt.repository}/commits/{ref}")
        if found["id"] != workspace["ref"]:
            raise RefusedError("ref is not a full commit id")

    def listing(self, attempt: Attempt, ref: str) -> dict[str, JSON]:
        prefix = quote(self.prefix, safe="")
        found = self.lakefs.pages(f"{attempt.repository}/refs/{ref}/objects/ls?prefix={prefix}")
        files = {}
        for item in found:
            path = item["path"].removeprefix(self.prefix)
            marker = path.endswith("/") and not item.get("size_bytes")
            if item["path_type"] != "object" or item["path"].startswith("_lakefs_actions/"):
                continue
            if not marker and path.rpartition("/")[2] != ".perago-attempt.json":
                files[path] = item
        return files

    def download(self, attempt: Attempt, directory: Path) -> dict[str, str]:
        files = self.listing(attempt, attempt.a)
        check_names(files)
        for path, item in files.items():
            query = f"path={quote(item['path'], safe='')}"
            content = self.lakefs.raw(
                "GET", f"{attempt.repository}/refs/{attempt.a}/objects?{query}"
            )
            if len(content) != item["size_bytes"] or md5(content) != item["checksum"]:
                raise RefusedError(f"{path!a} arrived damaged")
            to = directory / path
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_bytes(content)
        return {path: item["checksum"] for path, item in files.items()}

    def body(self, attempt: Attempt, directory: Path) -> JSON:
        """Do what the page says of the body of the task under examination."""
        params = attempt.params
        for path, text in params["write"].items():
            to = directory / path
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_text(text)
        for path in params["delete"]:
            (directory / path).unlink(missing_ok=True)
        time.sleep(params["pause_seconds"])  # as it is told
        if params["terminal"]:
            raise TerminalError("the params ask for it")
        if attempt.retry < params["fail_attempts"]:
            raise RefusedError("the params ask for it")
        return {"written": len(params["write"])}

    def scan(self, directory: Path) -> dict[str, str]:
        found = {}
        for path in sorted(directory.rglob("*")):
            if path.is_symlink():
                raise RefusedError("workspace publication does not support symlinks")
            if path.is_file():
                found[path.relative_to(directory).as_posix()] = md5(path.read_bytes())
        return found

    def fence(self, attempt: Attempt) -> None:
        found = self.conductor.task(attempt.id)
        for name in ("workflowInstanceId", "taskId", "retryCount", "startTime"):
            if found is None or found[name] != attempt.task[name]:
                raise LostError(f"the attempt is no longer current: {name}")
        if found["status"] != "IN_PROGRESS":
            raise LostError(f"the attempt is no longer current: it is {found['status']}")

    def stage(
        self, attempt: Attempt, directory: Path, before: dict[str, str], after: dict[str, str]
    ) -> str:
        name = {"name": attempt.staging, "source": attempt.a, "hidden": True}
        self.lakefs.ask("POST", f"{attempt.repository}/branches", name)
        return self.fill(attempt, attempt.staging, directory, before, after)

    def fill(
        self,
        attempt: Attempt,
        branch: str,
        directory: Path,
        before: dict[str, str],
        after: dict[str, str],
    ) -> str:
        where = f"{attempt.repository}/branches/{branch}"
        for path, checksum in after.items():
            if before.get(path) != checksum:
                query = f"path={quote(self.prefix + path, safe='')}"
                content = (directory / path).read_bytes()
                self.lakefs.raw("POST", f"{where}/objects?{query}", content)
        gone = [self.prefix + path for path in before if path not in after]
        for start in range(0, len(gone), PAGE):
            paths = {"paths": gone[start : start + PAGE]}
            self.lakefs.ask("POST", f"{where}/objects/delete", paths)
        metadata = {
            "perago.phase": "try",
            **attempt.identity(),
            "perago.input_ref": attempt.a,
            "perago.target_branch": attempt.workspace["branch"],
            "perago.prefix": "/" + self.prefix.rstrip("/"),
            "perago.staging_branch": branch,
        }
        body = {"message": f"{attempt.reference}: {self.task}", "metadata": metadata}
        commit: str = self.lakefs.ask("POST", f"{where}/commits", body)["id"]
        return commit

    # --- the publication --------------------------------------------------------------------

    def head(self, attempt: Attempt) -> JSON:
        ref = self.lakefs.ask("GET", attempt.target)["commit_id"]
        return self.lakefs.ask("GET", f"{attempt.repository}/commits/{ref}")

    def fenced_head(self, attempt: Attempt) -> JSON:
        """Read H, ask Conductor, read H again (F3, P2a)."""
        attempt.phase = "second attempt fence"
        head = self.head(attempt)
        self.fence(attempt)
        if head["id"] != attempt.a and head["parents"][:1] == [attempt.a]:
            self.ask_for_task_of(attempt, head)
        if self.head(attempt)["id"] != head["id"]:
            raise RefusedError("the target moved while the attempt was publishing")
        return head

    def ask_for_task_of(self, attempt: Attempt, head: JSON) -> None:
        said = head.get("metadata") or {}
        if "perago.kind" in said:
            raise RefusedError("the head is not the work of an attempt")
        if not (task_id := said.get("perago.task_id")):
            return
        found = self.conductor.task(task_id)
        if found is None:
            allowed = said.get("perago.workflow_instance_id") == attempt.workflow
        elif found["status"] in {"SCHEDULED", "IN_PROGRESS"}:
            allowed = said.get("perago.logical_task_key") == attempt.key
        else:
            allowed = found["status"] != "COMPLETED"
        if not allowed:
            raise RefusedError(f"the head was published by task {task_id}, which is not abandoned")

    def publish(self, attempt: Attempt, staged: str | None) -> str:
        head = self.fenced_head(attempt)
        attempt.phase = "publish"
        if head["id"] == attempt.a:
            return attempt.a if staged is None else self.merge(attempt, staged)
        if head["parents"][:1] == [attempt.a] and len(head["parents"]) == 1:
            return self.reset(attempt, attempt.a if staged is None else staged)
        raise RefusedError(
            f"the head is {head['id']}, expected {attempt.a} or a child of it;"
            " start a new workflow from the current head of the branch"
        )

    def merge(self, attempt: Attempt, staged: str) -> str:
        metadata = {
            "perago.phase": "confirm",
            **attempt.identity(),
            "perago.input_ref": attempt.a,
            "perago.target_branch": attempt.workspace["branch"],
            "perago.prefix": "/" + self.prefix.rstrip("/"),
            "perago.staging_branch": attempt.staging,
            "perago.staging_commit": staged,
            "perago.expected_head": attempt.a,
            "perago.supersedes": "",
        }
        message = f"{attempt.reference}: {self.task}"
        body = {"message": message, "metadata": metadata, "squash_merge": True}
        path = f"{attempt.repository}/refs/{staged}/merge/{attempt.workspace['branch']}"

        def landed(head: JSON) -> bool:
            said = head.get("metadata") or {}
            mine = said.get("perago.execution_id") == attempt.execution
            return bool(mine and head["parents"] == [attempt.a])

        answer = self.publish_call(attempt, attempt.a, landed, "POST", path, body)
        head = self.head(attempt)
        content = self.lakefs.ask("GET", f"{attempt.repository}/commits/{staged}")["meta_range_id"]
        if not landed(head) or head["meta_range_id"] != content:
            raise RefusedError("the publication cannot be verified")
        if answer and answer["reference"] != head["id"]:
            raise RefusedError("the target is at another commit")
        ref: str = head["id"]
        return ref

    def publish_call(
        self,
        attempt: Attempt,
        before: str,
        landed: Callable[[JSON], bool],
        *request: Any,
    ) -> JSON:
        """Send once; without an answer, read the target until the margin is over (P6, P11)."""
        try:
            return self.lakefs.ask(*request)
        except AnsweredError as error:
            if error.code not in AMBIGUOUS:
                raise
        except OSError:
            pass
        for _ in range(MARGIN_READS):
            head = self.head(attempt)
            if landed(head):
                return None
            if head["id"] != before:
                raise RefusedError("a lost race")
            time.sleep(0.5)  # before it is read again
        raise RefusedError("it is not known whether the publication landed")

    def reset(self, attempt: Attempt, to: str) -> str:
        if self.lakefs.ask("GET", f"{attempt.target}/diff?amount=1")["results"]:
            raise RefusedError("the target has uncommitted changes")
        before = self.head(attempt)["id"]
        path = f"{attempt.target}/hard_reset?ref={to}"
        self.publish_call(attempt, before, lambda head: bool(head["id"] == to), "PUT", path)
        if self.head(attempt)["id"] != to:
            raise RefusedError("the publication cannot be verified")
        return to

    def clean(self, attempt: Attempt) -> None:
        try:
            self.lakefs.ask("DELETE", f"{attempt.repository}/branches/{attempt.staging}")
        except (AnsweredError, OSError):
            sys.stderr.write("failed to clean staging workspace\n")


def md5(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def part(text: str) -> str:
    """Keep what may be in the name of a branch; what is changed or cut carries a digest."""
    clean = re.sub(r"[^A-Za-z0-9_-]", "_", text)
    if clean == text and len(text) <= LONGEST_PART:
        return text
    return f"{clean[: LONGEST_PART - 11]}-{hashlib.sha256(text.encode()).hexdigest()[:10]}"


def fold(path: str) -> str:
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", path).casefold())


def check_names(files: Mapping[str, JSON]) -> None:
    """Refuse what could not be a file everywhere, alone or beside the others (D2)."""
    seen: dict[str, str] = {}
    for path in files:
        parts = path.split("/")
        bad = any(one in {"", ".", ".."} or len(one.encode()) > 255 for one in parts)
        if bad or re.search(r"[\x00\\]", path):
            raise RefusedError(f"object {path!a} cannot be a file")
        for count in range(1, len(parts)):
            directory = "/".join(parts[:count]) + "/"
            if seen.setdefault(fold(directory), directory) != directory:
                raise RefusedError(f"directory {directory!a} differs from another only in case")
        if seen.setdefault(fold(path), path) != path:
            raise RefusedError(f"object {path!a} differs from another only in case or form")
    for path in files:
        if f"{fold(path)}/" in seen:
            raise RefusedError(f"object {path!a} is a file and a directory")


def main(make: Callable[[str, str], Worker] = Worker) -> None:
    make(sys.argv[1], sys.argv[2]).serve()


if __name__ == "__main__":
    main()
