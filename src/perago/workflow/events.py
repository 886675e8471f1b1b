"""What a runner tells its listener: plain dictionaries, one per thing that happened."""

from __future__ import annotations

from collections.abc import Callable

from perago.workflow.records import RunRecord, TaskRecord

Event = dict[str, object]
OnEvent = Callable[[Event], None]


def about_task(name: str, task: TaskRecord, **facts: object) -> Event:
    """Describe something that happened to one attempt."""
    return {
        "event": name,
        "run_id": task.run_id,
        "task_id": task.task_id,
        "reference_task_name": task.reference_name,
        "task_def_name": task.task_def_name,
        "kind": str(task.kind),
        "retry_count": task.retry_count,
        "seq": task.seq,
        **facts,
    }


def about_run(name: str, run: RunRecord, **facts: object) -> Event:
    """Describe something that happened to a run."""
    return {"event": name, "run_id": run.id, "status": str(run.status), **facts}


def finished(task: TaskRecord) -> Event:
    """Describe the end of an attempt, as the state has it."""
    begun = task.started_at if task.started_at is not None else task.scheduled_at
    return about_task(
        "task_finished",
        task,
        status=str(task.status),
        reason=task.reason,
        output=dict(task.output),
        seconds=max(0.0, (task.ended_at or begun) - begun),
    )


def within(step: str, event: Event) -> Event:
    """Say of which step an event is a part; those of the run itself are of none."""
    return {**event, "within": step} if step else event


def nobody_listens(event: Event) -> None:
    """Take an event and do nothing."""
    del event
