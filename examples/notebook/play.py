"""Plays a notebook cell by cell inside a running event loop, as a kernel does.

``python play.py FILE.ipynb`` prints the notebook with its outputs; with ``--write`` it keeps them.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any


async def play(notebook: dict[str, Any]) -> None:
    """Run the code cells one after the other; each gets the outputs that it made."""
    asyncio.get_running_loop()
    number = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            number += 1
            cell["execution_count"] = number
            cell["outputs"] = await _outputs("".join(cell["source"]), number)


async def _outputs(source: str, number: int) -> list[dict[str, Any]]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        value = await _run(source)
    streams = (("stdout", out), ("stderr", err))
    found: list[dict[str, Any]] = [
        {"name": name, "output_type": "stream", "text": text.splitlines(keepends=True)}
        for name, stream in streams
        if (text := stream.getvalue())
    ]
    if value is not None:
        found.append(
            {
                "data": _shown(value),
                "execution_count": number,
                "metadata": {},
                "output_type": "execute_result",
            }
        )
    return found


async def _run(source: str) -> object:
    """Run a cell in ``__main__``, as a kernel does; the value of a last expression is returned."""
    tree = ast.parse(source)
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr):
        tree.body.pop()
    await _code(compile(tree, "<cell>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT))
    if not isinstance(last, ast.Expr):
        return None
    expression = ast.Expression(last.value)
    return await _code(compile(expression, "<cell>", "eval", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT))


async def _code(code: Any) -> object:
    value = eval(code, vars(sys.modules["__main__"]))  # noqa: S307 - a notebook is code to be run
    return await value if inspect.iscoroutine(value) else value


def _shown(value: object) -> dict[str, list[str]]:
    data = {"text/plain": repr(value).splitlines(keepends=True)}
    html = getattr(value, "_repr_html_", None)
    if callable(html):
        data["text/html"] = str(html()).splitlines(keepends=True)
    return data


def main(arguments: list[str]) -> None:
    """Play one notebook in the current directory."""
    file = Path(arguments[0]).absolute()
    notebook = json.loads(file.read_text(encoding="utf-8"))
    asyncio.run(play(notebook))
    text = json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    if "--write" in arguments:
        file.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main(sys.argv[1:])
