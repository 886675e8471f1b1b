"""Inputs that must be refused before anything is staged, and trees that cannot be files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from perago.conform.examining import CaseReport, Examiner, params
from perago.protocol.evidence import Expected

Given = dict[str, Any]


def refused_input(examiner: Examiner, report: CaseReport) -> None:
    """Get an input that must be refused: a branch as ref, a short id, one more key, a bad name."""
    for row, spoil in _SPOILT.items():
        target = examiner.case(f"{report.name} {row.lower()}")
        given = spoil(target.given(params()))
        workflow = examiner.workflows.start(given)
        ended = examiner.workflows.end(workflow)
        arranged = target.arranged(Expected.REFUSED, row.partition(" ")[0], early=True)
        report.add(target.look(arranged, workflow, ended=ended))


def refused_keys(examiner: Examiner, report: CaseReport) -> None:
    """Read a tree with keys that cannot be files side by side: refuse all of it (D2)."""
    repository = examiner.repository
    for row, keys in _KEYS.items():
        target = examiner.case(f"{report.name} {row}")
        files = {f"{repository.prefix}{key}": f"{number}\n" for number, key in enumerate(keys)}
        before = repository.commit(target.workspace.branch, files, {}).id
        workspace = target.workspace.at(before)
        workflow = examiner.workflows.start(target.given(params(), workspace))
        ended = examiner.workflows.end(workflow)
        arranged = target.arranged(Expected.REFUSED, "D2", workspace=workspace, early=True)
        report.add(target.look(arranged, workflow, ended=ended))


def _with(given: Given, **more: object) -> dict[str, object]:
    return {**given, "workspace": {**given["workspace"], **more}}


_SPOILT: Final[Mapping[str, Callable[[Given], dict[str, object]]]] = {
    "I1 more": lambda given: {**given, "more": {}},
    "I1 params": lambda given: {**given, "params": "none"},
    "I2 more": lambda given: _with(given, more="one"),
    "I2 both": lambda given: _with(given, refType="commit"),
    "I2 blank": lambda given: _with(given, branch=" "),
    "I2 type": lambda given: _with(given, ref_type="branch"),
    "I4 branch": lambda given: _with(given, ref=given["workspace"]["branch"]),
    "I4 short": lambda given: _with(given, ref=given["workspace"]["ref"][:16]),
}
_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "dots": ("../escape.txt",),
    "dot": ("one/./two.txt",),
    "empty": ("one//two.txt",),
    "backslash": ("one\\two.txt",),
    "case": ("Twin.txt", "twin.txt"),
    "case-of-directory": ("Twins/one.txt", "twins/two.txt"),
    "form": ("caf\u00e9.txt", "cafe\u0301.txt"),
    "file-and-directory": ("both", "both/file.txt"),
    "long": (f"{'x' * 256}.txt",),
}
"""Every row but ``..`` could be written by a careless worker on some machine."""
