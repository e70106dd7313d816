"""PromQL by test scripts: those of the project, and Prometheus' own where they are at hand."""

import json
from pathlib import Path

import pytest

from promql.engine_tests.__main__ import main
from promql.engine_tests.runner import run_script
from support.realdata import FOLDER, NAMED

SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.test"))
PROMETHEUS = FOLDER / "prometheus" / "promqltest"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_every_evaluation_of_a_script_passes(script: Path) -> None:
    """Values, order, warnings and errors are as the script expects."""
    outcomes = run_script(script.read_text(encoding="utf-8"))
    assert len(outcomes) > 10
    assert [each for each in outcomes if each.status != "passed"] == []


LOADED = """
load 1m
  x_total{a="1"} 0+60x10
  x_total{a="2"} 0+120x10

"""


@pytest.mark.parametrize(
    "wrong",
    [
        'eval instant at 10m rate(x_total[5m])\n  {a="1"} 1.1\n  {a="2"} 2',
        'eval instant at 10m rate(x_total[5m])\n  {a="1"} 1',
        'eval instant at 10m rate(x_total[5m])\n  {a="1"} 1\n  {a="2"} 2\n  {a="3"} 3',
        'eval range from 0 to 1m step 1m x_total{a="1"}\n  x_total{a="1"} 0',
        'eval range from 0 to 1m step 1m x_total{a="1"}\n  x_total{a="1"} 0 60 120',
        'eval instant at 1m x_total{a="1"}\n  y{a="1"} 60',
        "eval instant at 10m absent(x_total)\n  expect info",
        "eval instant at 10m rate(x_total[5m])\n  expect fail",
        "eval instant at 10m rate(x_total[5m]\n  {} 1",
        "eval instant at 10m topk(NaN, x_total)\n  expect fail msg: another one",
        "eval instant at 10m quantile(2, x_total)\n  expect no_warn\n  {} Inf",
        "eval instant at 10m quantile(2, x_total)\n  expect warn msg: another one\n  {} Inf",
        'eval instant at 0 sort_desc(x_total)\n  expect ordered\n  x_total{a="2"} 0',
        "eval instant at 0 1\n  2",
        'eval instant at 0 "a"\n  expect string "b"',
        "eval instant at 0 vector(1)\n  {} {{schema:0 count:1}}",
    ],
)
def test_a_wrong_expectation_fails(wrong: str) -> None:
    """The runner finds each kind of difference."""
    (outcome,) = run_script(LOADED + wrong)
    assert outcome.status == "failed"
    assert outcome.problem


def test_series_with_starts_of_counters_are_read() -> None:
    """Evaluations that read them need a feature; the others are evaluated."""
    script = """
load 1m
  y_total{a="1"}@st _ -30s-1mx2
  y_total{a="1"} _ 0+60x2
  y_total{a="2"} 0+60x3

 eval instant at 3m increase(y_total[2m1ms])
  {a="2"} 120

eval instant at 3m y_total{a="2"}
  y_total{a="2"} 180
"""
    assert [(each.status, each.problem) for each in run_script(script)] == [
        ("unsupported", "start-timestamps"),
        ("passed", ""),
    ]


def test_the_command_reports_failures_with_their_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 1, the file and line, what was expected and what was the answer."""
    script = tmp_path / "wrong.test"
    script.write_text("eval instant at 0 1+1\n  3\n\neval instant at 0 start()\n  0\n")
    assert main([str(script)]) == 1
    printed = capsys.readouterr().out
    assert f"{script}:1: failed: 1+1\n    expected [3.0], got 2.0" in printed
    assert f"{script}:4: unsupported: start()\n    promql-experimental-functions" in printed
    assert "all: 0 passed, 1 failed, 1 unsupported" in printed
    assert main([str(script), "--json"]) == 1
    assert [each["status"] for each in json.loads(capsys.readouterr().out)] == [
        "failed",
        "unsupported",
    ]


def test_the_command_accepts_a_script_that_passes() -> None:
    """Exit code 0."""
    assert main([str(script) for script in SCRIPTS]) == 0


def test_a_script_that_is_none_is_refused(tmp_path: Path) -> None:
    """Exit code 2."""
    script = tmp_path / "broken.test"
    script.write_text("evaluate 1\n")
    assert main([str(script)]) == 2
    assert main([str(tmp_path / "missing.test")]) == 2


@pytest.mark.realdata
def test_prometheus_own_scripts_pass() -> None:
    """Everything that is stable passes; the rest needs a named feature."""
    scripts = sorted(PROMETHEUS.glob("*.test"))
    if not scripts:
        pytest.skip(f"missing: {PROMETHEUS}: set {NAMED} to the folder that holds it")
    outcomes = [each for path in scripts for each in run_script(path.read_text(encoding="utf-8"))]
    assert len(outcomes) == 995
    assert [each for each in outcomes if each.status == "failed"] == []
    needed = {each.problem for each in outcomes if each.status == "unsupported"}
    assert needed == {
        "custom-buckets",
        "promql-binop-fill-modifiers",
        "promql-experimental-functions",
    }
