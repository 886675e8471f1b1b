"""The only file that speaks HTTP with Conductor. A timeout on every call (section 13).

The library underneath never repeats a request by itself, and neither does this file for a poll
or a report: tasks of a lost poll sit in progress until their response timeout, and a report is
settled by reading the task. What may be repeated is repeated by the table in ``errors``.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, urlencode

from perago.brokers.conductor.address import API, root_of
from perago.brokers.conductor.errors import (
    NOT_FOUND,
    UNKNOWN_KEY,
    Call,
    may_retry,
    translate,
    unanswered,
)
from perago.brokers.conductor.tokens import Tokens
from perago.errors import NotFoundError, PermissionRefusedError
from perago.protocol.values import Attempt
from perago.redaction import KNOWN, hidden_output, hide
from perago.settings import ConductorSettings
from perago.transfer.http_pool import HttpConnectionPool
from perago.transfer.json_http import TRIES, Reply, Request, exchange, repeatable_words, repeated
from perago.transfer.wire import JSON, path_of

CALL_SECONDS = 30.0
_PAGE = 100
_NO_TOKENS = frozenset({404, 405})


@dataclass(frozen=True, slots=True)
class Ask:
    """One request: ``what`` names it in errors, its first word the permission it needs."""

    what: str
    method: str
    path: str
    call: Call = Call.READ
    query: Mapping[str, Any] | None = None
    body: Any = None
    wait_seconds: float = 0.0
    """How long the server may wait on purpose before it answers."""
    within_seconds: float | None = None
    """How long all tries may take together, where that is less than for every call."""
    plain: bool = False
    """Its answer is text, not JSON."""
    open: bool = False
    """It is not below ``/api`` and wants no token."""


class ConductorClient:
    """Connections to one server; shared by threads, never by processes."""

    def __init__(
        self,
        settings: ConductorSettings,
        connections: int = 8,
        call_seconds: float = CALL_SECONDS,
    ) -> None:
        self.root = root_of(settings.url)
        self._seconds = call_seconds
        headers = {"User-Agent": "perago", "Accept": "application/json, text/plain"}
        self._line = HttpConnectionPool(self.root, connections, headers)
        self._key, self._secret = settings.auth_key, settings.auth_secret
        self._tokens = Tokens(self._fetch_token, time.time) if settings.auth_key else None
        self.requests = 0

    # --- tasks --------------------------------------------------------------------------------

    def poll(
        self,
        task_type: str,
        worker_id: str,
        count: int,
        *,
        domain: str = "",
        wait_seconds: float = 0.0,
    ) -> list[dict[str, Any]]:
        """Take up to ``count`` tasks; the server may wait for one to come. Never repeated.

        ``BrokerUnavailableError``: tasks may have been handed out that no worker has; they come
        back when their response timeout is over.
        """
        query = {"workerid": worker_id, "count": count, "timeout": round(wait_seconds * 1000)}
        if domain:
            query["domain"] = domain
        found = self.ask(
            Ask(
                f"poll tasks {task_type!r}",
                "GET",
                path_of("tasks", "poll", "batch", task_type),
                Call.ONCE,
                query,
                wait_seconds=wait_seconds,
            )
        )
        tasks = found if isinstance(found, list) else []
        return [task for task in tasks if isinstance(task, dict)]

    def task(self, task_id: str, within_seconds: float | None = None) -> dict[str, Any] | None:
        """Read a task; None when the server does not know it."""
        path = path_of("tasks", task_id)
        found = self._maybe(Ask(f"read task {task_id}", "GET", path, within_seconds=within_seconds))
        if found is not None and not isinstance(found, dict):
            raise unanswered(f"read task {task_id}", "what came is not a task")
        return found

    def extend(self, attempt: Attempt, worker_id: str) -> None:
        """Start the response timeout anew; a task that is over is left alone, without a word."""
        body = {
            "workflowInstanceId": attempt.workflow_instance_id,
            "taskId": attempt.task_id,
            "status": "IN_PROGRESS",
            "extendLease": True,
            "workerId": worker_id,
        }
        what = f"extend task {attempt.task_id}"
        self.ask(Ask(what, "POST", path_of("tasks"), Call.SAME, body=body, plain=True))

    def update(self, result: Mapping[str, Any], within_seconds: float | None = None) -> None:
        """Send a TaskResult once; the answer says nothing about whether it was taken (R2).

        ``BrokerUnavailableError``: it may have been taken; read the task.
        """
        what, path = f"update task {result.get('taskId')}", path_of("tasks")
        said: dict[str, object] = {}
        if output := result.get("outputData"):
            said["outputData"] = hidden_output(output)
        if reason := result.get("reasonForIncompletion"):
            said["reasonForIncompletion"] = hide(reason)
        self.ask(
            Ask(
                what,
                "POST",
                path,
                Call.ONCE,
                body={**result, **said},
                plain=True,
                within_seconds=within_seconds,
            )
        )

    def search_tasks(self, query: str) -> list[dict[str, Any]]:
        """List what the server's index says of tasks; it is a moment behind them."""
        found: list[dict[str, Any]] = []
        while True:
            asked = {"query": query, "start": len(found), "size": _PAGE}
            page = self.ask(Ask("search tasks", "GET", path_of("tasks", "search"), query=asked))
            listed = page.get("results") if isinstance(page, dict) else None
            new = [each for each in listed or [] if isinstance(each, dict)]
            found += new
            if len(new) < _PAGE:
                return found

    def log(self, task_id: str, text: str) -> None:
        """Add text to the task's own log; after a lost answer it may be there or not."""
        path = path_of("tasks", task_id, "log")
        self.ask(Ask(f"log task {task_id}", "POST", path, Call.ONCE, body=hide(text), plain=True))

    # --- definitions --------------------------------------------------------------------------

    def taskdef(self, name: str) -> dict[str, Any] | None:
        """Read a TaskDef; None when it is not registered."""
        path = path_of("metadata", "taskdefs", name)
        found = self._maybe(Ask(f"read task definition {name!r}", "GET", path))
        return dict(found) if found else None

    def put_taskdefs(self, definitions: Sequence[Mapping[str, Any]]) -> None:
        """Create or replace TaskDefs."""
        body = [dict(each) for each in definitions]
        path = path_of("metadata", "taskdefs")
        self.ask(Ask("register task definitions", "POST", path, Call.SAME, body=body, plain=True))

    def workflow(self, name: str, version: int | None = None) -> dict[str, Any] | None:
        """Read a WorkflowDef, the newest when no version is named; None when there is none."""
        path = path_of("metadata", "workflow", name)
        query = {} if version is None else {"version": version}
        found = self._maybe(Ask(f"read workflow {name!r}", "GET", path, query=query))
        return dict(found) if found else None

    def put_workflows(self, definitions: Sequence[Mapping[str, Any]]) -> None:
        """Create or replace WorkflowDefs."""
        body = [dict(each) for each in definitions]
        path = path_of("metadata", "workflow")
        self.ask(Ask("register workflows", "PUT", path, Call.SAME, body=body, plain=True))

    # --- workflows ----------------------------------------------------------------------------

    def start_workflow(
        self,
        name: str,
        given: Mapping[str, Any],
        version: int | None = None,
        correlation_id: str = "",
    ) -> str:
        """Start a workflow and return its id; never repeated, because it would run twice."""
        body: dict[str, Any] = {"name": name, "input": dict(given)}
        if version is not None:
            body["version"] = version
        if correlation_id:
            body["correlationId"] = correlation_id
        path = path_of("workflow")
        ask = Ask(f"start workflow {name!r}", "POST", path, Call.ONCE, body=body, plain=True)
        return str(self.ask(ask))

    def execution(self, workflow_id: str) -> dict[str, Any] | None:
        """Read a workflow with all of its tasks; None when the server does not know it."""
        path = path_of("workflow", workflow_id)
        query = {"includeTasks": "true"}
        found = self._maybe(Ask(f"read workflow {workflow_id}", "GET", path, query=query))
        return None if found is None else dict(found)

    def terminate(self, workflow_id: str, reason: str) -> None:
        """End a workflow."""
        path = path_of("workflow", workflow_id)
        what = f"terminate workflow {workflow_id}"
        self.ask(Ask(what, "DELETE", path, Call.SAME, {"reason": hide(reason)}, plain=True))

    # --- the server ---------------------------------------------------------------------------

    def health(self) -> bool:
        """Ask the server whether it is well."""
        found = self.ask(Ask("ask for health", "GET", "/health", open=True))
        return isinstance(found, dict) and found.get("healthy") is True

    def version(self) -> str:
        """Name the server's version; empty when it does not tell."""
        try:
            return str(self.ask(Ask("ask for the version", "GET", "/version", plain=True)) or "")
        except NotFoundError:
            return ""

    def server_time(self) -> str:
        """Return the ``Date`` header of an answer; empty when there is none."""
        reply = self._exchange(Ask("ask for the time", "GET", "/health", open=True))
        return reply.headers.get("date", "")

    def close(self) -> None:
        """Close the connections."""
        self._line.close()

    # --- one request --------------------------------------------------------------------------

    def ask(self, ask: Ask) -> Any:
        """Send a request and read its answer; repeats only what may be repeated."""
        reply = repeated(
            lambda: self._authorised(ask),
            self._most(ask),
            lambda status: may_retry(ask.call, status),
        )
        if reply.good:
            return reply.text if ask.plain else reply.body
        if reply.status is None:
            raise unanswered(ask.what, reply.words)
        raise translate(reply.status, reply.words, ask.what)

    def _maybe(self, ask: Ask) -> Any:
        try:
            return self.ask(ask)
        except NotFoundError:
            return None

    def _authorised(self, ask: Ask) -> Reply:
        """Send with a token where one is wanted; a refused token is replaced once."""
        if self._tokens is None or ask.open:
            return self._exchange(ask)
        token = self._tokens.current()
        reply = self._exchange(ask, token)
        if reply.status != UNKNOWN_KEY or token is None:
            return reply
        self._tokens.spent(token)  # It was not applied: sending it again is safe for every call.
        return self._exchange(ask, self._tokens.current())

    def _fetch_token(self) -> str | None:
        what = "log in to Conductor"
        body = {"keyId": self._key, "keySecret": self._secret}
        reply = self._exchange(Ask(what, "POST", "/token", Call.SAME, body=body))
        if reply.status in _NO_TOKENS:
            return None  # This server has no accounts.
        if reply.status is None:
            raise unanswered(what, reply.words)
        if not reply.good:
            status = UNKNOWN_KEY if reply.status < NOT_FOUND else reply.status
            raise translate(status, reply.words, what)
        token = reply.body.get("token") if isinstance(reply.body, dict) else None
        if not isinstance(token, str) or not token or not token.isprintable():
            raise PermissionRefusedError(
                f"{what}: the answer holds no token", remedy="check CONDUCTOR_SERVER_URL"
            )
        KNOWN.add_token(token)
        return token

    def _exchange(self, ask: Ask, token: str | None = None) -> Reply:
        body = None if ask.body is None else _encoded(ask.body)
        headers = dict(JSON) if body is not None else {}
        if token is not None:
            headers["X-Authorization"] = token
        self.requests += 1
        seconds = self._try_seconds(ask)
        request = Request(ask.method, _target(ask), seconds, body, headers, ask.plain)
        reply = exchange(self._line, request)
        secrets = self._secret, self._key, token
        return replace(reply, words=repeatable_words(reply.words, secrets))

    def _try_seconds(self, ask: Ask) -> float:
        if ask.call is Call.ONCE:
            return self._most(ask) + ask.wait_seconds
        return self._most(ask) / TRIES

    def _most(self, ask: Ask) -> float:
        within = ask.within_seconds
        return self._seconds if within is None else min(self._seconds, within)


def _target(ask: Ask) -> str:
    asked = "?" + urlencode(ask.query, quote_via=quote) if ask.query else ""
    return f"{'' if ask.open else API}{ask.path}{asked}"


def _encoded(body: Any) -> bytes:
    """Spell a body as JSON, text as it is; NaN raises ``ValueError`` here rather than there."""
    if isinstance(body, str):
        return body.encode(errors="replace")
    return json.dumps(body, allow_nan=False).encode()
