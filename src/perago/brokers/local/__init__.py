"""The local broker: runs a Conductor WorkflowDef on one machine, with its state in SQLite."""

from perago.brokers.local.broker import LocalBroker
from perago.brokers.local.runner import Runner, TaskTable
from perago.brokers.local.state import State
from perago.workflow.controls import Controls, RetryLogic, TimeoutAction
from perago.workflow.definition import Workflow
from perago.workflow.parsing import parse_workflow
from perago.workflow.records import RunRecord, RunStatus, TaskRecord
from perago.workflow.writers import refuse_parallel_writers

__all__ = [
    "Controls",
    "LocalBroker",
    "RetryLogic",
    "RunRecord",
    "RunStatus",
    "Runner",
    "State",
    "TaskRecord",
    "TaskTable",
    "TimeoutAction",
    "Workflow",
    "parse_workflow",
    "refuse_parallel_writers",
]
