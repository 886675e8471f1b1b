"""A publication is a success only when what is visible is what was staged (P5, V2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from perago.ports import Publication, Published
from perago.protocol.publication import Merge, Replace
from perago.protocol.values import Staging, Status
from perago.stores.embedded import EmbeddedStore
from perago.testing import FailAt, Lab
from tests.lakefs_lab import ArrangedLakeFS, new_name
from tests.lifecycle import tasks
from tests.lifecycle.tasks import GIVEN

if TYPE_CHECKING:
    from perago.testing.arranged import ArrangedStore as Arranged
else:
    Arranged = object


class Elsewhere(Arranged):
    """A store that publishes something else than it is asked to, with all else as it should be."""

    lands: Mapping[str, bytes | None] | None = None
    """What is changed on the way; None removes a file."""

    def apply(self, publication: Publication) -> Published:
        """Put another commit, made from the same one, in the place of C."""
        decision = publication.decision
        if self.lands is not None and isinstance(decision, Merge | Replace):
            decision = replace(decision, source=self._other(publication.repository, decision))
        return super().apply(replace(publication, decision=decision))

    def _other(self, repository: str, decision: Merge | Replace) -> str:
        staging = Staging(repository, new_name())
        self.open_staging(staging, decision.source)
        for key, content in (self.lands or {}).items():
            if content is None:
                self.remove(repository, staging.branch, key)
            else:
                self.put(repository, staging.branch, key, content)
        other = self.commit_branch(repository, staging.branch, "something else").id
        self.drop(staging)
        return other


class ElsewhereEmbedded(Elsewhere, EmbeddedStore): ...


class ElsewhereLakeFS(Elsewhere, ArrangedLakeFS): ...


@pytest.fixture(params=["embedded", "lakefs"])
def lab(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lab]:
    store: Any = None
    if request.param == "lakefs":
        server = request.getfixturevalue("lakefs_server")
        store = ElsewhereLakeFS(server, tmp_path / "worker")
    else:
        store = ElsewhereEmbedded(tmp_path / "store")
    lab = Lab(tmp_path / "lab", store=store, repository=new_name())
    lab.commit(GIVEN)
    yield lab
    lab.close()


OTHER: dict[str, Mapping[str, bytes | None]] = {
    "another content": {"ws/out.txt": b"n3w"},
    "a file more": {"ws/more.txt": b"x"},
    "a file less": {"ws/in.txt": None},
}


@pytest.mark.parametrize("lands", [pytest.param(each, id=name) for name, each in OTHER.items()])
@pytest.mark.parametrize("write", [tasks.write, tasks.write_lineage])
def test_p5_a_merge_that_shows_something_else_is_no_success(
    lab: Lab, write: Callable[..., Any], lands: Mapping[str, bytes | None]
) -> None:
    """Parent, id and metadata are as they should be: only the content tells."""
    a = lab.head.id
    lab.store.lands = lands  # type: ignore[attr-defined]
    run = lab.run(write)
    lab.store.lands = None  # type: ignore[attr-defined]
    assert lab.head.parents == (a,)
    assert run.status is Status.FAILED
    assert "published content differs from what was staged" in run.reason
    assert "published" not in run.events
    # V5: the next attempt replaces it, or builds on it, and shows what it staged.
    again = run.retry()
    assert again.completed, again.reason
    assert again.files == {**{k: v.encode() for k, v in GIVEN.items()}, "ws/out.txt": b"new"}


def test_p5_a_replacement_that_shows_something_else_is_no_success(lab: Lab) -> None:
    crashed = lab.run(tasks.write, {"text": "first"}, faults=[FailAt("after publish")])
    lab.store.lands = OTHER["another content"]  # type: ignore[attr-defined]
    run = crashed.retry()
    assert run.status is Status.FAILED
    assert "publication cannot be verified" in run.reason
    assert "published" not in run.events


def test_d3_the_next_attempt_reads_what_is_there_not_what_should_be(lab: Lab) -> None:
    """What this machine knows of C is not taken for the merge that shows something else."""
    lab.store.lands = OTHER["another content"]  # type: ignore[attr-defined]
    assert not lab.run(tasks.write).completed
    lab.store.lands = None  # type: ignore[attr-defined]
    seen = lab.run(tasks.keep)
    assert seen.completed, seen.reason
    assert seen.result == {"length": len("n3w")}
    assert seen.files["ws/copy.txt"] == b"n3w"
