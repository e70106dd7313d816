"""Containers: no image can be built here; files are linted, and commands run in clean folders."""

import fnmatch
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from support.programs import Programs
from support.servers import Server, free_port
from support.waiting import eventually

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
DOCKERFILES = sorted(DEPLOY.glob("*Dockerfile"))
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
MANIFESTS = [*yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text(encoding="utf-8"))]


def program(name: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a program of the environment."""
    command = [str(Path(sys.executable).with_name(name)), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


def instructions(file: Path, word: str) -> list[str]:
    """Return the instructions of a Dockerfile that begin with a word, continued lines joined."""
    text = re.sub(r"\\\n\s*", "", file.read_text(encoding="utf-8"))
    return re.findall(rf"^{word} +(.*)$", text, re.MULTILINE)


@pytest.mark.parametrize("file", DOCKERFILES, ids=lambda file: file.name)
def test_dockerfiles_pass_hadolint_and_run_as_nobody(file: Path, tmp_path: Path) -> None:
    """Several stages, a user by number, a health check; one that runs as root has a finding."""
    done = program("hadolint", file)
    assert done.returncode == 0, done.stdout
    assert len(instructions(file, "FROM")) == 2
    assert re.fullmatch(r"\d+:\d+", instructions(file, "USER")[-1])
    assert "HEALTHCHECK" in file.read_text(encoding="utf-8")
    broken = tmp_path / "Dockerfile"
    broken.write_text(file.read_text().replace(instructions(file, "USER")[-1], "root"))
    assert program("hadolint", broken).returncode == 1


def test_the_compose_file_has_its_schema_and_opens_ports_on_loopback_only() -> None:
    """Each service is hardened, and mounts files that exist."""
    done = program(
        "check-jsonschema", "--builtin-schema", "vendor.compose-spec", DEPLOY / "compose.yaml"
    )
    assert done.returncode == 0, done.stdout
    assert {"valkey", "redmeter", "shop", "prometheus", "grafana"} <= set(COMPOSE["services"])
    for service in COMPOSE["services"].values():
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]
        assert [
            port for port in service.get("ports", ()) if not port.startswith("127.0.0.1:")
        ] == []
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            assert source in COMPOSE["volumes"] or (DEPLOY / source).is_file(), source
        if build := service.get("build"):
            assert (DEPLOY / build["context"] / build["dockerfile"]).is_file()


@pytest.mark.skipif(
    shutil.which("docker") is None, reason="needs the program docker, not its daemon"
)
def test_compose_itself_reads_the_file() -> None:
    """Where it is installed; it asks for a token."""
    if subprocess.run(["docker", "compose", "version"], capture_output=True).returncode:
        pytest.skip("docker has no compose")
    command = [
        "docker",
        "compose",
        "-f",
        str(DEPLOY / "compose.yaml"),
        "config",
        "--format",
        "json",
    ]
    environ = {name: text for name, text in os.environ.items() if name != "REDMETER_TOKEN"}
    done = subprocess.run(command, env=environ, capture_output=True, text=True)
    assert "choose a token" in done.stderr
    environ["REDMETER_TOKEN"] = "t"
    done = subprocess.run(command, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["services"].keys() == COMPOSE["services"].keys()


def test_manifests_of_kubernetes_have_their_schema(tmp_path: Path) -> None:
    """In the newest version that the validator knows; PodMonitor belongs to an operator."""
    manifests = tmp_path / "known.yaml"
    known = [one for one in MANIFESTS if one["kind"] != "PodMonitor"]
    assert [one["kind"] for one in known] == ["Deployment", "Service", "CronJob"]
    manifests.write_text(yaml.safe_dump_all(known))
    assert program("kubernetes-validate", "--strict", manifests).returncode == 0
    known[0]["spec"]["template"]["spec"]["containers"][0]["readOnlyRootFilesystem"] = True
    manifests.write_text(yaml.safe_dump_all(known))
    assert program("kubernetes-validate", "--strict", manifests).returncode == 1


def test_manifests_fit_together() -> None:
    """Selectors, ports, and names of secrets; containers cannot write to their own files."""
    deployment, service, job, monitor = MANIFESTS
    pod = deployment["spec"]["template"]
    labels = pod["metadata"]["labels"]
    assert labels == service["spec"]["selector"] == monitor["spec"]["selector"]["matchLabels"]
    (container,) = pod["spec"]["containers"]
    ports = {port["name"] for port in container["ports"]}
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert {endpoint["port"], service["spec"]["ports"][0]["targetPort"]} <= ports
    (secret,) = (source["secretRef"]["name"] for source in container["envFrom"])
    credentials = endpoint["authorization"]["credentials"]
    assert credentials == {"name": secret, "key": "REDMETER_TOKEN"}
    (worker,) = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    for each in (container, worker):
        assert each["securityContext"]["readOnlyRootFilesystem"]
        assert not each["securityContext"]["allowPrivilegeEscalation"]


def test_the_script_of_the_cron_job_runs(server: Server, tmp_path: Path) -> None:
    """In a shell that ends with the first error; both values are stored."""
    (worker,) = MANIFESTS[2]["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    folder = Path(sys.executable).parent
    environ = {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "HOME": str(tmp_path)}
    environ |= {"REDMETER_URL": server.url, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(worker["command"], env=environ, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    shown = subprocess.run(
        ["redmeter", "names", "--json"], env=environ, capture_output=True, text=True
    ).stdout
    names = {row["name"] for row in json.loads(shown)["names"]}
    assert names == {'nightly_lines{job="nightly"}', "nightly_last_success"}


def ignored() -> Callable[[str, list[str]], list[str]]:
    """Return a function for copytree that leaves out what .dockerignore leaves out."""
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    kept = {line[1:] for line in lines if line[0] == "!"}
    dropped = [line for line in lines if line[0] != "!" and line != "*"]

    def ignore(folder: str, names: list[str]) -> list[str]:
        below = Path(folder).relative_to(ROOT)
        paths = {name: str(below / name) for name in names}
        return [
            name
            for name, path in paths.items()
            if (below == Path() and name not in kept)
            or any(fnmatch.fnmatch(f"/{path}", f"*/{line.removeprefix('**/')}") for line in dropped)
        ]

    return ignore


@pytest.mark.nightly
def test_the_commands_of_the_image_work_in_clean_folders(server: Server, tmp_path: Path) -> None:
    """Each RUN, then the entry point and the health check: what a build would do, without one.

    The page is built from its sources, and nothing is fetched in the second stage.
    """
    source, wheels, venv = tmp_path / "source", tmp_path / "wheels", tmp_path / "venv"
    shutil.copytree(ROOT, source, ignore=ignored())
    assert not (source / "src" / "redmeter" / "dashboard" / "static").exists()
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    file = DEPLOY / "Dockerfile"
    for command in instructions(file, "RUN"):
        command = re.sub(r"--mount=\S+ ", "", command).replace("/wheels", str(wheels))
        shell = re.sub(r"^python ", f"{venv}/bin/python ", command)
        done = subprocess.run(["sh", "-euc", shell], cwd=source, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    shutil.rmtree(source)
    port = free_port()
    words = json.loads(instructions(file, "ENTRYPOINT")[0]) + json.loads(
        instructions(file, "CMD")[0]
    )
    words = [{"0.0.0.0": "127.0.0.1", "7380": str(port)}.get(word, word) for word in words]
    check = json.loads(instructions(file, r"HEALTHCHECK .*CMD")[0])
    check = [
        str(venv / "bin" / "python"),
        *(word.replace(":7380", f":{port}") for word in check[1:]),
    ]
    home: dict[str, Any] = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}
    environ = home | {"REDMETER_URL": server.url, "PYTHONPATH": ""}
    with Programs(tmp_path, server.url) as programs:
        page = programs.command(str(venv / "bin" / words[0]), *words[1:], env=environ)
        eventually(lambda: subprocess.run(check, capture_output=True).returncode == 0, 60.0)
        page.send(signal.SIGTERM)
        assert page.finish().code == 0
    assert subprocess.run(check, capture_output=True).returncode != 0
