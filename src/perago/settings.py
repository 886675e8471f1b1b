"""Configuration of a worker: process environment over ``.env`` (W7). Never from task input (I7)."""

from __future__ import annotations

import hashlib
import os
import platform
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar
from urllib.parse import parse_qs, unquote, urlsplit

from perago import directories
from perago.errors import RuntimeConfigError
from perago.protocol.spark import DEFAULT_MASTER, refuse_master
from perago.roots import refuse_planted

T = TypeVar("T")
ExecutionMode = Literal["process", "thread"]
PLACEHOLDER = "replace-me"
_LAKEFS = (
    "LAKECTL_SERVER_ENDPOINT_URL",
    "LAKECTL_CREDENTIALS_ACCESS_KEY_ID",
    "LAKECTL_CREDENTIALS_SECRET_ACCESS_KEY",
)
_SIZES = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_LOG_LEVELS = ("off", "fatal", "error", "warn", "info", "debug")
_DURATIONS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True, slots=True)
class LakeFSSettings:
    """How the lakeFS server is reached; the secret never shows in a repr."""

    endpoint: str
    access_key_id: str
    secret_access_key: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ConductorSettings:
    """How the Conductor server is reached."""

    url: str
    auth_key: str | None = field(default=None, repr=False)
    auth_secret: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class LedgerSettings:
    """Where the ledger is (K5); only ``shown`` may be seen by others."""

    kind: Literal["sqlite", "postgresql"]
    shown: str
    address: str = field(repr=False)
    """The path of a file, or the address of a server with all that is needed to get in."""
    secrets: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """How Spark runs where a task does not say."""

    master: str = DEFAULT_MASTER
    conf: Mapping[str, str] = field(default_factory=dict)
    shared_root: bool = False
    log_level: str = "fatal"
    from_objects: int = 100_000
    """From so many objects or attempts on, commands work on them with Spark."""
    scratch: Path = field(default_factory=lambda: directories.cache(os.environ) / "spark")
    jars: Path = field(default_factory=lambda: directories.cache(os.environ) / "spark-jars")


@dataclass(frozen=True, slots=True)
class Settings:
    """All of it, checked."""

    home: Path
    local_rooms: Path
    workspace_root: Path
    log_root: Path
    log_file_max_bytes: int
    log_retention_seconds: float
    worker_id_prefix: str
    instance_id: str
    task_domain: str
    poll_interval_seconds: float
    poll_interval_max_seconds: float
    executor_max_bytes: int | None
    executor_max_attempts: int | None
    stuck_after_seconds: float
    output_max_bytes: int
    http_address: str
    execution_mode: ExecutionMode
    failure_reason_max_length: int
    gc_ttl_seconds: float
    gc_interval_seconds: float
    cache_root: Path
    cache_max_bytes: int
    shutdown_force_kill_after_seconds: float | None
    lakefs: LakeFSSettings | None
    conductor: ConductorSettings | None
    spark: SparkSettings
    ledger: LedgerSettings | None = None
    dotenv: Path | None = None
    """The file that was read besides the environment, if there was one."""


def load_settings(environ: Mapping[str, str], directory: Path) -> Settings:
    """Read settings; ``directory`` is where ``.env`` is looked for, and relative paths begin.

    They are made absolute once, here: a body may change the working directory.
    """
    directory = directory.absolute()
    dotenv = directory / ".env"
    given = {**_dotenv(dotenv), **environ}
    values = _Values(given)
    state, cache = directories.state(given), directories.cache(given)
    home = directory / values.get("PERAGO_HOME", ".perago")
    return Settings(
        home=home,
        local_rooms=_local_rooms(home, directory, values.get("PERAGO_WORKSPACE_ROOT", "")),
        workspace_root=directory / values.get("PERAGO_WORKSPACE_ROOT", str(state / "workspaces")),
        log_root=directory / values.get("PERAGO_LOG_ROOT", str(state / "logs")),
        log_file_max_bytes=values.parsed("PERAGO_LOG_FILE_MAX_SIZE", "100MB", parse_size),
        log_retention_seconds=values.parsed("PERAGO_LOG_RETENTION", "30d", parse_duration),
        worker_id_prefix=values.get("PERAGO_WORKER_ID_PREFIX", f"{platform.node()}-"),
        instance_id=values.get("PERAGO_INSTANCE_ID", ""),
        task_domain=values.get("PERAGO_TASK_DOMAIN", ""),
        poll_interval_seconds=values.parsed("PERAGO_POLL_INTERVAL", "0.1s", parse_duration),
        poll_interval_max_seconds=values.parsed("PERAGO_POLL_INTERVAL_MAX", "2s", parse_duration),
        executor_max_bytes=values.optional("PERAGO_EXECUTOR_MAX_MEMORY", parse_size),
        executor_max_attempts=values.optional("PERAGO_EXECUTOR_MAX_ATTEMPTS", _count),
        stuck_after_seconds=values.parsed("PERAGO_STUCK_AFTER", "5m", parse_duration),
        output_max_bytes=values.parsed("PERAGO_OUTPUT_MAX_SIZE", "1MB", parse_size),
        http_address=values.get("PERAGO_HTTP", ""),
        execution_mode=values.parsed("PERAGO_EXECUTION_MODE", "process", _mode),
        failure_reason_max_length=values.parsed("PERAGO_FAILURE_REASON_MAX_LENGTH", "500", _count),
        gc_ttl_seconds=values.parsed("PERAGO_WORKSPACE_GC_TTL", "24h", parse_duration),
        gc_interval_seconds=values.parsed("PERAGO_WORKSPACE_GC_INTERVAL", "1h", parse_duration),
        cache_root=directory / values.get("PERAGO_CACHE_ROOT", str(cache / "content")),
        cache_max_bytes=values.parsed("PERAGO_CACHE_MAX_SIZE", "10GB", parse_size),
        shutdown_force_kill_after_seconds=values.optional(
            "PERAGO_SHUTDOWN_FORCE_KILL_AFTER", parse_duration
        ),
        lakefs=_lakefs(values),
        conductor=_conductor(values),
        spark=SparkSettings(
            master=values.parsed("PERAGO_SPARK_MASTER", DEFAULT_MASTER, _master),
            conf=values.parsed("PERAGO_SPARK_CONF", ";", _pairs),
            shared_root=values.parsed("PERAGO_SPARK_SHARED_ROOT", "false", _flag),
            log_level=values.parsed("PERAGO_SPARK_LOG_LEVEL", "fatal", _log_level),
            from_objects=values.parsed("PERAGO_SPARK_FROM_OBJECTS", "100000", _count),
            scratch=cache / "spark",
            jars=cache / "spark-jars",
        ),
        ledger=_ledger(values),
        dotenv=dotenv if dotenv.is_file() else None,
    )


def parse_size(text: str) -> int:
    """Read ``512KB``, ``100MB``, ``1.5GB``."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(B|KB|MB|GB|TB)", text.strip(), re.IGNORECASE)
    if not match:
        raise ValueError("use a size such as 512KB, 100MB or 1.5GB")
    return int(float(match[1]) * _SIZES[match[2].upper()])


def parse_duration(text: str) -> float:
    """Read ``30s``, ``5m``, ``1h``, ``24h``, ``30d``."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd])", text.strip())
    if not match:
        raise ValueError("use a duration such as 30s, 5m, 1h or 30d")
    return float(match[1]) * _DURATIONS[match[2]]


class _Values:
    """Texts by name; a blank one counts as not given."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts

    def get(self, name: str, default: str) -> str:
        return self._texts.get(name, "").strip() or default

    def parsed(self, name: str, default: str, parse: Callable[[str], T]) -> T:
        text = self.get(name, default)
        try:
            return parse(text)
        except ValueError as error:
            raise RuntimeConfigError(f"{name} is {text!r}", remedy=str(error)) from None

    def optional(self, name: str, parse: Callable[[str], T]) -> T | None:
        return self.parsed(name, "", parse) if self.get(name, "") else None


def _local_rooms(home: Path, directory: Path, root: str) -> Path:
    """Put local runs on the disk of their store, where copies are cheap, unless told otherwise.

    Each home has its own part of a shared root: it may sweep only what its own broker knows.
    """
    if not root:
        return home / "rooms"
    return directory / root / f"local-{hashlib.sha256(str(home).encode()).hexdigest()[:10]}"


def _dotenv(path: Path) -> dict[str, str]:
    if not path.is_file():
        return {}
    refuse_planted(path)
    from dotenv import dotenv_values  # noqa: PLC0415 - only where there is a file to read

    return {key: value for key, value in dotenv_values(path).items() if value is not None}


def _mode(text: str) -> ExecutionMode:
    if text == "process":
        return "process"
    if text == "thread":
        return "thread"
    raise ValueError("use process or thread")


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ValueError("use a whole number of 1 or more")
    return int(text)


def _master(text: str) -> str:
    if problem := refuse_master(text):
        raise ValueError(f"it {problem}; use one such as local[*] or spark://host:7077")
    return text


def _pairs(text: str) -> dict[str, str]:
    found = {}
    for part in filter(None, map(str.strip, text.split(";"))):
        key, sign, value = part.partition("=")
        if not sign or not key.strip().startswith("spark."):
            raise ValueError("write spark.key=value, several with ';' between them")
        found[key.strip()] = value.strip()
    return found


def _flag(text: str) -> bool:
    if text.lower() not in {"true", "false"}:
        raise ValueError("use true or false")
    return text.lower() == "true"


def _log_level(text: str) -> str:
    if text not in _LOG_LEVELS:
        raise ValueError(f"use one of {', '.join(_LOG_LEVELS)}")
    return text


def _lakefs(values: _Values) -> LakeFSSettings | None:
    """Take all three values or none."""
    given = {name: values.get(name, "") for name in _LAKEFS}
    if not any(given.values()):
        return None
    for name, text in given.items():
        if not text or text == PLACEHOLDER:
            problem = "is still the placeholder" if text else "is missing"
            raise RuntimeConfigError(
                f"{name} {problem}", remedy=f"set {', '.join(_LAKEFS)} together, or none of them"
            )
    return LakeFSSettings(*given.values())


def _conductor(values: _Values) -> ConductorSettings | None:
    url = values.get("CONDUCTOR_SERVER_URL", "")
    if not url:
        return None
    key = values.get("CONDUCTOR_AUTH_KEY", "") or None
    secret = values.get("CONDUCTOR_AUTH_SECRET", "") or None
    if (key is None) != (secret is None):
        raise RuntimeConfigError(
            "CONDUCTOR_AUTH_KEY and CONDUCTOR_AUTH_SECRET go together",
            remedy="set both or none",
        )
    return ConductorSettings(url, key, secret)


def _ledger(values: _Values) -> LedgerSettings | None:
    """Read an address that may hold a password: no message repeats it."""
    text = values.get("PERAGO_LEDGER", "")
    if not text:
        return None
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
        inside = [parts.password or "", *parse_qs(parts.query).get("password", ())]
    except ValueError:
        raise _not_a_ledger("is not an address") from None
    path = unquote(parts.path)
    if parts.scheme == "sqlite":
        if parts.netloc or not path.startswith("/"):
            raise _not_a_ledger("does not name the path of a file from the root on")
        return LedgerSettings("sqlite", f"sqlite://{path}", path)
    if parts.scheme not in {"postgresql", "postgres"}:
        raise _not_a_ledger("is neither of SQLite nor of PostgreSQL")
    where = f"[{host}]" if ":" in host else host
    shown = f"postgresql://{where}{f':{port}' if port else ''}{path}"
    return LedgerSettings("postgresql", shown, text, tuple(map(unquote, filter(None, inside))))


def _not_a_ledger(problem: str) -> RuntimeConfigError:
    return RuntimeConfigError(
        f"PERAGO_LEDGER {problem}",
        remedy="write sqlite:///absolute/path or postgresql://user:password@host:5432/database",
    )
