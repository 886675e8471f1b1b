"""The audit of what Perago is built from finds what it should."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def audit() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("audit", ROOT / "scripts" / "audit.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["audit"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["audit"]


def test_every_pin_of_this_repository_has_a_hash(audit: ModuleType) -> None:
    for path in audit.REQUIREMENTS:
        pins = list(audit.python_pins(path.read_text()))
        assert pins, path
        assert list(audit.unhashed(pins)) == []
    jars = [*audit.jar_pins(audit.JARS.read_text()), audit.conductor_pin()]
    assert "org.apache.hadoop:hadoop-aws" in {pin.name for pin in jars}
    assert jars[-1].name == "org.conductoross:conductor-server"
    assert list(audit.unhashed(jars)) == []
    for path in audit.NPM_LOCKS:
        pins = list(audit.npm_pins(path.read_text()))
        assert {"typescript", "@types/node", "zod"} <= {pin.name for pin in pins}
        assert list(audit.unhashed(pins)) == []
    assert {path.parent.name for path in audit.MODULES} == {"lakefs", "versitygw", "s5cmd"}
    for path in audit.MODULES:
        pins = list(audit.go_pins(path.read_text(), path.with_name("go.sum").read_text()))
        assert pins, path
        assert list(audit.unhashed(pins)) == []


def test_nothing_that_is_pinned_here_is_left_out(audit: ModuleType) -> None:
    """A new file of pins has to be looked at, too."""
    here = [path for path in ROOT.rglob("go.mod") if ".cache" not in path.parts]
    pinned = {path for path in here if "require" in path.read_text()}
    assert pinned == set(audit.MODULES)
    assert set(ROOT.glob("src/**/*jars*.txt")) == {audit.JARS}
    apart = {".cache", ".venv", "node_modules"}
    locks = {path for path in ROOT.rglob("package-lock.json") if not apart & set(path.parts)}
    assert locks == set(audit.NPM_LOCKS)


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


MODULE = """module here
require example.org/One v1.2.0
require (
\texample.org/two v0.3.0 // indirect
\texample.org/old v1.0.0
)
replace example.org/old => example.org/new v0.1.0
"""


def test_go_modules_are_read_with_what_replaces_them(audit: ModuleType) -> None:
    sums = "example.org/One v1.2.0 h1:a=\nexample.org/One v1.2.0/go.mod h1:b=\n"
    pins = list(audit.go_pins(MODULE, sums))
    assert [str(pin) for pin in pins] == [
        "example.org/One v1.2.0",
        "example.org/two v0.3.0",
        "example.org/new v0.1.0",
    ]
    assert list(audit.unhashed(pins)) == [
        "example.org/two v0.3.0 has no hash",
        "example.org/new v0.1.0 has no hash",
    ]
    (asked, *_) = audit.questions(pins)["queries"]
    assert asked == {"package": {"ecosystem": "Go", "name": "example.org/One"}, "version": "1.2.0"}


def test_a_module_is_hashed_as_go_does(audit: ModuleType) -> None:
    """This is the line of errors v0.9.1 in everybody's ``go.sum``."""
    module = b"module github.com/pkg/errors\n"
    assert audit.go_hash(module) == "h1:bwawxfHBFNV+L2hUp1rHADufV3IMtnDRdf1r5NINEl0="


@pytest.mark.parametrize(
    ("version", "text", "told"),
    [
        ("v1.2.0", "retract v1.2.0 // broken", True),
        ("v1.2.0", "retract [v1.0.0, v1.3.0]", True),
        ("v1.2.0", "retract (\n\tv1.1.0 // one\n\t[v1.2.0, v1.2.9]\n)", True),
        ("v1.2.0-rc.1", "retract [v1.0.0, v1.2.0]", True),
        ("v1.10.0", "retract [v1.0.0, v1.9.0]", False),
        ("v1.2.0", "// retract v1.2.0", False),
        ("v1.2.0", "module x", False),
    ],
)
def test_a_retracted_version_is_found(
    audit: ModuleType, version: str, text: str, told: bool
) -> None:
    assert audit.retracted(version, f"module x\n\n{text}\n") is told


def test_what_a_proxy_of_go_says(audit: ModuleType) -> None:
    module = b"module example.org/One\n"
    pin = audit.Pin("Go", "example.org/One", "v1.2.0", True, audit.go_hash(module))
    here = "example.org/!one/@v/v1.2.0.mod"
    same = audit.ask_go([pin], {here: module}.get)
    assert same.findings == []
    assert "whether ours were retracted was not looked up" in same.told[-1]
    other = audit.ask_go([pin], {here: b"module other\n"}.get)
    assert other.findings == ["example.org/One v1.2.0 is not what was pinned"]
    gone = audit.ask_go([pin], {}.get)
    assert gone.findings == ["example.org/One v1.2.0 is not there any more"]
    newest = {
        here: module,
        "example.org/!one/@v/list": b"v1.2.0\nv1.9.0\nv1.10.0\nv1.11.0-rc.1\n",
        "example.org/!one/@v/v1.10.0.mod": b"module example.org/One\nretract v1.2.0\n",
    }
    taken = audit.ask_go([pin], newest.get)
    assert taken.findings == ["example.org/One v1.2.0 is retracted"]
    assert len(taken.told) == 1
    told = {**newest, "example.org/!one/@latest": b'{"Version": "v1.10.0"}'}
    assert audit.ask_go([pin], told.get).findings == taken.findings


def test_what_maven_says(audit: ModuleType) -> None:
    pin = audit.Pin("Maven", "org.x:a", "1.0", True, "0" * 64, "boot")
    jar = "org/x/a/1.0/a-1.0-boot.jar"
    assert audit.ask_maven([pin], {f"{jar}.sha256": b"0" * 64}.get).findings == []
    assert audit.ask_maven([pin], {f"{jar}.sha1": b"0" * 40}.get).findings == []
    wrong = audit.ask_maven([pin], {f"{jar}.sha256": b"1" * 64 + b"  a.jar"}.get)
    assert wrong.findings == ["org.x:a 1.0 is not what was pinned"]
    assert audit.ask_maven([pin], {}.get).findings == ["org.x:a 1.0 is not there any more"]


def test_what_a_lock_of_npm_pins(audit: ModuleType) -> None:
    packages = {
        "": {"version": "0.7.0"},
        "node_modules/@x/a": {"version": "1.0.0", "integrity": "sha512-aa=="},
        "node_modules/@x/a/node_modules/b": {"version": "2.0.0", "integrity": "sha1-bb="},
        "node_modules/here": {"link": True, "resolved": "here"},
    }
    pins = list(audit.npm_pins(json.dumps({"packages": packages})))
    assert list(map(str, pins)) == ["@x/a 1.0.0", "b 2.0.0"]
    assert list(audit.unhashed(pins)) == ["b 2.0.0 has no hash"]


def test_what_npm_says(audit: ModuleType) -> None:
    pin = audit.Pin("npm", "@x/a", "1.0.0", True, "sha512-aa==")

    def findings(answer: dict[str, object] | None) -> list[str]:
        known = {} if answer is None else {"@x%2Fa/1.0.0": json.dumps(answer).encode()}
        return list(audit.ask_npm([pin], known.get).findings)

    there: dict[str, object] = {"dist": {"integrity": "sha512-aa=="}}
    assert findings(there) == []
    assert findings(None) == ["@x/a 1.0.0 is not there any more"]
    assert findings({"dist": {"integrity": "sha512-bb=="}}) == ["@x/a 1.0.0 is not what was pinned"]
    assert findings({}) == ["@x/a 1.0.0 is not what was pinned"]
    deprecated = findings(there | {"deprecated": "use\nb"})
    assert deprecated == ["@x/a 1.0.0 is deprecated: use b"]


def test_a_registry_that_cannot_be_asked_is_a_failure_and_osv_only_when_strict(
    audit: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_answer(*_: object) -> bytes:
        raise audit.UnansweredError("no route to host")

    def run(*words: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["audit", *words])
        return audit.main(), capsys.readouterr().out

    monkeypatch.setattr(audit, "_post", no_answer)
    monkeypatch.setattr(audit, "_asked", lambda *_: "")
    monkeypatch.setattr(audit, "ask_go", lambda *_: audit.Looked(["Go: all"]))
    monkeypatch.setattr(audit, "ask_maven", lambda *_: audit.Looked(["Maven: all"]))
    monkeypatch.setattr(audit, "ask_npm", lambda *_: audit.Looked(["npm: all"]))
    code, out = run()
    assert code == 0
    assert "OSV: vulnerabilities were not looked up, it cannot be reached (no route" in out
    assert run("--strict")[0] == 1
    for part in ("_asked", "ask_go", "ask_maven", "ask_npm"):
        with monkeypatch.context() as patch:
            patch.setattr(audit, part, no_answer)
            code, out = run()
        assert code == 1, part
        assert "nothing was looked up, it cannot be asked (no route to host)" in out
