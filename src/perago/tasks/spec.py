"""The frozen declarations an author writes next to a task (T3, T5, T6).

A wrong value is refused where it is written, in one sentence, as ``TaskDefinitionError``.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SkipValidation,
    ValidationError,
    model_validator,
)

from perago.errors import TaskDefinitionError
from perago.protocol.budget import Budget, refuse_budget
from perago.protocol.data import DataGuard
from perago.protocol.globs import refuse_pattern
from perago.protocol.guard import FileGuard, ForbidGlob, RequireDir, RequireFile, RequireGlob
from perago.protocol.kinds import FenceKind
from perago.protocol.paths import Selection, normalise_prefix, refuse_path, refuse_prefix
from perago.protocol.spark import SparkNeed, refuse_master

Guard = FileGuard | DataGuard | Callable[[Path], None]
NonNegative = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
AtLeastOne = Annotated[float, Field(ge=1, allow_inf_nan=False)]


class Declaration(BaseModel):
    """Frozen, no unknown fields, and errors that name the argument."""

    # Built when first used: importing a task module stays quick.
    model_config = ConfigDict(
        frozen=True, extra="forbid", arbitrary_types_allowed=True, defer_build=True
    )

    # Hidden from type checkers, so that they keep the typed signature of the fields.
    if not TYPE_CHECKING:

        def __init__(self, *args: object, **values: object) -> None:
            if args:
                fields = ", ".join(type(self).model_fields)
                raise TaskDefinitionError(
                    f"{type(self).__name__} takes keyword arguments only",
                    remedy=f"name the argument, one of {fields}",
                )
            try:
                super().__init__(**values)
            except ValidationError as error:
                raise _misdeclared(type(self), error) from None


def _misdeclared(kind: type[BaseModel], error: ValidationError) -> TaskDefinitionError:
    """Tell the first problem: which argument of what, and what is expected of it."""
    first = error.errors(include_url=False, include_context=False)[0]
    where = ".".join(map(str, first["loc"]))
    if first["type"] == "extra_forbidden":
        known = ", ".join(kind.model_fields)
        return TaskDefinitionError(f"{kind.__name__} has no argument {where!r}; it knows {known}")
    text = first["msg"].removeprefix("Value error, ")
    text = text[:1].lower() + text[1:]
    named = f"{kind.__name__}({where}=...)" if where else kind.__name__
    wrong = TaskDefinitionError(f"{named}: {text}")
    wrong.argument, wrong.problem = where, text
    return wrong


# --- guardrails -------------------------------------------------------------------------------


def require_file(path: str) -> RequireFile:
    """Demand a file, by its path below the workspace."""
    return RequireFile(_declared_path("require_file", path))


def require_dir(path: str) -> RequireDir:
    """Demand a directory with at least one file in it."""
    wanted = path.rstrip("/") if isinstance(path, str) else path
    return RequireDir(_declared_path("require_dir", wanted))


def require_glob(pattern: str, *, min_count: int = 1, max_count: int | None = None) -> RequireGlob:
    """Demand a number of matching paths; ``**`` means any depth."""
    _declared_pattern("require_glob", pattern)
    for name, count, optional in (("min_count", min_count, False), ("max_count", max_count, True)):
        if not (isinstance(count, int) and count >= 0) and not (optional and count is None):
            raise TaskDefinitionError(
                f"require_glob({pattern!r}, {name}={count!r})", remedy="use a number of 0 or more"
            )
    if max_count is not None and max_count < min_count:
        raise TaskDefinitionError(
            f"require_glob({pattern!r}): min_count {min_count} is above max_count {max_count}",
            remedy="swap them",
        )
    return RequireGlob(pattern, min_count, max_count)


def forbid_glob(pattern: str) -> ForbidGlob:
    """Demand that nothing matches."""
    _declared_pattern("forbid_glob", pattern)
    return ForbidGlob(pattern)


_FACTORIES = (require_file, require_dir, require_glob, forbid_glob)
GUARDS = tuple(factory.__name__ for factory in _FACTORIES)
"""The names of the guards that look at names of files."""


def _declared_path(guard: str, path: object) -> str:
    problem = refuse_path(path) if isinstance(path, str) else "is not a text"
    if problem:
        raise TaskDefinitionError(
            f"{guard}({path!r}): the path {problem}", remedy="use a '/' path below the workspace"
        )
    return str(path)


def _declared_pattern(guard: str, pattern: object) -> None:
    problem = refuse_pattern(pattern) if isinstance(pattern, str) else "is not a text"
    if problem:
        raise TaskDefinitionError(
            f"{guard}({pattern!r}): the pattern {problem}",
            remedy="use one such as 'raw/*.csv' or '**/*.csv'",
        )


def _checked_guards(guards: object) -> tuple[Guard, ...]:
    if isinstance(guards, str) or not isinstance(guards, Sequence):
        raise ValueError("give a list of guards, such as [require_file('out.csv')]")
    for guard in guards:
        if inspect.iscoroutinefunction(guard):
            raise ValueError(f"{guard.__name__} is async; a guard is a plain function of a Path")
        if isinstance(guard, FileGuard | DataGuard) and not isinstance(guard, type):
            continue
        if guard in _FACTORIES:
            raise ValueError(f"{guard.__name__} is not called; write {guard.__name__}(...)")
        if not callable(guard) or isinstance(guard, type):
            raise ValueError(f"{guard!r} is not a guard; use require_file(...) or a function")
        if not _takes_a_path(guard):
            raise ValueError(f"{guard!r} does not take one argument; a guard is given a Path")
    return tuple(guards)


def _takes_a_path(guard: Callable[..., object]) -> bool:
    try:
        inspect.signature(guard).bind(Path())
    except TypeError:
        return False
    except ValueError:  # Some callables do not tell their signature.
        return True
    return True


def _checked_globs(patterns: object) -> tuple[str, ...]:
    if isinstance(patterns, str) or not isinstance(patterns, Sequence):
        raise ValueError("give a list of patterns, such as ['raw/**']")
    for pattern in patterns:
        problem = refuse_pattern(pattern) if isinstance(pattern, str) else "is not a text"
        if problem:
            raise ValueError(f"the pattern {pattern!r} {problem}")
    return tuple(patterns)


def _checked_prefix(prefix: str) -> str:
    if problem := refuse_prefix(prefix):
        raise ValueError(f"the prefix {prefix!r} {problem}")
    return "/" + normalise_prefix(prefix)


Guards = Annotated[SkipValidation[Sequence[Guard]], AfterValidator(_checked_guards)]
Globs = Annotated[SkipValidation[Sequence[str]], AfterValidator(_checked_globs)]


class WorkspaceSpec(Declaration):
    """The part of a repository a task works on, and what must be true of it."""

    prefix: Annotated[str, AfterValidator(_checked_prefix)] = "/"
    pre: Guards = ()
    post: Guards = ()
    read_only: bool = False
    fence: FenceKind = "head"
    include: Globs = ()
    exclude: Globs = ()

    @property
    def selection(self) -> Selection:
        """Return the keys that are this workspace."""
        return Selection(normalise_prefix(self.prefix), tuple(self.include), tuple(self.exclude))

    @property
    def guards(self) -> tuple[Guard, ...]:
        """Return all guards."""
        return (*self.pre, *self.post)

    @property
    def data_guards(self) -> tuple[DataGuard, ...]:
        """Return the guards that look into tables."""
        return tuple(guard for guard in self.guards if isinstance(guard, DataGuard))


# --- spark ------------------------------------------------------------------------------------


def _checked_master(master: str | None) -> str | None:
    if master is not None and (problem := refuse_master(master)):
        raise ValueError(f"the master {master!r} {problem}; use one such as 'local[*]'")
    return master


def _checked_conf(conf: object) -> Mapping[str, str]:
    if not isinstance(conf, Mapping):
        raise ValueError("give a dict, such as {'spark.driver.memory': '4g'}")
    for key, value in conf.items():
        if not isinstance(key, str) or not key.startswith("spark."):
            raise ValueError(f"the key {key!r} does not begin with 'spark.'")
        if not isinstance(value, str | int | float | bool):
            raise ValueError(f"the value of {key!r} is of type {type(value).__name__}; give a text")
    return {key: str(v).lower() if isinstance(v, bool) else str(v) for key, v in conf.items()}


def _checked_packages(packages: object) -> tuple[str, ...]:
    if isinstance(packages, str) or not isinstance(packages, Sequence):
        raise ValueError("give a list, such as ['group:artifact:1.0']")
    for package in packages:
        if not isinstance(package, str) or package.count(":") != 2:  # noqa: PLR2004 - two colons
            raise ValueError(f"{package!r} is not of the form 'group:artifact:version'")
    return tuple(packages)


class SparkSpec(Declaration):
    """What a task asks of Spark (X1, X4); what it leaves out, the worker's settings say."""

    master: Annotated[str | None, AfterValidator(_checked_master)] = None
    conf: Annotated[SkipValidation[Mapping[str, Any]], AfterValidator(_checked_conf)] = {}
    packages: Annotated[SkipValidation[Sequence[str]], AfterValidator(_checked_packages)] = ()
    workspace: Literal["local", "direct"] = "local"
    """``direct``: nothing is downloaded, Spark reads and writes lakeFS in place (X2)."""

    @property
    def need(self) -> SparkNeed:
        """Return the plain values."""
        direct = self.workspace == "direct"
        return SparkNeed(self.master, dict(self.conf), tuple(self.packages), direct)


# --- controls ---------------------------------------------------------------------------------


class RetryPolicy(Declaration):
    """When Conductor tries a failed task again."""

    count: Annotated[int, Field(ge=0, le=10)] = 3
    logic: Literal["FIXED", "EXPONENTIAL_BACKOFF", "LINEAR_BACKOFF"] = "FIXED"
    delay_seconds: NonNegative = 60
    max_delay_seconds: NonNegative = 0
    jitter_ms: NonNegative = 0


class TimeoutPolicy(Declaration):
    """When Conductor gives up on an attempt; 0 means never."""

    policy: Literal["RETRY", "TIME_OUT_WF", "ALERT_ONLY"] = "TIME_OUT_WF"
    seconds: NonNegative = 0
    response_seconds: NonNegative = 600
    poll_seconds: NonNegative = 0
    total_seconds: NonNegative = 0

    @property
    def attempt_seconds(self) -> float:
        """Return how long an attempt may take before its result is not wanted any more."""
        return self.seconds if self.seconds and self.policy != "ALERT_ONLY" else math.inf


class ExecutionLimits(Declaration):
    """How many attempts may run, at once and per time; None means no limit."""

    concurrent_exec_limit: NonNegative | None = None
    rate_limit_frequency_in_seconds: NonNegative | None = None
    rate_limit_per_frequency: NonNegative | None = None

    @model_validator(mode="after")
    def _rate_fields_go_together(self) -> Self:
        if (self.rate_limit_frequency_in_seconds is None) != (
            self.rate_limit_per_frequency is None
        ):
            raise ValueError(
                "rate_limit_frequency_in_seconds and rate_limit_per_frequency go together; "
                "give both or none"
            )
        return self


class PublishBudget(Declaration):
    """Seconds measured on your servers that bound the last steps of an attempt (T5)."""

    observed_merge_p99_seconds: Seconds
    safety_margin_seconds: Seconds
    lakefs_merge_timeout_seconds: AtLeastOne
    conductor_completion_timeout_seconds: AtLeastOne
    worker_shutdown_grace_seconds: AtLeastOne
    heartbeat_interval_seconds: AtLeastOne

    @model_validator(mode="after")
    def _timeout_covers_what_was_observed(self) -> Self:
        if problem := refuse_budget(self.budget):
            raise ValueError(f"{problem}; raise the timeout")
        return self

    @property
    def budget(self) -> Budget:
        """Return the plain numbers."""
        return Budget(**self.model_dump())


class TaskControls(Declaration):
    """What the TaskDef tells Conductor, and how long publishing may take."""

    retry: RetryPolicy = RetryPolicy()
    timeout: TimeoutPolicy = TimeoutPolicy()
    limits: ExecutionLimits = ExecutionLimits()
    publish_budget: PublishBudget | None = None


class MetricSpec(Declaration):
    """Which runtime metrics a task gives besides its own."""

    attempts: bool = True
    workspace_io: bool = True
    worker_capacity: bool = True


def declared(value: object, kind: type[Any], argument: str, task: str) -> None:
    """Refuse an argument of ``@task`` that is not the declaration it should be."""
    if value is not None and not isinstance(value, kind):
        raise TaskDefinitionError(
            f"task {task!r}: {argument} is of type {type(value).__name__}",
            remedy=f"give {argument}={kind.__name__}(...)",
        )
