"""The page of the protocol says what the code does, and its scripts work on real servers (Q17)."""

from __future__ import annotations

import re
import shutil
import subprocess
import uuid
from pathlib import Path

import pytest

from perago.conform.cases import NAMES
from perago.conform.examining import params
from perago.dev import ConductorEndpoint, LakeFSEndpoint
from perago.protocol.audit import confirm_metadata, staged_metadata
from perago.protocol.evidence import Invariant
from perago.protocol.lineage import MAX_RANGE, WorkspacePublicationPlan
from perago.protocol.names import safe, staging_branch
from perago.protocol.values import Attempt, Claim, StagedWorkspace, Staging, Status, WorkspaceInput
from perago.stores.lakefs.action import KEY, render
from tests.docs.pages import blocks, names_in, rows, sections, text_of
from tests.environment import clean_environment
from tests.lakefs_lab import ArrangedLakeFS, new_name
from tests.patience import LIMIT

PAGE = "docs/reference/protocol.md"
ATTEMPT = Attempt("workflow", "task", 2, "step", "name", seq=3, iteration=4)


def test_the_action_of_fence_hard_is_the_one_that_is_installed() -> None:
    (action,) = blocks(PAGE, "yaml")
    assert action == render(["main"])
    assert f"`{KEY}`" in text_of(PAGE)


def test_the_name_of_a_staging_branch_is_the_one_that_is_used() -> None:
    pattern = next(block for block in blocks(PAGE, "text") if block.startswith("perago-staging-"))
    values = {
        "workflowInstanceId": "workflow",
        "referenceTaskName": "step",
        "seq": "3",
        "iteration": "4",
        "taskId": "task",
        "retryCount": "2",
        "executionId": "execution",
    }
    named = re.sub(r"<(\w+)>", lambda found: values[found[1]], pattern.strip())
    assert named == staging_branch(ATTEMPT, "execution")
    long = safe("x" * 49)
    assert re.fullmatch(r"x{37}-[0-9a-f]{10}", long)
    assert safe("x" * 48) == "x" * 48


def test_the_metadata_is_that_of_the_code() -> None:
    claim = Claim(ATTEMPT, {}, "execution")
    read = WorkspaceInput("repo", "main", "commit", "A")
    staged = staged_metadata(claim, read, "/", Staging("repo", "staging"))
    plan = WorkspacePublicationPlan("main", "A", "A", "", "key")
    merged = confirm_metadata(staged, StagedWorkspace("repo", "staging", "C"), plan)
    table = rows(sections(PAGE)["Commit metadata"])[1:]
    assert {row[0].strip("`") for row in table if row[2] == "yes"} == set(staged)
    assert {row[0].strip("`") for row in table if row[3] == "yes"} == set(merged)


def test_every_status_of_a_task_is_in_the_table_of_p2a() -> None:
    section = sections(PAGE)["Publication"]
    assert names_in(section) >= {str(status) for status in Status}
    assert str(MAX_RANGE) in sections(PAGE)["Fence kinds"]


def test_the_cases_the_promises_and_the_params_are_those_of_the_command() -> None:
    section = rows(sections(PAGE)["Verify with perago conform"])
    assert [row[0].strip("`") for row in section if row[0].startswith("`")] == list(NAMES)
    assert [row[0] for row in section if re.fullmatch(r"V\d", row[0])] == list(map(str, Invariant))
    body = sections(PAGE)["The body that perago conform asks for"]
    assert set(re.findall(r'^  "(\w+)":', body, re.MULTILINE)) == set(params())


def test_the_page_names_no_programming_language() -> None:
    words = re.sub(r"```.*?```", "", text_of(PAGE), flags=re.DOTALL)
    assert not re.search(r"\b(?:Python|Java|TypeScript|Rust|Go SDK|Pydantic|urllib)\b", words)


@pytest.mark.parametrize(
    ("number", "last"),
    [(0, "the publication table holds"), (1, "one attempt was published and accepted")],
)
def test_the_scripts_work(
    lakefs_server: LakeFSEndpoint,
    conductor_server: ConductorEndpoint,
    tmp_path: Path,
    number: int,
    last: str,
) -> None:
    if shutil.which("curl") is None:
        pytest.skip("the scripts are for curl")
    store = ArrangedLakeFS(lakefs_server, tmp_path)
    repository = new_name()
    store.create_repository(repository)
    script = tmp_path / f"{uuid.uuid4().hex}.sh"
    script.write_text(blocks(PAGE, "sh")[number])
    done = subprocess.run(
        ["sh", str(script)],
        cwd=tmp_path,
        env={
            **clean_environment(),
            "LAKECTL_SERVER_ENDPOINT_URL": lakefs_server.endpoint,
            "LAKECTL_CREDENTIALS_ACCESS_KEY_ID": lakefs_server.access_key_id,
            "LAKECTL_CREDENTIALS_SECRET_ACCESS_KEY": lakefs_server.secret,
            "CONDUCTOR_SERVER_URL": conductor_server.url,
            "REPOSITORY": repository,
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
    )
    left = [branch.name for branch in store.branches(repository, hidden=True)]
    store.close()
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == last
    assert left == ["main"]
