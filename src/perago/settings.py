"""Configuration of a worker: process environment over ``.env`` (W7). Never from task input (I7)."""

from __future__ import annotations

import hashlib
import os
import platform
import re
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Literal, TypeVar
from urllib.parse import parse_qs, unquote, urlsplit

from perago.errors import RuntimeConfigError
from perago.filesystem import defaults
from perago.filesystem.roots import refuse_planted
from perago.protocol.spark import DEFAULT_MASTER, refuse_master, secrets_of
from perago.redaction import keep_secret, refuse

T = TypeVar("T")
ExecutionMode = Literal["process", "thread"]
PLACEHOLDER = "replace-me"
_LAKEFS = (
    "LAKECTL_SERVER_ENDPOINT_URL",
    "LAKECTL_CREDENTIALS_ACCESS_KEY_ID",
    "LAKECTL_CREDENTIALS_SECRET_ACCESS_KEY",
)
_HOLD_KEYS = re.compile(
    r"LAKECTL_CREDENTIALS_.*|CONDUCTOR_AUTH_.*|PERAGO_LEDGER|PERAGO_SPARK_(?:CONF|MASTER)"
    r"|OTEL_EXPORTER_OTLP_(?:\w+_)?HEADERS"
)
_SIZES = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_LARGEST = 1e15
_LONGEST_SHOWN = 200
_LOG_LEVELS = ("off", "fatal", "error", "warn", "info", "debug")
_DURATIONS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def _password(address: str) -> str | None:
    """Return the password in an address, if somebody put one there."""
    try:
        return unquote(urlsplit(address).password or "") or None
    except ValueError:
        return None


class _Holder:
    """Settings that hold a key: wherever they come to be, the key is known as one (V8).

    Also after a trip to another process: they are made anew there, not filled in.
    """

    __slots__ = ()

    def __post_init__(self) -> None:
        keep_secret(*self.keys())

    def keys(self) -> tuple[str | None, ...]:
        """Return what must be hidden."""
        raise NotImplementedError

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), tuple(getattr(self, each.name) for each in fields(self))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class LakeFSSettings(_Holder):
    """How the lakeFS server is reached; the secret never shows in a repr."""

    endpoint: str
    access_key_id: str
    secret_access_key: str = field(repr=False)

    def keys(self) -> tuple[str | None, ...]:
        """Return the pair."""
        return self.access_key_id, self.secret_access_key, _password(self.endpoint)


@dataclass(frozen=True, slots=True)
class ConductorSettings(_Holder):
    """How the Conductor server is reached."""

    url: str
    auth_key: str | None = field(default=None, repr=False)
    auth_secret: str | None = field(default=None, repr=False)

    def keys(self) -> tuple[str | None, ...]:
        """Return the pair, if there is one."""
        return self.auth_key, self.auth_secret, _password(self.url)


@dataclass(frozen=True, slots=True)
class LedgerSettings(_Holder):
    """Where the ledger is (K5); only ``shown`` may be seen by others."""

    kind: Literal["sqlite", "postgresql"]
    shown: str
    address: str = field(repr=False)
    """The path of a file, or the address of a server with all that is needed to get in."""
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def keys(self) -> tuple[str | None, ...]:
        """Return the passwords in the address."""
        return self.secrets


@dataclass(frozen=True, slots=True)
class TelemetrySettings(_Holder):
    """The variables that say how OpenTelemetry logs in, as they were given."""

    variables: Mapping[str, str] = field(default_factory=dict, repr=False)

    def keys(self) -> tuple[str | None, ...]:
        """Return what stands behind each equals sign."""
        pairs = (pair for text in self.variables.values() for pair in text.split(","))
        return tuple(pair.partition("=")[2].strip() for pair in pairs)


@dataclass(frozen=True, slots=True)
class SparkSettings(_Holder):
    """How Spark runs where a task does not say."""

    master: str = DEFAULT_MASTER
    conf: Mapping[str, str] = field(default_factory=dict)
    shared_root: bool = False
    log_level: str = "fatal"
    from_objects: int = 100_000
    """From so many objects or attempts on, commands work on them with Spark."""
    scratch: Path = field(default_factory=lambda: defaults.cache(os.environ) / "spark")
    jars: Path = field(default_factory=lambda: defaults.cache(os.environ) / "spark-jars")

    def keys(self) -> tuple[str | None, ...]:
        """Return the values that Spark itself would not show, and the token of a server."""
        return secrets_of(self.master, self.conf)


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
    person: str
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
    telemetry: TelemetrySettings = field(default_factory=TelemetrySettings)


def weak_keys(settings: Settings) -> list[str]:
    """Name the keys that are not hidden, because that would hide words with them, and why."""
    known = {
        _LAKEFS[-1]: (settings.lakefs.secret_access_key,) if settings.lakefs else (),
        "CONDUCTOR_AUTH_SECRET": (settings.conductor.auth_secret,) if settings.conductor else (),
        "the password in PERAGO_LEDGER": settings.ledger.secrets if settings.ledger else (),
        "a header in OTEL_EXPORTER_OTLP_HEADERS": settings.telemetry.keys(),
    }
    return [
        f"{name} {problem}, so it is not hidden in what is written"
        for name, values in known.items()
        for value in values
        if value and (problem := refuse(value))
    ]


@contextmanager
def keys_withheld(environ: MutableMapping[str, str]) -> Iterator[Mapping[str, str]]:
    """Take the worker's keys out of an environment, for what runs and starts in it meanwhile.

    Executors get their settings by the channel; nothing that a body starts inherits a key.
    """
    taken = {name: text for name, text in environ.items() if _HOLD_KEYS.fullmatch(name)}
    for name in taken:
        del environ[name]
    try:
        yield taken
    finally:
        for name, text in taken.items():
            environ.setdefault(name, text)


@contextmanager
def keys_lent(environ: MutableMapping[str, str], lent: Mapping[str, str]) -> Iterator[None]:
    """Put variables into an environment for a library that reads them nowhere else."""
    fresh = {name: text for name, text in lent.items() if name not in environ}
    environ.update(fresh)
    try:
        yield
    finally:
        for name in fresh:
            environ.pop(name, None)


def load_settings(environ: Mapping[str, str], directory: Path) -> Settings:
    """Read settings; ``directory`` is where ``.env`` is looked for, and relative paths begin.

    They are made absolute once, here: a body may change the working directory.
    """
    directory = directory.absolute()
    dotenv = directory / ".env"
    values = _Values(given := {**_dotenv(dotenv), **environ})
    state, cache = defaults.state(given), defaults.cache(given)
    home = directory / values.get("PERAGO_HOME", ".perago")
    return Settings(
        home=home,
        local_rooms=_local_rooms(home, directory, values.get("PERAGO_WORKSPACE_ROOT", "")),
        workspace_root=directory / values.get("PERAGO_WORKSPACE_ROOT", str(state / "workspaces")),
        log_root=directory / values.get("PERAGO_LOG_ROOT", str(state / "logs")),
        log_file_max_bytes=values.parsed("PERAGO_LOG_FILE_MAX_SIZE", "100MB", parse_size),
        log_retention_seconds=values.parsed("PERAGO_LOG_RETENTION", "30d", parse_duration),
        worker_id_prefix=values.get("PERAGO_WORKER_ID_PREFIX", f"{platform.node()}-"),
        person=values.get("PERAGO_PERSON", ""),
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
        spark=_spark(values, cache),
        ledger=_ledger(values),
        dotenv=dotenv if dotenv.is_file() else None,
        telemetry=TelemetrySettings(
            {name: text for name, text in environ.items() if _is_header(name)}
        ),
    )


def _spark(values: _Values, cache: Path) -> SparkSettings:
    return SparkSettings(
        master=values.parsed("PERAGO_SPARK_MASTER", DEFAULT_MASTER, _master),
        conf=values.parsed("PERAGO_SPARK_CONF", ";", _pairs),
        shared_root=values.parsed("PERAGO_SPARK_SHARED_ROOT", "false", _flag),
        log_level=values.parsed("PERAGO_SPARK_LOG_LEVEL", "fatal", _log_level),
        from_objects=values.parsed("PERAGO_SPARK_FROM_OBJECTS", "100000", _count),
        scratch=cache / "spark",
        jars=cache / "spark-jars",
    )


def parse_size(text: str) -> int:
    """Read ``512KB``, ``100MB``, ``1.5GB``."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(B|KB|MB|GB|TB)", text.strip(), re.IGNORECASE)
    if not match:
        raise ValueError("use a size such as 512KB, 100MB or 1.5GB")
    return int(_finite(match[1]) * _SIZES[match[2].upper()])


def parse_duration(text: str) -> float:
    """Read ``30s``, ``5m``, ``1h``, ``24h``, ``30d``."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd])", text.strip())
    if not match:
        raise ValueError("use a duration such as 30s, 5m, 1h or 30d")
    return _finite(match[1]) * _DURATIONS[match[2]]


def _finite(text: str) -> float:
    found = float(text)
    if found > _LARGEST:
        raise ValueError("use a smaller number")
    return found


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
            shown = text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
            raise RuntimeConfigError(f"{name} is {shown!r}", remedy=str(error)) from None

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

    try:
        found = dotenv_values(path)
    except (OSError, UnicodeDecodeError) as error:
        raise RuntimeConfigError(
            f"{path} cannot be read: {error}", remedy="write NAME=value lines in UTF-8"
        ) from None
    return {key: value for key, value in found.items() if value is not None}


def _mode(text: str) -> ExecutionMode:
    if text == "process":
        return "process"
    if text == "thread":
        return "thread"
    raise ValueError("use process or thread")


def _count(text: str) -> int:
    if not text.isdecimal() or len(text) > len(str(int(_LARGEST))) or int(text) < 1:
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


def _is_header(name: str) -> bool:
    return name.startswith("OTEL_") and _HOLD_KEYS.fullmatch(name) is not None


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
