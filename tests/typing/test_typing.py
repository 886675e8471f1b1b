"""The typed interface, seen from outside: an author's module under ``mypy --strict`` (T1)."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import LIMIT

pytest.importorskip("mypy")

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parents[1] / "src"
AUTHOR = HERE / "author.py"
# An author's project: strict, with the pydantic plugin or without it.
PLAIN = "[mypy]\nstrict = true\nwarn_unused_ignores = true\n"
WITH_PLUGIN = PLAIN + "plugins = pydantic.mypy\n\n[pydantic-mypy]\ninit_typed = true\n"


def check(file: Path, project: Path, configuration: str) -> tuple[int, str]:
    """Run mypy as an author would: in another directory, with another configuration."""
    (project / "mypy.ini").write_text(configuration)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", str(file)],
        cwd=project,
        env={"MYPYPATH": str(SOURCE), "PATH": "", "MYPY_CACHE_DIR": str(project / "cache")},
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("configuration", [PLAIN, WITH_PLUGIN], ids=["plain", "with plugin"])
def test_an_authors_module_is_typed_and_its_mistakes_are_found(
    tmp_path: Path, configuration: str
) -> None:
    """Taken lines have no error; refused lines have exactly the error their ignore names."""
    code, output = check(AUTHOR, tmp_path, configuration)
    assert (code, output.strip()) == (0, "Success: no issues found in 1 source file")


def test_the_ignores_are_needed(tmp_path: Path) -> None:
    """Without its ignores the same module has one error on each of those lines, and no other."""
    text = AUTHOR.read_text()
    expected = {n for n, line in enumerate(text.splitlines(), 1) if "# type: ignore" in line}
    bare = tmp_path / "bare.py"
    bare.write_text(re.sub(r"  # type: ignore\[[\w-]+\]", "", text))
    code, output = check(bare, tmp_path, WITH_PLUGIN)
    found = {int(number) for number in re.findall(r"bare\.py:(\d+): error", output)}
    assert code == 1
    assert found == expected
    assert len(expected) >= 30


def test_the_package_says_that_it_is_typed() -> None:
    assert (SOURCE / "perago" / "py.typed").is_file()
