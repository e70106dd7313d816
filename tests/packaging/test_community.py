"""The files that a code host reads: workflows, forms, and the configuration of hooks."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

ROOT = Path(__file__).parents[2]
HOST = ROOT / ".github"
WORKFLOWS = sorted((HOST / "workflows").glob("*.yml"))
FORMS = sorted(path for path in (HOST / "ISSUE_TEMPLATE").glob("*.yml") if path.stem != "config")
#: Schema of check-jsonschema -> files.
SCHEMAS = {
    "github-workflows": WORKFLOWS,
    "github-issue-forms": FORMS,
    "github-issue-config": [HOST / "ISSUE_TEMPLATE" / "config.yml"],
    "dependabot": [HOST / "dependabot.yml"],
}


def valid(schema: str, *files: Path) -> subprocess.CompletedProcess[str]:
    """Hold files against a schema that check-jsonschema brings."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}"]
    return subprocess.run([*command, *map(str, files)], capture_output=True, text=True)


def zizmor(folder: Path) -> subprocess.CompletedProcess[str]:
    """Audit workflows, offline."""
    program = Path(sys.executable).with_name("zizmor")
    command = [str(program), "--offline", "--pedantic", "--no-progress", str(folder)]
    return subprocess.run(command, capture_output=True, text=True)


def runs(workflow: Path) -> str:
    """Return the commands of a workflow."""
    jobs: dict[str, Any] = yaml.safe_load(workflow.read_text(encoding="utf-8"))["jobs"]
    return "\n".join(step.get("run", "") for job in jobs.values() for step in job["steps"])


@pytest.mark.parametrize("schema", SCHEMAS)
def test_files_of_the_host_have_their_schema(schema: str) -> None:
    """As the host itself reads them."""
    done = valid(schema, *SCHEMAS[schema])
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_file_that_breaks_its_schema_is_found(tmp_path: Path) -> None:
    """The check above can fail."""
    broken = tmp_path / "ci.yml"
    broken.write_text(WORKFLOWS[0].read_text().replace("runs-on:", "runs:"))
    assert valid("github-workflows", broken).returncode == 1


def test_workflows_pass_an_audit(tmp_path: Path) -> None:
    """No finding, not even an informational one; one with a broad permission has some."""
    done = zizmor(HOST)
    assert done.returncode == 0, done.stdout
    folder = tmp_path / ".github" / "workflows"
    folder.mkdir(parents=True)
    text = WORKFLOWS[0].read_text().replace("permissions: {}", "permissions: write-all")
    (folder / "ci.yml").write_text(text)
    assert zizmor(folder.parent).returncode != 0


def test_workflows_call_what_there_is() -> None:
    """Targets of the Makefile and scripts; the matrix has each Python of the classifiers."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    text = "\n".join(map(runs, WORKFLOWS))
    targets = re.findall(r"\bmake (\w+)", text)
    assert {"docs", "quick", "build"} <= set(targets)
    assert [target for target in targets if f"\n{target}:" not in makefile] == []
    scripts = re.findall(r"(?:^|\s)((?:\.ci|tools)/[\w.]+)", text)
    assert scripts
    assert [script for script in scripts if not (ROOT / script).is_file()] == []
    matrix = yaml.safe_load((HOST / "workflows" / "ci.yml").read_text())["jobs"]["python"][
        "strategy"
    ]
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert matrix["matrix"]["python"] == re.findall(r":: Python :: (3\.\d+)", project)


def test_only_the_step_that_publishes_may_ask_for_an_identity() -> None:
    """And nothing has a stored secret."""
    for workflow in WORKFLOWS:
        text = workflow.read_text(encoding="utf-8")
        assert "secrets." not in text
        jobs = yaml.safe_load(text)["jobs"]
        asking = [name for name, job in jobs.items() if "id-token" in job["permissions"]]
        assert asking == [name for name, job in jobs.items() if "environment" in job]


def test_hooks_run_programs_of_the_environment() -> None:
    """In the versions of CI; the scripts that they call exist."""
    (repo,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    for hook in repo["hooks"]:
        program, *words = hook["entry"].split()
        assert Path(sys.executable).with_name(Path(program).name).exists(), program
        assert [word for word in words if "/" in word and not (ROOT / word).exists()] == []
