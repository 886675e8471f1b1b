"""What a user would write with the lakeFS SDK and lakefs-spec, told by lines what to do."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

# Not in the environment of this checkout.
lakefs_sdk: Any = import_module("lakefs_sdk")
lakefs_client: Any = import_module("lakefs_sdk.client")
lakefs_spec: Any = import_module("lakefs_spec")
THREADS = 16

Asked = dict[str, str]


def sdk() -> Any:
    """Connect, with enough connections for the threads."""
    configuration = lakefs_sdk.Configuration(
        host=os.environ["BENCH_LAKEFS"].rstrip("/").removesuffix("/api/v1") + "/api/v1",
        username=os.environ["BENCH_KEY"],
        password=os.environ["BENCH_SECRET"],
    )
    configuration.connection_pool_maxsize = THREADS
    return lakefs_client.LakeFSClient(configuration)


def listed(client: Any, asked: Asked) -> Iterator[str]:
    """Walk the pages of a listing."""
    after = ""
    while True:
        page = client.objects_api.list_objects(asked["repository"], asked["ref"], after=after)
        yield from (found.path for found in page.results)
        if not page.pagination.has_more:
            return
        after = page.pagination.next_offset


def sdk_download(client: Any, asked: Asked) -> None:
    """Fetch every object with a pool of threads."""

    def fetch(path: str) -> None:
        to = Path(asked["directory"], path)
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_bytes(client.objects_api.get_object(asked["repository"], asked["ref"], path))

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(fetch, listed(client, asked)))


def sdk_upload(client: Any, asked: Asked) -> None:
    """Send every file with a pool of threads."""
    source = Path(asked["directory"])

    def send(path: Path) -> None:
        key = path.relative_to(source).as_posix()
        where = asked["repository"], asked["branch"], key
        client.objects_api.upload_object(*where, content=path.read_bytes())

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(send, [path for path in source.rglob("*") if path.is_file()]))


def spec_download(files: Any, asked: Asked) -> None:
    """Get a directory."""
    files.get(f"{asked['repository']}/{asked['ref']}/", asked["directory"] + "/", recursive=True)


def spec_upload(files: Any, asked: Asked) -> None:
    """Put a directory."""
    to = f"{asked['repository']}/{asked['branch']}/"
    files.put(asked["directory"] + "/", to, recursive=True)


def main() -> None:
    """Answer every line with one."""
    client = sdk()
    files = lakefs_spec.LakeFSFileSystem(
        host=os.environ["BENCH_LAKEFS"],
        username=os.environ["BENCH_KEY"],
        password=os.environ["BENCH_SECRET"],
    )
    tricks: dict[str, Callable[[Asked], None]] = {
        "sdk-download": lambda asked: sdk_download(client, asked),
        "sdk-upload": lambda asked: sdk_upload(client, asked),
        "spec-download": lambda asked: spec_download(files, asked),
        "spec-upload": lambda asked: spec_upload(files, asked),
    }
    for line in sys.stdin:
        asked = json.loads(line)
        Path(asked["directory"]).mkdir(parents=True, exist_ok=True)
        tricks[asked["do"]](asked)
        print(json.dumps(None), flush=True)


if __name__ == "__main__":
    main()
