"""A task module written only from the published surface loads, checks, extracts and runs."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.cli.conftest import Perago

MODULE = Path(__file__).with_name("surface_module.py")


def test_a_module_of_the_old_surface_runs_unchanged(project: Path, perago: Perago) -> None:
    shutil.copy(MODULE, project / "audio.py")
    (project / "songs" / "audio" / "render" / "raw").mkdir(parents=True)
    (project / "songs" / "audio" / "render" / "raw" / "input.txt").write_text("one\ntwo\n")

    checked = perago("check", "audio", "--json").json
    assert checked["warnings"] == []
    assert checked["tasks"][0]["workspace"] == "/audio/render"

    extracted = perago("extract", "audio").json
    assert extracted["retryLogic"] == "LINEAR_BACKOFF"
    assert extracted["responseTimeoutSeconds"] == 300
    assert extracted["concurrentExecLimit"] == 4
    assert "workspace" not in extracted
    output = extracted["outputSchema"]["data"]["properties"]["result"]["properties"]
    assert set(output) == {"rowCount", "doubled"}

    params = '{"stemName": "vocal", "loud": true}'
    ran = perago("run", "audio", "--from", "songs", "--params", params, "--json")
    assert ran.code == 0, ran
    assert ran.json["output"]["result"] == {"rowCount": 2, "doubled": 4}
    assert perago("checkout", "out").code == 0
    published = project / "out" / "audio" / "render" / "features" / "out.txt"
    assert published.read_text() == "ONE\nTWO\n"

    refused = perago("run", "audio", "--params", '{"stemName": "vocal", "loud": "yes"}', "--json")
    assert refused.code == 1
    assert "strict" in refused.json["reason"] or "valid boolean" in refused.json["reason"]
