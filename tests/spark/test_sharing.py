"""Executors that write elsewhere are noticed before anything is published (X2)."""

from __future__ import annotations

from pathlib import Path

import pytest

from perago.errors import RuntimeConfigError
from perago.spark import sharing
from perago.spark.session import AttemptSession


def test_x2_what_executors_wrote_is_counted_where_this_machine_reads(
    attempt: AttemptSession, tmp_path: Path
) -> None:
    place, other = tmp_path / "place", tmp_path / "other"
    assert sharing.written(attempt.open(), f"file://{place}", place) == 2
    assert sharing.written(attempt.open(), f"file://{place}", other) == 0


def test_x2_machines_that_do_not_share_are_told_and_asked_again(
    attempt: AttemptSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    master = "sc://far/;token=secret"
    for _ in range(2):
        with monkeypatch.context() as context:
            context.setattr(sharing, "written", lambda *_: 1)
            with pytest.raises(RuntimeConfigError, match="'sc://far' do not write to") as told:
                sharing.check_shared(attempt.open(), master, tmp_path)
        assert "secret" not in str(told.value)
    sharing.check_shared(attempt.open(), master, tmp_path)
    assert list(tmp_path.iterdir()) == []
