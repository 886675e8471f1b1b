"""Real servers for the tests that need them, and time for all tests on a machine that is slow."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pytest

from perago.dev import ConductorEndpoint, LakeFSEndpoint, start
from perago.testing import Fault, Lab, Run
from perago.testing.faults import Counted
from tests import injection, lakefs_kv, patience, rings
from tests.faults.families import FAULTS, REAL, SERVERS, is_rig

_CASE = pytest.StashKey[injection.Case]()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Give every test the time it needs here, unless somebody said how long."""
    if config.getoption("timeout", None) is None and "PYTEST_TIMEOUT" not in os.environ:
        config.option.timeout = patience.scaled(patience.TEST_SECONDS)
    _count_the_faults_of_labs()


def _count_the_faults_of_labs() -> None:
    attempt = Lab._attempt  # noqa: SLF001 - every way to run an attempt goes through it

    def counted(
        lab: Lab, task: Any, attempted: Any, workspace: Any, params: Any, faults: Sequence[Fault]
    ) -> Run:
        for fault in faults:
            if isinstance(fault, Counted):
                injection.expect(type(fault).__name__, partial(getattr, fault, "met"))
        left = [one for one in faults if not (injection.OFF and isinstance(one, Counted))]
        return attempt(lab, task, attempted, workspace, params, left)

    Lab._attempt = counted  # type: ignore[method-assign, assignment]  # noqa: SLF001


def pytest_report_header() -> str:
    return f"limits: {patience.FACTOR:g} times those of a quiet machine ({patience.VARIABLE})"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--ring", choices=rings.RINGS, default="all", help="which tests: tests/rings.py"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Choose the tests of a ring, and scale the limits of those that have one of their own."""
    chosen = _of_ring(str(config.getoption("ring")), items)
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = [item for item in items if item in chosen]
    for item in items:
        if marker := item.get_closest_marker("timeout"):
            own = pytest.mark.timeout(patience.scaled(float(marker.args[0])))
            item.add_marker(own, append=False)


def _of_ring(ring: str, items: Sequence[pytest.Item]) -> set[pytest.Item]:
    if ring == "all":
        return set(items)
    quick = {item for item in items if _is_quick(item)}
    if ring == "quick":
        return quick
    functions: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item not in quick and not rings.is_later(item.nodeid):
            functions.setdefault(item.nodeid.partition("[")[0], []).append(item)
    one_each = {
        cases[number]
        for cases in functions.values()
        for number in rings.each_choice([rings.values_of(_parameters(item)) for item in cases])
    }
    chosen = quick | one_each
    return chosen if ring == "classes" else set(items) - chosen


def _is_quick(item: pytest.Item) -> bool:
    named = item.nodeid.partition("[")[2]  # The values of its parameters, as they are shown.
    return rings.is_quick(_path(item), _fixtures(item), (named,))


def _path(item: pytest.Item) -> str:
    return item.path.relative_to(item.config.rootpath).as_posix()


def _fixtures(item: pytest.Item) -> Sequence[str]:
    return getattr(item, "fixturenames", ())


def _parameters(item: pytest.Item) -> Mapping[str, object]:
    callspec = getattr(item, "callspec", None)
    return {} if callspec is None else callspec.params


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Count the faults of each test, those of its fixtures included."""
    with injection.case() as case:
        item.stash[_CASE] = case
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a case whose fault did not happen; write down how many did, and on which servers."""
    case = item.stash[_CASE]
    result = yield
    injection.check(case, wanted=is_rig(item.path))
    names = set(_fixtures(item))
    servers = sorted({REAL[name] for name in names & set(REAL)})
    item.user_properties += [(FAULTS, str(case.faults)), (SERVERS, " ".join(servers))]
    return result


@pytest.fixture(scope="session")
def lakefs_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LakeFSEndpoint]:
    """Give a lakeFS server on local blocks."""
    with (
        lakefs_kv.kept_in(lakefs_kv.CHOSEN),
        start("tests", tmp_path_factory.mktemp("lakefs"), ["lakefs"]) as instance,
    ):
        if lakefs_kv.CHOSEN != "local":
            lakefs_kv.set_up(instance.lakefs)
        yield instance.lakefs


@pytest.fixture(scope="session")
def lakefs_s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LakeFSEndpoint]:
    """Give a lakeFS server that keeps its blocks in an S3 store."""
    home = tmp_path_factory.mktemp("lakefs-s3")
    with start("tests-s3", home, ["lakefs"], blocks="s3") as instance:
        yield instance.lakefs


@pytest.fixture(scope="session")
def conductor_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConductorEndpoint]:
    """Give a Conductor server."""
    with start("tests", tmp_path_factory.mktemp("conductor"), ["conductor"]) as instance:
        yield instance.conductor
