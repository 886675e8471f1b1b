"""More objects than one page of a list, and names that have to be escaped or cut."""

from __future__ import annotations

from typing import Final

from perago.conform.examining import DELETE, WRITE, CaseReport, Examiner, params
from perago.protocol.evidence import Expected

_MANY: Final = {f"many/{number:04}.txt": f"{number}\n" for number in range(1001)}
"""One more than lakeFS lists at a time, and than one call may delete."""
_ODD: Final = {
    "odd/a+b.txt": "a plus\n",
    "odd/a b.txt": "a blank\n",
    "odd/a%20b.txt": "a percent sign\n",
    "odd/a?b=c&d#e.txt": "what ends a path in an address\n",
    "odd/\u00fc\u4e2d.txt": "letters\n",
}
_TRACE: Final = {
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "tracestate": "conform=1",
}
_STEP: Final = "a step: its name is long, and has odd characters (\u00fc/\u4e2d) - "


def odd_names(examiner: Examiner, report: CaseReport) -> None:
    """Publish keys that have to be escaped, from a step whose name has to be cut (S1).

    One is changed, one deleted, one new. The input carries the trace context of the engine (I1).
    """
    target = examiner.case(report.name, _ODD)
    write = {**WRITE, "odd/a b.txt": "changed\n", "odd/new + %2B.txt": "new\n"}
    delete = (*DELETE, "odd/a+b.txt")
    given = {**target.given(params(write, delete)), **_TRACE}
    workflow = examiner.workflows.start(given, step=_STEP)
    ended = examiner.workflows.end(workflow)
    arranged = target.arranged(Expected.PUBLISHED, "P1", write=write, delete=delete)
    report.add(target.look(arranged, workflow, ended=ended))


def many_objects(examiner: Examiner, report: CaseReport) -> None:
    """Delete more objects than a list has on a page: all of them, and nothing else (S2)."""
    target = examiner.case(report.name, _MANY)
    delete = (*DELETE, *_MANY)
    workflow = examiner.workflows.start(target.given(params(WRITE, delete)))
    ended = examiner.workflows.end(workflow)
    arranged = target.arranged(Expected.PUBLISHED, "S2", delete=delete)
    report.add(target.look(arranged, workflow, ended=ended))
