"""The only visible write: apply (rules P, N, K, G1)."""

from __future__ import annotations

from pathlib import Path

import pytest

from perago.errors import LostRaceError, NotFoundError, PublishFenceError, StoreError
from perago.protocol.publication import Merge, Relocate, Replace, Write, refuse_visible
from tests.contract.backend import Backend
from tests.contract.scene import FILES, Scene


def test_p1_merge_makes_one_commit_whose_only_parent_is_the_head(
    backend: Backend, tmp_path: Path
) -> None:
    for fence in backend.fences:
        scene = Scene(backend, tmp_path)
        staged = scene.stage({"ws/new": b"new"}, deletes=("ws/raw/one.txt",))
        decision = Merge(scene.a.id, staged.commit)
        published = scene.publish(decision, fence=fence)
        head = scene.store.head(scene.repository, "main")
        assert refuse_visible(decision, published.ref, head) is None
        assert head.parents == (scene.a.id,)
        assert scene.keys("main") == scene.keys(staged.commit)


def test_k4_a_merge_carries_message_and_audit_metadata(scene: Scene) -> None:
    staged = scene.stage({"ws/new": b"new"})
    said = {"perago.phase": "confirm", "perago.expected_head": scene.a.id}
    scene.publish(Merge(scene.a.id, staged.commit), message="step two", metadata=said)
    head = scene.store.head(scene.repository, "main")
    assert head.message == "step two"
    assert said.items() <= head.metadata.items()


def test_p2_replace_gives_a_history_without_the_replaced_commit(scene: Scene) -> None:
    first = scene.publish(Merge(scene.a.id, scene.stage({"ws/new": b"abandoned"}).commit))
    again = scene.stage({"ws/new": b"again"})
    decision = Replace(first.ref, again.commit)
    published = scene.publish(decision)
    head = scene.store.head(scene.repository, "main")
    assert refuse_visible(decision, published.ref, head) is None
    assert scene.history()[:2] == [again.commit, scene.a.id]
    assert first.ref not in scene.history()


def test_p10_a_replaced_commit_can_still_be_read(scene: Scene) -> None:
    first = scene.publish(Merge(scene.a.id, scene.stage({"ws/new": b"abandoned"}).commit))
    scene.publish(Replace(first.ref, scene.stage({"ws/new": b"again"}).commit))
    assert scene.content(first.ref, "ws/new") == b"abandoned"


def test_n2_relocate_moves_the_branch_back_to_the_input(scene: Scene) -> None:
    first = scene.publish(Merge(scene.a.id, scene.stage({"ws/new": b"abandoned"}).commit))
    decision = Relocate(first.ref, scene.a.id)
    published = scene.publish(decision)
    assert published.ref == scene.head() == scene.a.id
    assert scene.keys("main") == sorted(FILES)


def decisions(scene: Scene, head: str) -> list[Write]:
    staged = scene.stage({"ws/new": b"late"})
    return [Merge(head, staged.commit), Replace(head, staged.commit), Relocate(head, scene.a.id)]


@pytest.mark.parametrize("kind", range(3))
def test_p8_a_moved_head_is_a_lost_race_and_nothing_is_written(scene: Scene, kind: int) -> None:
    decision = decisions(scene, scene.a.id)[kind]
    winner = scene.publish(Merge(scene.a.id, scene.stage({"ws/new": b"first"}).commit))
    for fence in scene.backend.exact_fences:
        with pytest.raises(LostRaceError) as lost:
            scene.publish(decision, fence=fence)
        assert scene.a.id in lost.value.message
        assert winner.ref in lost.value.message
    assert scene.history()[:2] == [winner.ref, scene.a.id]
    assert scene.content("main", "ws/new") == b"first"


def test_p8_of_two_publications_on_one_head_exactly_one_lands(scene: Scene) -> None:
    first, second = scene.stage({"ws/x": b"1"}), scene.stage({"ws/y": b"2"})
    winner = scene.publish(Merge(scene.a.id, first.commit))
    decision = Merge(scene.a.id, second.commit)
    if scene.backend.exact_fences:
        with pytest.raises(LostRaceError):
            scene.publish(decision)
        assert scene.history()[:2] == [winner.ref, scene.a.id]
        assert "ws/y" not in scene.keys("main")
    else:  # A soft fence lets it land, and P5 does not call it a success.
        published = scene.publish(decision)
        head = scene.store.head(scene.repository, "main")
        assert refuse_visible(decision, published.ref, head) is not None


@pytest.mark.parametrize("kind", range(3))
def test_p4_a_dirty_target_is_refused_and_stays_as_it_is(scene: Scene, kind: int) -> None:
    first = scene.publish(Merge(scene.a.id, scene.stage({"ws/new": b"abandoned"}).commit))
    decision = decisions(scene, first.ref)[kind]
    scene.backend.put_uncommitted(scene.repository, "main", "ws/loose", b"mine")
    assert scene.store.dirty(scene.repository, "main")
    with pytest.raises(PublishFenceError) as refused:
        scene.publish(decision)
    assert "uncommitted" in refused.value.message
    assert refused.value.remedy
    assert scene.head() == first.ref
    assert scene.store.dirty(scene.repository, "main")


def test_g1_an_empty_merge_is_an_error_and_not_a_commit(scene: Scene) -> None:
    with pytest.raises(StoreError):
        scene.publish(Merge(scene.a.id, scene.a.id))
    assert scene.head() == scene.a.id


def test_k2_a_merge_on_a_later_head_keeps_what_came_between(scene: Scene) -> None:
    staged = scene.stage({"ws/new": b"new"})
    between = scene.backend.seed(scene.repository, {"ws2/elsewhere": b"x"})
    published = scene.publish(Merge(between.id, staged.commit))
    assert scene.store.head(scene.repository, "main").parents == (between.id,)
    assert {"ws/new", "ws2/elsewhere"} <= set(scene.keys(published.ref))


def test_k1_k3_the_result_says_which_fence_held(scene: Scene) -> None:
    staged = scene.stage({"ws/new": b"new"})
    fence = scene.backend.fences[0]
    published = scene.publish(Merge(scene.a.id, staged.commit), fence=fence)
    assert published.fence == ("hard" if fence in scene.backend.exact_fences else fence)


@pytest.mark.parametrize("decision", [Merge, Replace, Relocate])
def test_a_commit_that_does_not_exist_is_not_published(
    scene: Scene, decision: type[Merge | Replace | Relocate]
) -> None:
    with pytest.raises(NotFoundError):
        scene.publish(decision(scene.a.id, "0" * 64))
    assert scene.head() == scene.a.id


def test_repositories_do_not_see_each_others_commits(scene: Scene) -> None:
    other = scene.backend.new_repository()
    with pytest.raises(NotFoundError):
        scene.store.commit(other, scene.a.id)
