"""V8: every way out of a process, by name, and how keys are kept off it.

The source is searched for whatever can write: a stream, a file, a database, a socket, a console,
a span. A module that does and is not listed here fails, so that a new way out is thought about
on its first day. Those that are listed as hiding must ask ``perago.redaction``.
"""

from __future__ import annotations

import ast

import pytest

from tests.test_architecture import MODULES, Module

WRITES = frozenset(
    {
        *("write", "writelines", "write_text", "write_bytes", "sendall", "print"),
        *("executemany", "executescript", "set_attribute", "add_event", "set_status"),
        *("echo", "secho", "warn", "Console", "dump", "urlopen", "request"),
    }
)
STATEMENTS = ("INSERT", "UPDATE", "insert", "update")

HIDES = {
    # --- to people ---
    "perago.cli.screen": "all that commands print",
    "perago.cli.view": "the picture of a run, through marked()",
    "perago.cli.app": "a traceback of our own bugs",
    "perago.cli.graph": "drawings of workflows that others wrote",
    "perago.observe.console": "a worker's console",
    "perago.observe.watchers": "a worker's complaints",
    "perago.worker.event_fanout": "the complaint about one who should have complained",
    "perago.observe.tracing": "its warnings",
    # --- to files ---
    "perago.observe.logs": "log files",
    "perago.history.event_log": "the event log",
    "perago.worker.state": "the supervisor's state",
    "perago.worker.serving": "what /healthz and /readyz say",
    "perago.stores.embedded.commits": "messages and metadata of commits",
    "perago.ledger.sql": "results in the ledger",
    "perago.brokers.local.broker": "results and reasons of local runs",
    # --- to servers ---
    "perago.stores.lakefs.client": "messages and metadata of commits and merges",
    "perago.brokers.conductor.client": "results, reasons and the task log",
    "perago.observe.spans": "attributes and events of spans",
    "perago.observe.tasklog": "the task log",
}
"""Who writes words that somebody else may have chosen: it hides keys itself."""

NEEDS_NOT = {
    "perago.brokers.local.schema": "statements of local runs; the values come from the broker",
    "perago.brokers.local.state": "definitions and input as given, results from the broker",
    "perago.process.channel": "from executor to owner, who hides what goes on from there",
    "perago.process.killing": "points of tests",
    "perago.filesystem.roots": "marks of directories, and what is given to write privately",
    "perago.workspace.markers": "names of attempts",
    "perago.human.attempts": "the marker of a taken directory",
    "perago.human.directory": "names of an attempt, a version and a person; no params",
    "perago.workspace.roots": "marks of directories",
    "perago.workspace.stamps": "a probe of the file system",
    "perago.cli.ending": "warnings, through perago.cli.screen",
    "perago.cli.help": "our own help",
    "perago.cli.run": "warnings, through perago.cli.ending",
    "perago.cli.extract": "definitions of tasks, from their modules",
    "perago.cli.init": "our own template",
    "perago.cli.new": "workflows, from declarations of tasks",
    "perago.cli.picture": "pictures of numbers",
    "perago.dev.builds": "what builds of servers say",
    "perago.dev.cache": "names and hashes of programs",
    "perago.dev.progress": "what is being built",
    "perago.dev.record": "the keys of servers of our own, for their user alone",
    "perago.dev.servers": "arguments of servers",
    "perago.dev.tools": "what tools say",
    "perago.dev.unpacking": "parts of programs",
    "perago.dev.commands": "what tools say",
    "perago.ledger.postgres": "carries out what perago.ledger.sql says",
    "perago.ledger.sqlite": "carries out what perago.ledger.sql says",
    "perago.observe.instruments": "numbers; labels come by way of the event log",
    "perago.observe.logfiles": "lines of perago.observe.logs",
    "perago.observe.telemetry": "warnings, to whoever opened it",
    "perago.process.child": "a number to the kernel",
    "perago.process.pool": "a byte that wakes the loop",
    "perago.spark.connect": "code of the author",
    "perago.spark.jars": "names of jars",
    "perago.spark.jvm": "code of the author",
    "perago.spark.launch": "what Spark says, to the executor's own captured output",
    "perago.spark.places": "contents",
    "perago.attempt.lifecycle": "params, to the program of the attempt",
    "perago.attempt.progress": "what a program logs, to the executor's own captured output",
    "perago.attempt.staging": "contents",
    "perago.programs.event_lines": "our own warnings; the event log hides keys in them",
    "perago.programs.launcher": "how a program ended, to the executor",
    "perago.programs.launching": "what a program prints, to the executor's own captured output",
    "perago.programs.running": "our own warnings; the event log hides keys in them",
    "perago.programs.scratch": "params, to the program of the attempt",
    "perago.programs.serving": "our own warnings; the event log hides keys in them",
    "perago.tasks.definition": "makes JSON of a result; whoever sends it hides",
    "perago.stores.embedded.collecting": "deletions",
    "perago.stores.embedded.refs": "names of branches",
    "perago.stores.embedded.schema": "our schema",
    "perago.stores.embedded.snapshots": "names and hashes of contents",
    "perago.stores.embedded.store": "names of repositories, hashes",
    "perago.stores.lakefs.admin": "contents",
    "perago.stores.lakefs.api_objects": "contents",
    "perago.stores.lakefs.importing": "contents",
    "perago.stores.lakefs.manifests": "names and hashes of contents",
    "perago.stores.lakefs.presigned": "contents, to addresses that lakeFS signed",
    "perago.stores.lakefs.s3_multipart": "contents",
    "perago.terminal": "makes consoles; whoever prints on one hides",
    "perago.transfer.copying": "contents",
    "perago.transfer.index": "hashes",
    "perago.transfer.http_pool": "the bytes of requests; the two clients make them",
    "perago.transfer.trimming": "a time",
    "perago.ui.files": "contents, into a private directory, for the process of a preview",
    "perago.ui.preview": "to the page, which hides when it renders",
    "perago.worker.supervisor": "hands the state to perago.worker.state",
    "perago.attempt.working_copy": "contents",
    "perago.workspace.attempt_dirs": "who owns a directory",
}
"""Who writes, but nothing that a body or a server chose the words of."""


def writes(module: Module) -> list[str]:
    """Find the calls of a module that may bring something outside."""
    found: list[str] = []
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call):
            called = node.func
            name = getattr(called, "attr", getattr(called, "id", ""))
            if name in WRITES:
                found.append(f"{module.name}:{node.lineno} {name}()")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value.strip()
            if text.startswith(STATEMENTS) and " " in text:
                found.append(f"{module.name}:{node.lineno} {text[:20]!r}")
    return found


SINKS = {module.name: found for module in MODULES if (found := writes(module))}


@pytest.mark.parametrize("name", sorted(SINKS))
def test_v8_every_way_out_is_known(name: str) -> None:
    assert name in HIDES or name in NEEDS_NOT or name.startswith("perago.testing"), (
        f"{SINKS[name]}: does it write words of others? Then hide keys in them (perago.redaction) "
        "and list it in HIDES; otherwise say in NEEDS_NOT what it writes"
    )


@pytest.mark.parametrize("name", sorted(HIDES))
def test_v8_who_writes_the_words_of_others_asks_for_the_keys_to_be_hidden(name: str) -> None:
    module = next(module for module in MODULES if module.name == name)
    asked = ("perago.redaction", "perago.observe.secrets", "perago.cli.screen")
    assert any(each in module.imports for each in asked)


def test_the_lists_name_what_there_is() -> None:
    names = {module.name for module in MODULES}
    assert {*HIDES, *NEEDS_NOT} <= names
    assert not {*HIDES} & {*NEEDS_NOT}


def test_every_console_is_made_in_one_place() -> None:
    """So that none of them takes ``:fire:`` in a name for a picture."""
    makers = [
        name for name, found in SINKS.items() if any(each.endswith("Console()") for each in found)
    ]
    assert makers == ["perago.terminal"]
