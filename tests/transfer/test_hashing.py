"""D3, S3: the checksum of a big content is computed beside its way, and is the same."""

from __future__ import annotations

import hashlib
import itertools
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perago.transfer import copying
from perago.transfer.hashing import BIG_BYTES, Hashing

SIZES = pytest.mark.parametrize("size", [0, BIG_BYTES], ids=["small", "big"])


@SIZES
@given(parts=st.lists(st.binary(max_size=5000), max_size=8))
def test_it_is_the_checksum_of_all_parts_in_their_order(size: int, parts: list[bytes]) -> None:
    hashing = Hashing("md5", size)
    for part in parts:
        hashing.update(part)
    right = hashlib.md5(b"".join(parts), usedforsecurity=False)
    assert hashing.checksum == f"md5:{right.hexdigest()}"
    assert hashing.digest() == right.digest()


@pytest.mark.parametrize("size", [BIG_BYTES - 1, BIG_BYTES, BIG_BYTES + 12_345])
def test_a_big_file_is_copied_while_it_is_hashed(tmp_path: Path, size: int) -> None:
    # Every part is another one: a part that was overwritten too early would be noticed.
    parts = (number.to_bytes(8) + os.urandom(copying.CHUNK - 8) for number in itertools.count())
    content = b"".join(itertools.islice(parts, size // copying.CHUNK + 1))[:size]
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(content)
    told: list[int] = []
    with source.open("rb") as reading, target.open("w+b") as writing:
        found = copying.copy(reading.fileno(), writing.fileno(), size, told.append, "sha256")
    assert target.read_bytes() == content
    assert found.checksum == f"sha256:{hashlib.sha256(content).hexdigest()}"
    assert (found.size, sum(told)) == (size, size)


def test_the_child_of_a_fork_has_helpers_of_its_own() -> None:
    Hashing("md5", BIG_BYTES).update(b"so that there are threads here")
    child = os.fork()
    if not child:
        hashing = Hashing("md5", BIG_BYTES)
        hashing.update(b"child")
        right = hashlib.md5(b"child", usedforsecurity=False).digest()
        os._exit(0 if hashing.digest() == right else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
