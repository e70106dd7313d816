"""PYTHONPATH=tests python -m promql.engine_tests FILE… [--json]

Runs PromQL test scripts, prints each failure with its line, and exits with 1 if there is one.
"""

import argparse
import json
import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path

from promql.engine_tests.runner import Outcome, run_script
from redmeter.promql.errors import QueryError


def main(arguments: list[str] | None = None) -> int:
    """Run the scripts that the arguments name; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m promql.engine_tests", description="Run PromQL test scripts."
    )
    parser.add_argument("file", nargs="+", type=Path)
    parser.add_argument("--json", action="store_true", help="print every outcome as JSON")
    parser.add_argument(
        "--no-delayed-name-removal",
        action="store_true",
        help="remove metric names at once, as Prometheus does without its feature flag",
    )
    options = parser.parse_args(arguments)
    outcomes: dict[Path, list[Outcome]] = {}
    for file in options.file:
        try:
            outcomes[file] = run_script(
                file.read_text(encoding="utf-8"),
                delayed_name_removal=not options.no_delayed_name_removal,
            )
        except (OSError, QueryError) as error:
            sys.stderr.write(f"{file}: {error}\n")
            return 2
    if options.json:
        listed = [
            {"file": str(file), **asdict(outcome)}
            for file, results in outcomes.items()
            for outcome in results
        ]
        sys.stdout.write(json.dumps(listed, indent=1) + "\n")
    else:
        sys.stdout.write(report(outcomes))
    failed = any(each.status == "failed" for results in outcomes.values() for each in results)
    return 1 if failed else 0


def report(outcomes: dict[Path, list[Outcome]]) -> str:
    """Return the failures, the unsupported evaluations and a summary."""
    lines = []
    for status in ("unsupported", "failed"):
        for file, results in outcomes.items():
            for each in results:
                if each.status == status:
                    lines.append(f"{file}:{each.line}: {status}: {each.query}")
                    lines.append(f"    {each.problem}")
    every = [each for results in outcomes.values() for each in results]
    for file, results in outcomes.items():
        lines.append(f"{file}: {_counts(results)}")
    lines.append(f"floats: {_counts([each for each in every if not each.histograms])}")
    lines.append(f"native histograms: {_counts([each for each in every if each.histograms])}")
    lines.append(f"all: {_counts(every)}")
    needed = Counter(each.problem for each in every if each.status == "unsupported")
    lines += [f"needs {feature}: {count}" for feature, count in sorted(needed.items())]
    return "\n".join(lines) + "\n"


def _counts(outcomes: list[Outcome]) -> str:
    counts = Counter(each.status for each in outcomes)
    return ", ".join(f"{counts[status]} {status}" for status in ("passed", "failed", "unsupported"))


if __name__ == "__main__":
    sys.exit(main())
