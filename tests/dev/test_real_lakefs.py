"""lakeFS for real: it is built if need be, started, used, killed and stopped."""

from __future__ import annotations

import os
import signal
import stat
import urllib.error
from pathlib import Path

import pytest

from perago.dev import Instance, start
from perago.errors import UsageError
from tests.dev.http import LakeFS, ask, fetch, send
from tests.patience import LIMIT, TEST_SECONDS

# The servers may have to be built first.
pytestmark = pytest.mark.timeout(3 * TEST_SECONDS)

# The first run on a machine compiles lakeFS.


def test_it_takes_the_generated_keys_and_no_others(lakefs: Instance) -> None:
    api = LakeFS(lakefs.lakefs)
    assert api.create("first-repository")["id"] == "first-repository"
    assert "first-repository" in api.repositories()
    with pytest.raises(urllib.error.HTTPError, match="401"):
        ask(f"{lakefs.lakefs.endpoint}/api/v1/repositories", user="somebody:else")


def test_it_is_the_pinned_version(lakefs: Instance) -> None:
    assert LakeFS(lakefs.lakefs)("/config/version")["version"] == "1.84.0"
    assert lakefs.status()[0].version == "1.84.0"


def test_what_it_keeps_is_private(lakefs: Instance) -> None:
    assert stat.S_IMODE(lakefs.directory.stat().st_mode) == 0o700
    for file in ("instance.json", "env", "lakefs/config.yaml"):
        assert stat.S_IMODE((lakefs.directory / file).stat().st_mode) == 0o600, file
    assert lakefs.lakefs.secret in lakefs.environment.read_text()


def test_a_restart_keeps_the_address_the_keys_and_the_data(home: Path) -> None:
    with start("default", home, ["lakefs"]) as instance:
        before = instance.lakefs
        LakeFS(before).create("kept-repository")
        instance.restart("lakefs")
        assert instance.lakefs == before
        assert LakeFS(before).repositories() == ["kept-repository"]
        instance.stop()
        instance.up(["lakefs"])
        assert LakeFS(instance.lakefs).repositories() == ["kept-repository"]


def test_two_instances_side_by_side_share_nothing(home: Path) -> None:
    with start("one", home, ["lakefs"]) as one, start("two", home, ["lakefs"]) as two:
        assert one.lakefs.endpoint != two.lakefs.endpoint
        assert one.lakefs.secret != two.lakefs.secret
        LakeFS(one.lakefs).create("only-in-one")
        assert LakeFS(two.lakefs).repositories() == []


def test_a_killed_server_is_dead_and_comes_back(home: Path) -> None:
    with start("default", home, ["lakefs"]) as instance:
        LakeFS(instance.lakefs).create("kept-repository")
        first = instance.status()[0]
        assert first.state == "running"
        assert first.memory_bytes > 10_000_000
        os.kill(first.pid, signal.SIGKILL)
        instance.record.servers["lakefs"].process.wait(LIMIT)
        assert instance.status()[0].state == "dead"
        instance.up(["lakefs"])
        second = instance.status()[0]
        assert (second.state, second.port) == ("running", first.port)
        assert LakeFS(instance.lakefs).repositories() == ["kept-repository"]
        instance.kill("lakefs")
        assert instance.status()[0].state == "dead"
        instance.purge()


def test_stopping_leaves_no_process_and_purging_no_file(home: Path) -> None:
    instance = start("default", home, ["lakefs"], blocks="s3")
    processes = [known.process for known in instance.record.servers.values()]
    assert [process.alive for process in processes] == [True, True]
    instance.stop()
    assert [process.alive for process in processes] == [False, False]
    assert [each.state for each in instance.status()] == ["stopped", "stopped"]
    assert instance.log("lakefs").stat().st_size > 0
    assert not instance.environment.exists()
    instance.purge()
    assert not instance.directory.exists()


def test_blocks_on_s3_are_presigned(home: Path) -> None:
    with start("default", home, ["lakefs"], blocks="s3") as instance:
        api = LakeFS(instance.lakefs)
        storage = api("/config")["storage_config"]
        assert storage["pre_sign_support"] is True
        assert storage["pre_sign_multipart_upload"] is True
        api.create("presigned")
        main = "/repositories/presigned/branches/main"
        place = api(f"{main}/staging/backing?path=a.txt&presign=true")
        assert place["presigned_url"].startswith(instance.s3.endpoint)
        tag = send(place["presigned_url"], b"through the block store")
        metadata = {"staging": place, "checksum": tag, "size_bytes": 23}
        api(f"{main}/staging/backing?path=a.txt", "PUT", metadata)
        listed = api("/repositories/presigned/refs/main/objects/ls?presign=true")["results"]
        assert listed[0]["physical_address"].startswith(instance.s3.endpoint)
        assert fetch(listed[0]["physical_address"]) == b"through the block store"


def test_multipart_uploads_work_on_s3_blocks(home: Path) -> None:
    with start("default", home, ["lakefs"], blocks="s3") as instance:
        api = LakeFS(instance.lakefs)
        api.create("multipart")
        uploads = "/repositories/multipart/branches/main/staging/pmpu"
        begun = api(f"{uploads}?path=big.bin&parts=2", "POST")
        parts = [b"a" * 5 * 2**20, b"the rest"]
        tags = [send(url, part) for url, part in zip(begun["presigned_urls"], parts, strict=True)]
        body = {
            "physical_address": begun["physical_address"],
            "parts": [{"part_number": i, "etag": tag} for i, tag in enumerate(tags, 1)],
        }
        done = api(f"{uploads}/{begun['upload_id']}?path=big.bin", "PUT", body)
        assert done["size_bytes"] == sum(map(len, parts))
        place = api("/repositories/multipart/refs/main/objects/stat?path=big.bin&presign=true")
        assert fetch(place["physical_address"]) == b"".join(parts)


def test_the_place_of_the_blocks_cannot_be_changed(home: Path) -> None:
    with (
        start("default", home, ["lakefs"]) as instance,
        pytest.raises(UsageError, match="keeps its blocks on local, not on s3; add --blocks local"),
    ):
        instance.up(["lakefs"], blocks="s3")
