"""Commits by their id: asked for once, also when several want one at the same time."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from perago.errors import StoreUnavailableError
from perago.protocol.values import Commit
from perago.stores.lakefs.commits import KEPT, Commits
from tests.patience import LIMIT


def commit(name: str) -> Commit:
    return Commit(id=name, parents=("a",))


class Server:
    """Answers when it is let, and counts."""

    def __init__(self, *failures: bool) -> None:
        self.asked = 0
        self.may = threading.Event()
        self.begun = threading.Event()
        self._failures = iter(failures)

    def __call__(self) -> Commit:
        self.asked += 1
        self.begun.set()
        assert self.may.wait(LIMIT)
        if next(self._failures, False):
            raise StoreUnavailableError("lakeFS is down", remedy="start it")
        return commit("c")


def test_what_is_known_is_not_asked_for_again() -> None:
    commits, server = Commits(), Server()
    server.may.set()
    assert commits.find("r", "c", server) is commits.find("r", "c", server)
    assert server.asked == 1
    commits.find("another", "c", server)
    assert server.asked == 2


def test_those_who_want_the_same_one_wait_for_one_answer() -> None:
    commits, server = Commits(), Server()
    with ThreadPoolExecutor(4) as pool:
        found = [pool.submit(commits.find, "r", "c", server) for _ in range(4)]
        assert server.begun.wait(LIMIT)
        server.may.set()
        assert {each.result().id for each in found} == {"c"}
    assert server.asked == 1


def test_one_asked_for_ahead_is_there_or_on_its_way() -> None:
    commits, server = Commits(), Server()
    commits.prefetch("r", "c", server)
    assert server.begun.wait(LIMIT)
    server.may.set()
    assert commits.find("r", "c", server).id == "c"
    assert server.asked == 1


def test_whoever_waited_for_a_failure_asks_for_itself() -> None:
    commits, server = Commits(), Server(True)
    commits.prefetch("r", "c", server)
    assert server.begun.wait(LIMIT)
    with ThreadPoolExecutor(1) as pool:
        wanted = pool.submit(commits.find, "r", "c", server)
        server.may.set()
        assert wanted.result().id == "c"
    assert server.asked == 2


def test_a_failure_is_raised_to_whoever_asked_and_forgotten() -> None:
    commits, server = Commits(), Server(True)
    server.may.set()
    with pytest.raises(StoreUnavailableError):
        commits.find("r", "c", server)
    assert commits.find("r", "c", server).id == "c"


def test_only_the_last_ones_are_kept() -> None:
    commits, server = Commits(), Server()
    server.may.set()
    commits.find("r", "c", server)
    for number in range(KEPT - 1):
        commits.keep("r", commit(str(number)))
    commits.find("r", "c", server)
    assert server.asked == 1
    for number in range(KEPT):
        commits.keep("r", commit(f"more-{number}"))
    commits.find("r", "c", server)
    assert server.asked == 2
