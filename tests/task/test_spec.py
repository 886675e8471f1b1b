"""The declarations beside a task: T3, T5, T6 and the table of defaults and bounds."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest
from pydantic import BaseModel

from perago import (
    ExecutionLimits,
    MetricSpec,
    PublishBudget,
    RetryPolicy,
    TaskControls,
    TaskDefinitionError,
    TimeoutPolicy,
    WorkspaceSpec,
    forbid_glob,
    require_dir,
    require_file,
    require_glob,
)
from perago.protocol.budget import Budget
from perago.protocol.guard import ForbidGlob, RequireDir, RequireFile, RequireGlob
from perago.protocol.paths import Selection
from perago.tasks.spec import Guard

BUDGET: dict[str, Any] = {
    "observed_merge_p99_seconds": 2,
    "safety_margin_seconds": 3,
    "lakefs_merge_timeout_seconds": 5,
    "conductor_completion_timeout_seconds": 7,
    "worker_shutdown_grace_seconds": 11,
    "heartbeat_interval_seconds": 13,
}


class Always:
    """A guard that is an object."""

    seen: ClassVar[list[Path]] = []

    def __call__(self, workspace: Path) -> None:
        self.seen.append(workspace)


def own_guard(workspace: Path) -> None:
    assert workspace.is_dir()


async def async_guard(workspace: Path) -> None:
    assert workspace.parts


def guard_of_two(workspace: Path, other: int) -> None:
    assert len(workspace.parts) > other


# --- defaults, one by one ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declaration", "field", "default"),
    [
        (WorkspaceSpec(), "prefix", "/"),
        (WorkspaceSpec(), "pre", ()),
        (WorkspaceSpec(), "post", ()),
        (WorkspaceSpec(), "read_only", False),
        (WorkspaceSpec(), "fence", "head"),
        (WorkspaceSpec(), "include", ()),
        (WorkspaceSpec(), "exclude", ()),
        (RetryPolicy(), "count", 3),
        (RetryPolicy(), "logic", "FIXED"),
        (RetryPolicy(), "delay_seconds", 60),
        (RetryPolicy(), "max_delay_seconds", 0),
        (RetryPolicy(), "jitter_ms", 0),
        (TimeoutPolicy(), "policy", "TIME_OUT_WF"),
        (TimeoutPolicy(), "seconds", 0),
        (TimeoutPolicy(), "response_seconds", 600),
        (TimeoutPolicy(), "poll_seconds", 0),
        (TimeoutPolicy(), "total_seconds", 0),
        (ExecutionLimits(), "concurrent_exec_limit", None),
        (ExecutionLimits(), "rate_limit_frequency_in_seconds", None),
        (ExecutionLimits(), "rate_limit_per_frequency", None),
        (TaskControls(), "retry", RetryPolicy()),
        (TaskControls(), "timeout", TimeoutPolicy()),
        (TaskControls(), "limits", ExecutionLimits()),
        (TaskControls(), "publish_budget", None),
        (MetricSpec(), "attempts", True),
        (MetricSpec(), "workspace_io", True),
        (MetricSpec(), "worker_capacity", True),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseModel) else str(value),
)
def test_t6_the_default_of_every_field(declaration: BaseModel, field: str, default: object) -> None:
    assert getattr(declaration, field) == default


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (WorkspaceSpec, "prefix pre post read_only fence include exclude"),
        (RetryPolicy, "count logic delay_seconds max_delay_seconds jitter_ms"),
        (TimeoutPolicy, "policy seconds response_seconds poll_seconds total_seconds"),
        (
            ExecutionLimits,
            "concurrent_exec_limit rate_limit_frequency_in_seconds rate_limit_per_frequency",
        ),
        (TaskControls, "retry timeout limits publish_budget"),
        (PublishBudget, " ".join(BUDGET)),
        (MetricSpec, "attempts workspace_io worker_capacity"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_t6_these_are_all_the_fields(kind: type[BaseModel], fields: str) -> None:
    assert list(kind.model_fields) == fields.split()


# --- bounds ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "values"),
    [
        (lambda v: RetryPolicy(count=v), [0, 10]),
        (lambda v: RetryPolicy(logic=v), ["FIXED", "EXPONENTIAL_BACKOFF", "LINEAR_BACKOFF"]),
        (lambda v: RetryPolicy(delay_seconds=v), [0, 86_400]),
        (lambda v: TimeoutPolicy(policy=v), ["RETRY", "TIME_OUT_WF", "ALERT_ONLY"]),
        (lambda v: TimeoutPolicy(response_seconds=v), [0, 1, 86_400]),
        (lambda v: ExecutionLimits(concurrent_exec_limit=v), [0, 1, None]),
        (lambda v: WorkspaceSpec(fence=v), ["head", "lineage", "hard"]),
        (lambda v: WorkspaceSpec(pre=v), [[], (), [own_guard], [Always()], [require_file("a")]]),
        (lambda v: WorkspaceSpec(post=v), [[functools.partial(guard_of_two, other=1)], [print]]),
        (lambda v: WorkspaceSpec(exclude=v), [[], ["tmp/**"], ("**/*.tmp", "x")]),
        (lambda v: PublishBudget(**{**BUDGET, "safety_margin_seconds": v}), [0, 3, 2.5]),
        (lambda v: PublishBudget(**{**BUDGET, "heartbeat_interval_seconds": v}), [1, 1.5]),
    ],
)
def test_t6_values_inside_the_bounds_are_taken(
    make: Callable[[Any], object], values: list[object]
) -> None:
    for value in values:
        assert make(value) is not None


REFUSED: list[tuple[Callable[[], object], str]] = [
    (lambda: RetryPolicy(count=-1), "RetryPolicy(count=...)"),
    (lambda: RetryPolicy(count=11), "RetryPolicy(count=...)"),
    (lambda: RetryPolicy(count="many"), "RetryPolicy(count=...)"),  # type: ignore[arg-type]
    (lambda: RetryPolicy(logic="SOMETIMES"), "'EXPONENTIAL_BACKOFF'"),  # type: ignore[arg-type]
    (lambda: RetryPolicy(delay_seconds=-1), "delay_seconds"),
    (lambda: RetryPolicy(max_delay_seconds=-1), "max_delay_seconds"),
    (lambda: RetryPolicy(jitter_ms=-1), "jitter_ms"),
    (lambda: RetryPolicy(tries=3), "no argument 'tries'"),  # type: ignore[call-arg]
    (lambda: TimeoutPolicy(policy="NEVER"), "'ALERT_ONLY'"),  # type: ignore[arg-type]
    (lambda: TimeoutPolicy(seconds=-1), "TimeoutPolicy(seconds=...)"),
    (lambda: TimeoutPolicy(response_seconds=-1), "response_seconds"),
    (lambda: TimeoutPolicy(poll_seconds=-1), "poll_seconds"),
    (lambda: TimeoutPolicy(total_seconds=-1), "total_seconds"),
    (lambda: ExecutionLimits(concurrent_exec_limit=-1), "concurrent_exec_limit"),
    (lambda: ExecutionLimits(rate_limit_per_frequency=1), "give both or none"),
    (lambda: ExecutionLimits(rate_limit_frequency_in_seconds=1), "give both or none"),
    (lambda: TaskControls(retry=3), "TaskControls(retry=...)"),  # type: ignore[arg-type]
    (lambda: TaskControls(retries=3), "it knows retry, timeout"),  # type: ignore[call-arg]
    (lambda: MetricSpec(attempts="perhaps"), "attempts"),  # type: ignore[arg-type]
    (lambda: WorkspaceSpec(prefix=""), "use '/'"),
    (lambda: WorkspaceSpec(prefix=3), "prefix"),  # type: ignore[arg-type]
    (lambda: WorkspaceSpec(prefix="a/../b"), "segment '..'"),
    (lambda: WorkspaceSpec(prefix="./a"), "segment '.'"),
    (lambda: WorkspaceSpec(prefix="a//b"), "segment ''"),
    (lambda: WorkspaceSpec(prefix="a\\b"), "backslash"),
    (lambda: WorkspaceSpec(prefix="_lakefs_actions/x"), "_lakefs_actions/"),
    (lambda: WorkspaceSpec(prefx="a"), "no argument 'prefx'"),  # type: ignore[call-arg]
    (lambda: WorkspaceSpec(fence="soft"), "'lineage'"),  # type: ignore[arg-type]
    (lambda: WorkspaceSpec(pre="a.csv"), "give a list of guards"),  # type: ignore[arg-type]
    (lambda: WorkspaceSpec(pre=require_file("a")), "give a list"),  # type: ignore[arg-type]
    (lambda: WorkspaceSpec(pre=["a.csv"]), "use require_file(...)"),  # type: ignore[list-item]
    (lambda: WorkspaceSpec(pre=[require_file]), "write require_file(...)"),  # type: ignore[list-item]
    (lambda: WorkspaceSpec(pre=[async_guard]), "is async"),  # type: ignore[list-item]
    (lambda: WorkspaceSpec(post=[guard_of_two]), "a guard is given a Path"),  # type: ignore[list-item]
    (lambda: WorkspaceSpec(post=[Always]), "is not a guard"),  # type: ignore[list-item]
    (lambda: WorkspaceSpec(exclude="tmp"), "give a list of patterns"),
    (lambda: WorkspaceSpec(include=["../x"]), "'../x'"),
    (lambda: WorkspaceSpec(include=[3]), "is not a text"),  # type: ignore[list-item]
    (lambda: require_file(""), "is empty"),
    (lambda: require_file("/etc/passwd"), "is absolute"),
    (lambda: require_file("../x"), "segment '..'"),
    (lambda: require_file("a\\b"), "backslash"),
    (lambda: require_file(Path("a")), "is not a text"),  # type: ignore[arg-type]
    (lambda: require_dir(""), "is empty"),
    (lambda: require_dir("/"), "is empty"),
    (lambda: require_dir("/tmp"), "is absolute"),  # noqa: S108 - a path to be refused
    (lambda: require_dir(3), "is not a text"),  # type: ignore[arg-type]
    (lambda: require_glob(""), "is empty"),
    (lambda: require_glob("/x"), "is absolute"),
    (lambda: require_glob("a**"), "must stand alone"),
    (lambda: require_glob("../*"), "segment '..'"),
    (lambda: require_glob(3), "is not a text"),  # type: ignore[arg-type]
    (lambda: require_glob("*", min_count=-1), "min_count=-1"),
    (lambda: require_glob("*", max_count=-1), "max_count=-1"),
    (lambda: require_glob("*", min_count=1.5), "min_count=1.5"),  # type: ignore[arg-type]
    (lambda: require_glob("*", min_count=None), "min_count=None"),  # type: ignore[arg-type]
    (lambda: require_glob("*", min_count=3, max_count=2), "swap them"),
    (lambda: forbid_glob(""), "is empty"),
    (lambda: forbid_glob("a/../b"), "segment '..'"),
    (lambda: forbid_glob(None), "is not a text"),  # type: ignore[arg-type]
    (lambda: PublishBudget(), "field required"),  # type: ignore[call-arg]  # noqa: PLW0108
    (lambda: PublishBudget(**{**BUDGET, "lakefs_merge_timeout_seconds": 4}), "raise the timeout"),
    (lambda: PublishBudget(**{**BUDGET, "observed_merge_p99_seconds": -1}), "observed_merge"),
    (lambda: PublishBudget(**{**BUDGET, "safety_margin_seconds": -1}), "safety_margin"),
    (lambda: PublishBudget(**{**BUDGET, "lakefs_merge_timeout_seconds": 0.5}), "lakefs_merge"),
    (lambda: PublishBudget(**{**BUDGET, "conductor_completion_timeout_seconds": 0}), "conductor_c"),
    (lambda: PublishBudget(**{**BUDGET, "worker_shutdown_grace_seconds": 0}), "worker_shutdown"),
    (lambda: PublishBudget(**{**BUDGET, "heartbeat_interval_seconds": 0}), "heartbeat_interval"),
    (lambda: PublishBudget(**{**BUDGET, "heartbeat_interval_seconds": float("inf")}), "finite"),
    (lambda: PublishBudget(**{**BUDGET, "safety_margin_seconds": float("nan")}), "finite"),
    (lambda: cast("Any", TimeoutPolicy)("RETRY"), "keyword arguments only"),
]


@pytest.mark.parametrize(
    ("declare", "named"), [pytest.param(*row, id=f"{n}-{row[1]}") for n, row in enumerate(REFUSED)]
)
def test_t1_a_wrong_declaration_is_refused_where_it_is_written(
    declare: Callable[[], object], named: str
) -> None:
    with pytest.raises(TaskDefinitionError) as caught:
        declare()
    text = str(caught.value)
    assert named in text
    assert "\n" not in text
    assert len(text) < 300
    assert "http" not in text, "no address of somebody else's manual"


@pytest.mark.parametrize("field", list(BUDGET))
def test_t5_every_field_of_a_budget_is_required_and_named(field: str) -> None:
    with pytest.raises(TaskDefinitionError, match=field):
        PublishBudget(**{name: value for name, value in BUDGET.items() if name != field})


def test_t5_a_budget_is_the_plain_numbers_of_the_protocol() -> None:
    assert PublishBudget(**BUDGET).budget == Budget(2, 3, 5, 7, 11, 13)


@pytest.mark.parametrize(
    "declaration", [WorkspaceSpec(), RetryPolicy(), TaskControls(), MetricSpec()], ids=repr
)
def test_declarations_are_frozen(declaration: BaseModel) -> None:
    with pytest.raises(Exception, match="frozen"):
        setattr(declaration, next(iter(type(declaration).model_fields)), None)


@pytest.mark.parametrize(
    ("written", "prefix", "selected"),
    [("/", "/", ""), ("ws", "/ws", "ws"), ("/ws/", "/ws", "ws"), ("/a/b", "/a/b", "a/b")],
)
def test_t6_the_prefix_is_normalised(written: str, prefix: str, selected: str) -> None:
    spec = WorkspaceSpec(prefix=written, include=["a"], exclude=["b"])
    assert spec.prefix == prefix
    assert spec.selection == Selection(selected, ("a",), ("b",))


@pytest.mark.parametrize(
    ("guard", "expected"),
    [
        (require_file("a/b"), RequireFile("a/b")),
        (require_dir("a"), RequireDir("a")),
        (require_dir("a/"), RequireDir("a")),
        (require_glob("*.csv"), RequireGlob("*.csv", 1, None)),
        (require_glob("**", min_count=0, max_count=0), RequireGlob("**", 0, 0)),
        (forbid_glob("**/*.tmp"), ForbidGlob("**/*.tmp")),
    ],
    ids=str,
)
def test_t3_the_guards_of_the_interface(guard: object, expected: object) -> None:
    assert guard == expected


def test_t3_guards_are_kept_in_their_order() -> None:
    guards: list[Guard] = [require_file("a"), own_guard, Always()]
    assert list(WorkspaceSpec(pre=guards).pre) == guards
