"""The canaries of the rig notice what they are there for."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.faults.canaries import CanaryKey, CanaryTree

KEY = "s3cr3t/k+y=0123456789"


def read(root: Path) -> None:
    (root / "data.bin").read_bytes()


def write(root: Path) -> None:
    (root / "data.bin").write_bytes(b"yours" * 180)


def rename(root: Path) -> None:
    (root / "empty").rename(root / "full")


def add(root: Path) -> None:
    (root / "deep" / "new").touch()


def mode(root: Path) -> None:
    (root / "deep" / "er").chmod(0o777)


def put_back(root: Path) -> None:
    """Write the same bytes and the old times: only the inode's own time tells."""
    found = (root / "empty").stat()
    (root / "empty").write_bytes(b"")
    os.utime(root / "empty", ns=(found.st_atime_ns, found.st_mtime_ns))


@pytest.mark.parametrize("harm", [write, rename, add, mode, put_back])
def test_v6_whatever_is_done_to_the_tree_is_found(tmp_path: Path, harm: object) -> None:
    tree = CanaryTree(tmp_path / "outside")
    assert tree.findings() == []
    assert tree.findings() == []  # Looking leaves no trace.
    assert callable(harm)
    harm(tmp_path / "outside")
    assert tree.findings()


def test_v6_reading_is_found_where_the_file_system_keeps_it(tmp_path: Path) -> None:
    probe = tmp_path / "probe"
    probe.write_bytes(b"x")
    os.utime(probe, (0, 1))
    probe.read_bytes()
    tree = CanaryTree(tmp_path / "outside")
    read(tmp_path / "outside")
    assert bool(tree.findings()) is (probe.stat().st_atime > 0)


@pytest.mark.parametrize(
    "said",
    [
        KEY,
        quote(KEY, safe=""),
        KEY.encode().hex(),
        base64.b64encode(KEY.encode()).decode(),
        base64.urlsafe_b64encode(b"id:" + KEY.encode() + b":x").decode(),
    ],
)
def test_v8_a_key_is_found_in_every_spelling(tmp_path: Path, said: str) -> None:
    canary = CanaryKey(KEY)
    file = tmp_path / "logs" / "worker.jsonl"
    file.parent.mkdir()
    file.write_text("nothing")
    assert canary.findings([tmp_path]) == []
    file.write_text(f'{{"text": "it is {said}."}}')
    assert canary.findings([tmp_path])
