"""What of the author's code goes to executors, and what does not (X4)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import pytest

from perago.spark import packaging
from perago.spark.packaging import author_files, pack


def _modules(root: Path, files: Mapping[str, str]) -> dict[str, ModuleType]:
    """Write files, and pretend that the modules they are were imported."""
    found = {}
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if path.suffix == ".py":
            module = name.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
            found[module] = ModuleType(module)
            found[module].__file__ = str(path)
    return found


def test_a_single_module_is_shipped_as_it_is(tmp_path: Path) -> None:
    files = author_files(_modules(tmp_path, {"steps.py": ""}), [])
    assert files == {"steps.py": tmp_path / "steps.py"}


def test_a_package_is_shipped_whole_but_only_its_python(tmp_path: Path) -> None:
    parts = {"shop/__init__.py": "", "shop/a.py": "", "shop/deep/__init__.py": "", "shop/x.csv": ""}
    modules = _modules(tmp_path, {**parts, "shop/.hidden/h.py": ""})
    imported = {name: modules[name] for name in ("shop", "shop.a")}
    names = author_files(imported, []).keys()
    assert names == {"shop/__init__.py", "shop/a.py", "shop/deep/__init__.py"}


def test_of_a_plain_folder_only_what_was_imported_is_shipped(tmp_path: Path) -> None:
    parts = {"flow/a.py": "", "flow/b.py": "", "flow/sub/__init__.py": "", "flow/sub/c.py": ""}
    modules = _modules(tmp_path, parts)
    imported = {name: modules[name] for name in ("flow.a", "flow.sub")}
    names = author_files(imported, []).keys()
    assert names == {"flow/a.py", "flow/sub/__init__.py", "flow/sub/c.py"}


def test_what_is_installed_is_not_shipped(tmp_path: Path) -> None:
    modules = _modules(tmp_path, {"lib/numpy/__init__.py": "", "own.py": ""})
    modules |= _modules(tmp_path, {"perago/__init__.py": "", "__main__.py": ""})
    modules |= {"sys": sys, "made": ModuleType("made")}
    modules["alias"] = modules["own"]
    assert author_files(modules, [tmp_path / "lib"]).keys() == {"own.py"}


def test_of_this_process_only_the_tests_are_the_authors() -> None:
    files = author_files(sys.modules.copy(), packaging.installed())
    assert f"{__name__.replace('.', '/')}.py" in files
    assert {name.split("/")[0] for name in files} <= {"tests", "examples", "bench"}


@pytest.mark.parametrize("package", [{"shop/__init__.py": ""}, {}], ids=["package", "folder"])
def test_the_zip_file_can_be_imported_from_and_is_always_the_same(
    tmp_path: Path, package: dict[str, str]
) -> None:
    files = {**package, "shop/words.py": "def tidy(): return 'tidied'\n", "top.py": "ONE = 1\n"}
    code = pack(author_files(_modules(tmp_path, files), []))
    assert code == pack(author_files(_modules(tmp_path, files), []))
    path = tmp_path / "elsewhere" / code.name
    path.parent.mkdir()
    path.write_bytes(code.data)
    program = "import sys; sys.path.insert(0, sys.argv[1]); from shop.words import tidy; "
    said = subprocess.check_output(
        [sys.executable, "-I", "-c", program + "print(tidy())", path], cwd=path.parent, text=True
    )
    assert said == "tidied\n"
    changed = {**files, "top.py": "ONE = 2\n"}
    assert pack(author_files(_modules(tmp_path, changed), [])).name != code.name
