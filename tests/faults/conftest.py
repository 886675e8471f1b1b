from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from perago.dev import ConductorEndpoint, LakeFSEndpoint
from tests.faults.paths import ALL
from tests.faults.proxy import Proxy
from tests.faults.rig import Rig

collect_ignore = [] if ALL else ["test_spark_kills.py"]
ACTS = "tests.faults.acts"
NewRig = Callable[..., Rig]
RIGS = pytest.StashKey[list[Rig]]()


@pytest.fixture(autouse=True)
def nothing_beside_is_touched_or_told(request: pytest.FixtureRequest) -> Iterator[None]:
    """V6, V8: look after every case of a rig, whatever else it looks at."""
    yield
    module = request.node.getparent(pytest.Module)
    for rig in module.stash.get(RIGS, []):
        assert list(rig.beside()) == []


@pytest.fixture(scope="module")
def new_rig(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    conductor_server: ConductorEndpoint,
    lakefs_server: LakeFSEndpoint,
) -> Iterator[NewRig]:
    """Make rigs on the servers of the session; their workers are ended with the module."""
    made = request.node.stash.setdefault(RIGS, [])

    def make(response_seconds: int = 60, module: str = ACTS, **more: str) -> Rig:
        rig = Rig(
            tmp_path_factory.mktemp("rig"),
            conductor_server,
            lakefs_server,
            response_seconds=response_seconds,
            more=more,
            module=module,
        )
        made.append(rig)
        return rig

    yield make
    for rig in made:
        rig.close()


@pytest.fixture(scope="module")
def proxy(lakefs_server: LakeFSEndpoint) -> Iterator[Proxy]:
    """Stand between the workers and lakeFS."""
    with Proxy(lakefs_server.endpoint) as proxy:
        yield proxy
    assert proxy.problems == []


@pytest.fixture(scope="module")
def conductor(conductor_server: ConductorEndpoint) -> Iterator[Proxy]:
    """Stand between the workers and Conductor."""
    with Proxy(conductor_server.url.removesuffix("/api")) as proxy:
        yield proxy
    assert proxy.problems == []
