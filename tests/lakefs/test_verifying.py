"""A merge that lands something else on the real server is no success (P5), and is not believed."""

from __future__ import annotations

import re

import pytest

from perago.protocol.values import Staging, Status
from tests.faults.proxy import Exchange, Rule
from tests.lakefs import tasks
from tests.lakefs.bench import Bench
from tests.lakefs.tasks import GIVEN, after

pytestmark = pytest.mark.usefixtures("impatient")
MERGE = "/merge/main$"


class MergeInstead:
    """Has the server merge another commit: its parent, message and metadata are the right ones."""

    def __init__(self, other: str) -> None:
        self.other = other
        self.met = 0

    def meet(self, exchange: Exchange) -> None:
        self.met += 1
        seen = exchange.seen
        seen.path = re.sub(r"/refs/[^/]+/merge", f"/refs/{self.other}/merge", seen.path)
        exchange.reply(exchange.forward())


def test_p5_a_merge_of_something_else_is_seen_by_its_content(bench: Bench) -> None:
    a = bench.given(GIVEN).id
    staging = Staging(bench.repository, "other")
    bench.truth.open_staging(staging, a)
    bench.truth.put(bench.repository, "other", "ws/out.txt", b"n3w")
    bench.truth.remove(bench.repository, "other", "ws/old.txt")
    other = bench.truth.commit_branch(bench.repository, "other", "something else").id
    fault = MergeInstead(other)
    run = bench.run(tasks.step, Rule(fault, "POST", MERGE))
    assert fault.met == 1
    assert run.status is Status.FAILED
    assert "published content differs from what was staged" in run.reason
    assert bench.head.parents == (a,)
    # What this machine knows of C is not taken for what the merge holds.
    head = bench.head.id
    listed = {one.key: one for one in bench.store.listing(bench.repository, head, "ws/")}
    fresh = {one.key: one for one in bench.truth.listing(bench.repository, head, "ws/")}
    assert listed == fresh
    again = bench.retry(run)
    assert again.completed, again.reason
    assert bench.files() == after()
