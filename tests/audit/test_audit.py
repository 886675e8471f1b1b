"""The audit of what Perago is built from finds what it should."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def audit() -> ModuleType:
    spec = importlib.util.spec_from_file_location("audit", ROOT / "scripts" / "audit.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["audit"] = module
    spec.loader.exec_module(module)
    return module


def test_every_pin_of_this_repository_has_a_hash(audit: ModuleType) -> None:
    for path in audit.REQUIREMENTS:
        pins = list(audit.python_pins(path.read_text()))
        assert pins, path
        assert list(audit.unhashed(pins)) == []
    jars = list(audit.jar_pins(audit.JARS.read_text()))
    assert "org.apache.hadoop:hadoop-aws" in {pin.name for pin in jars}
    assert list(audit.unhashed(jars)) == []


def test_a_pin_without_a_hash_is_found(audit: ModuleType) -> None:
    text = "# made by\na==1.0 ; sys_platform == 'linux' \\\n    --hash=sha256:00\nb==2.0\n"
    pins = list(audit.python_pins(text))
    assert [(pin.name, pin.version) for pin in pins] == [("a", "1.0"), ("b", "2.0")]
    assert list(audit.unhashed(pins)) == ["b 2.0 has no hash"]
    assert list(audit.unhashed(audit.jar_pins("# jars\ng:a:1 abc\n"))) == ["g:a 1 has no hash"]


def test_a_version_that_was_taken_back_is_found(audit: ModuleType) -> None:
    words = 'Resolved 1 package in 3ms\nwarning: `a==1.0` is yanked (reason: "broken")\n'
    assert list(audit.yanked(words)) == ['a==1.0 is yanked (reason: "broken")']
    assert list(audit.yanked("Resolved 1 package in 3ms\n")) == []


def test_vulnerabilities_are_told_by_pin_unless_they_are_accepted(
    audit: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    pins = [audit.Pin("PyPI", "a", "1.0"), audit.Pin("Maven", "g:b", "2.0")]
    asked = audit.questions(pins)["queries"]
    assert asked[1] == {"package": {"ecosystem": "Maven", "name": "g:b"}, "version": "2.0"}
    answer = {"results": [{}, {"vulns": [{"id": "GHSA-2"}, {"id": "GHSA-1"}]}]}
    assert list(audit.vulnerable(pins, answer)) == ["g:b 2.0 is vulnerable: GHSA-1, GHSA-2"]
    monkeypatch.setattr(audit, "ACCEPTED", {"GHSA-1": "not used", "GHSA-2": "not used"})
    assert list(audit.vulnerable(pins, answer)) == []
