"""Names of the things an execution makes for itself (S1, section 4 step 2)."""

from __future__ import annotations

import re
from hashlib import sha256

from perago.protocol.values import Attempt

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_MAX_PART = 48
STAGING = "perago-staging-"
PRIVATE = (STAGING, "perago-probe-")
"""What the names of branches begin with that people have no business with."""


def staging_branch(attempt: Attempt, execution_id: str) -> str:
    """Name the private branch of one execution; never the same twice."""
    return (
        f"{STAGING}{safe(attempt.workflow_instance_id)}-{safe(attempt.reference_task_name)}"
        f"-seq-{attempt.seq}-iteration-{attempt.iteration}-task-id-{safe(attempt.task_id)}"
        f"-retry-{attempt.retry_count}-exec-{safe(execution_id)}"
    )


def attempt_dir(task_id: str, execution_id: str) -> str:
    """Name the attempt directory; it holds the task id and the execution id."""
    return f"{safe(task_id)}-{safe(execution_id)}"


def safe(part: str) -> str:
    """Keep ``[A-Za-z0-9_-]``; what had to be changed or cut carries a digest of the original."""
    clean = _UNSAFE.sub("_", part)
    if clean == part and len(part) <= _MAX_PART:
        return part
    digest = sha256(part.encode(errors="surrogatepass")).hexdigest()[:10]
    return f"{clean[: _MAX_PART - 11]}-{digest}"
