"""The files in ``deploy/``: real linters, and what has to fit together does.

No container engine runs here: what these files do in one is not shown by these tests.
"""

from __future__ import annotations

import configparser
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from perago.cli import exits
from perago.dev.recipes import CONDUCTOR, LAKEFS
from perago.protocol.budget import Budget
from perago.settings import load_settings, parse_duration, parse_size
from perago.worker.serving import Endpoint
from tests.patience import LIMIT

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
BIN = Path(sys.executable).parent
MARGIN_SECONDS = 15
"""Between the moment a worker has to be done and the moment it is killed."""
VARIABLE = re.compile(r"\b(?:PERAGO|LAKECTL|CONDUCTOR)_[A-Z][A-Z_]+[A-Z]\b")


def lint(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "warning" not in (done.stdout + done.stderr).lower()


def unit() -> configparser.ConfigParser:
    """Read the unit; names that stand several times are collected, a line each."""
    collected: dict[str, dict[str, list[str]]] = {}
    section = ""
    for line in (DEPLOY / "perago-worker.service").read_text().splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line and not line.startswith("#"):
            name, _, text = line.partition("=")
            collected.setdefault(section, {}).setdefault(name, []).append(text)
    found = configparser.ConfigParser(interpolation=None)
    found.read_dict({s: {k: "\n".join(v) for k, v in c.items()} for s, c in collected.items()})
    return found


def unit_environment() -> dict[str, str]:
    return dict(line.split("=", 1) for line in unit()["Service"]["Environment"].splitlines())


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return found


def kubernetes() -> dict[str, Any]:
    return {each["kind"]: each for each in yaml.safe_load_all(_text("kubernetes.yaml"))}


def pod() -> dict[str, Any]:
    found: dict[str, Any] = kubernetes()["Deployment"]["spec"]["template"]["spec"]
    return found


def image_environment() -> dict[str, str]:
    named = r"^\s+((?:PERAGO|XDG)_\w+)=(\S+)"
    return dict(re.findall(named, _text("Dockerfile"), re.MULTILINE))


def _text(name: str) -> str:
    return (DEPLOY / name).read_text()


# --- linters ------------------------------------------------------------------------------------


def test_hadolint_finds_nothing_in_the_dockerfile() -> None:
    lint(str(BIN / "hadolint"), str(DEPLOY / "Dockerfile"))


@pytest.mark.parametrize("name", ["compose.yaml", "kubernetes.yaml"])
def test_yamllint_finds_nothing(name: str) -> None:
    rules = {
        "extends": "default",
        "rules": {"line-length": {"max": 130}, "document-start": "disable"},
    }
    lint(str(BIN / "yamllint"), "--strict", "-d", json.dumps(rules), str(DEPLOY / name))


def test_kubernetes_knows_every_field() -> None:
    lint(str(BIN / "kubernetes-validate"), "--strict", str(DEPLOY / "kubernetes.yaml"))


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    """Programs and files that only a real host has are replaced by some that are here."""
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not on this machine: the unit was not given to systemd")
    text = _text("perago-worker.service")
    text = text.replace("/opt/perago/venv/bin/perago", "/bin/true")
    copy = tmp_path / "perago-worker.service"
    copy.write_text(text)
    done = subprocess.run(
        [analyze, "verify", "--man=no", str(copy)],
        capture_output=True, text=True, check=False, timeout=LIMIT,
    )  # fmt: skip
    ours = [line for line in done.stderr.splitlines() if "perago-worker" in line]
    assert ours == []


# --- grace periods (W6) -------------------------------------------------------------------------


def test_w6_nothing_kills_a_worker_before_it_has_to_be_done() -> None:
    worker = {
        "systemd": unit_environment()["PERAGO_SHUTDOWN_FORCE_KILL_AFTER"],
        "image": image_environment()["PERAGO_SHUTDOWN_FORCE_KILL_AFTER"],
        "compose": compose()["services"]["worker"]["environment"][
            "PERAGO_SHUTDOWN_FORCE_KILL_AFTER"
        ],
        "kubernetes": kubernetes()["ConfigMap"]["data"]["PERAGO_SHUTDOWN_FORCE_KILL_AFTER"],
    }
    outside = {
        "systemd": float(unit()["Service"]["TimeoutStopSec"]),
        "compose": parse_duration(compose()["services"]["worker"]["stop_grace_period"]),
        "kubernetes": float(pod()["terminationGracePeriodSeconds"]),
    }
    for name, patience in outside.items():
        assert patience >= parse_duration(worker[name]) + MARGIN_SECONDS, name
    for text in worker.values():
        assert parse_duration(text) > Budget().worker_shutdown_grace_seconds


def test_w6_only_the_supervisor_is_told_to_stop() -> None:
    service = unit()["Service"]
    assert (service["KillMode"], service["KillSignal"]) == ("mixed", "SIGTERM")
    assert "STOPSIGNAL SIGTERM" in _text("Dockerfile")
    assert "lifecycle" not in pod()["containers"][0]


def test_a_mistake_is_not_started_again_and_a_crash_is() -> None:
    service = unit()["Service"]
    assert service["Restart"] == "always"
    refused = {int(code) for code in service["RestartPreventExitStatus"].split()}
    assert refused == {exits.USAGE, exits.CONFIGURATION}


# --- probes -------------------------------------------------------------------------------------


def test_every_probe_asks_for_a_page_that_exists() -> None:
    worker = pod()["containers"][0]
    probes = {name: worker[name]["httpGet"]["path"] for name in worker if name.endswith("Probe")}
    assert probes == {
        "startupProbe": "/healthz",
        "livenessProbe": "/healthz",
        "readinessProbe": "/readyz",
    }
    annotations = kubernetes()["Deployment"]["spec"]["template"]["metadata"]["annotations"]
    assert annotations["prometheus.io/path"] == "/metrics"
    asked = set(re.findall(r"127\.0\.0\.1:9464(/\w+)", _text("Dockerfile")))
    yes = lambda: (True, "")  # noqa: E731 - twice the same
    with Endpoint("127.0.0.1:0", yes, yes, lambda: ("", b"")) as endpoint:
        pages = set(vars(endpoint)["_server"].pages)
    assert {*probes.values(), *asked, "/metrics"} <= pages


def test_every_port_is_the_one_the_worker_listens_on() -> None:
    addresses = {
        unit_environment()["PERAGO_HTTP"],
        image_environment()["PERAGO_HTTP"],
        kubernetes()["ConfigMap"]["data"]["PERAGO_HTTP"],
    }
    assert {address.rpartition(":")[2] for address in addresses} == {"9464"}
    assert pod()["containers"][0]["ports"][0]["containerPort"] == 9464
    assert "EXPOSE 9464" in _text("Dockerfile")


# --- versions, places, secrets ------------------------------------------------------------------


def test_servers_are_the_ones_the_tests_run_on() -> None:
    services = compose()["services"]
    assert services["lakefs"]["image"].rpartition(":")[2] == LAKEFS.version
    assert services["conductor"]["image"].rpartition(":")[2] == CONDUCTOR.version


def test_the_image_is_of_this_version_and_made_from_hashed_pins() -> None:
    version = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version
    assert pod()["containers"][0]["image"] == f"perago-worker:{version[1]}"
    text = _text("Dockerfile")
    assert "ARG PINS=worker\n" in text
    names = re.findall(r"requirements/\w+\.txt", text.replace("${PINS}", "spark"))
    for name in (*names, "requirements/worker.txt"):
        assert "--hash=sha256:" in (ROOT / name).read_text()
    installs = re.findall(r"(?:pip install|pip sync)[^&]*", text)
    assert len(installs) == 4
    assert all("--require-hashes" in line or "--no-deps" in line for line in installs)


@pytest.mark.parametrize("path", sorted(DEPLOY.iterdir()), ids=lambda path: path.name)
def test_no_file_names_a_registry(path: Path) -> None:
    text = path.read_text()
    assert not re.search(r"\b(?:docker\.io|ghcr\.io|quay\.io|gcr\.io|pypi\.org)\b", text)
    for image in re.findall(r"(?:FROM|image:) (\S+)", text):
        assert "." not in image.partition("/")[0].partition(":")[0], image


def test_v8_no_secret_is_written_down() -> None:
    for service in compose()["services"].values():
        for name, value in service.get("environment", {}).items():
            if re.search(r"SECRET|KEY|TOKEN|PASSWORD", name):
                assert re.fullmatch(r"\$\{\w+:\?[^}]+\}", value), name
    for entry in pod()["containers"][0]["env"]:
        if re.search(r"SECRET|KEY|TOKEN|PASSWORD", entry["name"]):
            assert "secretKeyRef" in entry["valueFrom"], entry["name"]
    found = {**unit_environment(), **image_environment(), **kubernetes()["ConfigMap"]["data"]}
    assert not [name for name in found if re.search(r"SECRET|KEY|TOKEN|PASSWORD", name)]
    assert "Secret" not in kubernetes()
    assert _text("Dockerfile.dockerignore").splitlines()[1] == "*"


def test_every_variable_is_one_that_perago_reads() -> None:
    known = set(VARIABLE.findall((ROOT / "docs/reference/environment.md").read_text()))
    foreign = {"CONDUCTOR_INTEGRATIONS_AI_ENABLED"}  # Conductor's own.
    for path in DEPLOY.iterdir():
        assert set(VARIABLE.findall(path.read_text())) <= known | foreign, path.name


def pins(name: str) -> dict[str, str]:
    text = (ROOT / "requirements" / name).read_text()
    return dict(re.findall(r"^([a-z][\w.-]*)==(\S+)", text, re.MULTILINE))


def test_the_spark_image_has_what_is_tested_and_java_beside_it() -> None:
    worker, spark, tested = pins("worker.txt"), pins("spark.txt"), pins("dev.txt")
    assert worker.items() < spark.items()
    assert {"pyspark", "pyarrow"} <= spark.keys() - worker.keys()
    assert {name: tested[name] for name in spark} == spark
    text = _text("Dockerfile")
    stages = re.findall(r"^FROM (\S+) AS (\w+)$", text, re.MULTILINE)
    assert stages[2:] == [("base", "spark"), ("base", "worker")]  # the last one is the usual one
    spark_stage = text.partition("FROM base AS spark")[2].partition("FROM base AS worker")[0]
    assert "openjdk-17" in spark_stage  # the oldest that Spark takes
    assert "java.check()" in spark_stage
    assert spark_stage.index("USER 0:0") < spark_stage.index("USER 10001:10001")


def test_the_spark_worker_differs_in_its_image_and_its_places_only() -> None:
    services = compose()["services"]
    worker, spark = services["worker"], services["spark-worker"]
    assert spark["profiles"] == ["spark"]
    assert spark["build"]["target"] == "spark"
    assert spark["build"]["args"] == {"PINS": "spark"}
    own = {"profiles", "image", "build", "command", "mem_limit", "ports", "volumes"}
    assert {key for key in spark if spark[key] != worker.get(key)} == own
    assert not {*worker["volumes"][1:]} & {*spark["volumes"]}  # two workers never share a root
    assert {entry.split(":")[0] for entry in spark["volumes"][1:]} <= compose()["volumes"].keys()


# --- privileges and room ------------------------------------------------------------------------


def test_no_worker_runs_as_root_or_may_become_it() -> None:
    service = unit()["Service"]
    assert service["DynamicUser"] == service["NoNewPrivileges"] == "yes"
    assert service["ProtectSystem"] == "strict"
    assert service["CapabilityBoundingSet"] == ""
    last_user = re.findall(r"^USER (\S+)", _text("Dockerfile"), re.MULTILINE)[-1]
    assert last_user == "10001:10001"
    inside = pod()["containers"][0]["securityContext"]
    assert inside["allowPrivilegeEscalation"] is False
    assert inside["readOnlyRootFilesystem"] is True
    assert inside["capabilities"] == {"drop": ["ALL"]}
    assert pod()["securityContext"]["runAsNonRoot"] is True
    assert pod()["securityContext"]["runAsUser"] == 10001
    assert pod()["automountServiceAccountToken"] is False
    worker = compose()["services"]["worker"]
    assert worker["read_only"] is True
    assert worker["cap_drop"] == ["ALL"]


def test_everything_a_worker_writes_is_in_a_place_it_may_write() -> None:
    """The root file system is read-only, so each directory is below something mounted."""
    named = {name: value for name, value in image_environment().items() if value.startswith("/")}
    places = [value for name, value in named.items() if name.startswith("PERAGO_")]
    assert len(places) == 4
    mounts = {mount["mountPath"]: mount["name"] for mount in pod()["containers"][0]["volumeMounts"]}
    volumes = {volume["name"]: volume["emptyDir"]["sizeLimit"] for volume in pod()["volumes"]}
    assert set(mounts.values()) == set(volumes)
    composed = [entry.split(":")[1] for entry in compose()["services"]["worker"]["volumes"]]
    for place in places:
        # Below, not at it: a mounted directory may be open to everybody, the one inside is not.
        assert any(place.startswith(f"{mount}/") for mount in mounts), place
        assert any(place.startswith(f"{mount}/") for mount in composed), place
    service = unit()["Service"]
    for name, kind in (
        ("StateDirectory", "lib"),
        ("CacheDirectory", "cache"),
        ("LogsDirectory", "log"),
    ):
        assert service[f"{name}Mode"] == "0700"
        assert any(
            value.startswith(f"/var/{kind}/{service[name]}")
            for value in unit_environment().values()
        )


def test_kubernetes_leaves_room_for_the_cache_and_one_worker_at_a_time() -> None:
    volumes = {volume["name"]: volume["emptyDir"]["sizeLimit"] for volume in pod()["volumes"]}
    source = (ROOT / "src/perago/settings.py").read_text()
    default = re.search(r'"PERAGO_CACHE_MAX_SIZE", "(\w+)"', source)
    assert default
    limits = pod()["containers"][0]["resources"]["limits"]
    total = sum(int(size.removesuffix("Gi")) for size in volumes.values())
    assert int(limits["ephemeral-storage"].removesuffix("Gi")) > total
    assert int(volumes["cache"].removesuffix("Gi")) * 2**30 > parse_size(default[1])
    deployment, budget = kubernetes()["Deployment"], kubernetes()["PodDisruptionBudget"]
    assert budget["spec"]["selector"] == deployment["spec"]["selector"]
    assert budget["spec"]["maxUnavailable"] == 1
    assert deployment["spec"]["replicas"] > 1


@pytest.mark.parametrize("where", ["unit", "image"])
def test_no_place_of_a_worker_depends_on_a_home_that_its_user_may_not_have(
    where: str, tmp_path: Path
) -> None:
    """DynamicUser and unknown uids have ``/``; each place is below a directory that is given."""
    given = unit_environment() if where == "unit" else image_environment()
    found = load_settings({**given, "HOME": "/"}, tmp_path)
    places = (found.home, found.workspace_root, found.log_root, found.cache_root)
    for place in (*places, found.spark.scratch, found.spark.jars):
        assert str(place).startswith(("/var/lib/perago", "/var/cache/perago", "/var/log/perago"))
    if where == "image":  # Mounted volumes are open to everybody; what is below them is not.
        volumes = {Path(f"/var/{name}/perago") for name in ("lib", "cache", "log")}
        assert not volumes & {*places}
