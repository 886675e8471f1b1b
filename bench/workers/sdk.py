"""The same task on the Conductor SDK's own worker: two threads, nothing else."""

from __future__ import annotations

import os

from conductor.client.automator.task_handler import TaskHandler
from conductor.client.configuration.configuration import Configuration
from conductor.client.worker.worker_task import WorkerTask


@WorkerTask("bench_free", poll_interval=1, thread_count=2)  # type: ignore[untyped-decorator]
def free(params: dict[str, int]) -> dict[str, dict[str, int]]:
    """Add one."""
    return {"result": {"total": params["number"] + 1}}


def main() -> None:
    """Work until killed."""
    configuration = Configuration(server_api_url=os.environ["CONDUCTOR_SERVER_URL"])
    with TaskHandler(configuration=configuration) as handler:
        handler.start_processes()
        handler.join_processes()


if __name__ == "__main__":
    main()
