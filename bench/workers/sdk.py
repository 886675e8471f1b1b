"""The same task on the Conductor SDK's own worker: two threads, nothing else."""

import os

from conductor.client.automator.task_handler import TaskHandler
from conductor.client.configuration.configuration import Configuration
from conductor.client.http.models.task import Task
from conductor.client.http.models.task_result import TaskResult
from conductor.client.http.models.task_result_status import TaskResultStatus
from conductor.client.worker.worker_task import WorkerTask


@WorkerTask("bench_free", poll_interval=1, thread_count=2)  # type: ignore[untyped-decorator]
def free(task: Task) -> TaskResult:
    """Add one."""
    total = task.input_data["params"]["number"] + 1
    result = task.to_task_result(TaskResultStatus.COMPLETED)
    result.output_data = {"result": {"total": total}}
    return result


def main() -> None:
    """Work until killed."""
    configuration = Configuration(server_api_url=os.environ["CONDUCTOR_SERVER_URL"])
    with TaskHandler(configuration=configuration) as handler:
        handler.start_processes()
        handler.join_processes()


if __name__ == "__main__":
    main()
