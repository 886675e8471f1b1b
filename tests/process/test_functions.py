"""What a body puts in the place of functions that an attempt needs is put back."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from perago.process import functions
from perago.process.process_state import ProcessState


def _refuse(*_: object, **__: object) -> Any:
    raise RuntimeError("patched by the body")


@pytest.mark.parametrize(
    ("owner", "name"),
    [(os, "open"), (os, "scandir"), (json, "dumps"), (json, "loads"), (Path, "write_text")],
    ids=["os.open", "os.scandir", "json.dumps", "json.loads", "Path.write_text"],
)
def test_v4_a_function_that_a_body_replaced_is_put_back(owner: Any, name: str) -> None:
    before = vars(owner)[name]
    try:
        with ProcessState().kept():
            setattr(owner, name, _refuse)
    finally:
        now = vars(owner)[name]
        setattr(owner, name, before)
    assert now is before


def test_one_that_is_gone_is_put_back_and_others_are_not_touched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    put_back = functions.kept()
    monkeypatch.delattr(os, "unlink")
    monkeypatch.setattr(os, "getlogin", _refuse)
    assert put_back() == ["os.unlink"]
    assert os.getlogin is _refuse
