"""The command: tools/soak."""
# ruff: noqa: T201

import argparse
import json
import secrets
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from types import FrameType

from soak import report
from soak.stage import STAGES, Stage
from support.binaries import BINARIES
from support.fleet import DEFAULT

#: How it ends: as told, with something wrong, broken off.
OK, WRONG, BROKEN_OFF = 0, 1, 130

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def arguments(words: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="tools/soak",
        description="Run writers, readers, cleaners, clock steps, restarts and failovers for a "
        "time, and check the sums at the end. Ends with 1 where something is wrong.",
    )
    add = parser.add_argument
    add("--seconds", type=float, default=120.0, help="how long, shared by the stages (120)")
    add("--stages", default=",".join(STAGES), help=f"which of {', '.join(STAGES)} (all)")
    add("--seed", default="", help="what the plan is made by; printed, to be given again")
    add("--server", default=DEFAULT, choices=BINARIES, help=f"what serves ({DEFAULT})")
    add("--json", action="store_true", help="print the result as JSON")
    add("--write", type=Path, metavar="PAGE", help="put the result into a page, as docs/soak.md")
    given = parser.parse_args(words)
    given.stages = [name.strip() for name in given.stages.split(",") if name.strip()]
    if unknown := sorted(set(given.stages) - set(STAGES)):
        parser.error(f"no stage is called {', '.join(unknown)}; there are {', '.join(STAGES)}")
    if given.seconds <= 0 or not given.stages:
        parser.error("a time and a stage are needed")
    given.seed = given.seed or secrets.token_hex(4)
    return given


def main(words: list[str] | None = None) -> int:
    """Run the stages, one after the other; return how it ended."""
    given = arguments(words)
    # Started in the background, we may have inherited that Ctrl-C is ignored.
    for number in SIGNALS:
        signal.signal(number, _break_off)
    home = Path(tempfile.mkdtemp(prefix="redmeter-soak-"))
    print(f"seed {given.seed}", file=sys.stderr)
    try:
        results = [_run(name, given, home) for name in given.stages]
    except KeyboardInterrupt:
        print("broken off: nothing is checked", file=sys.stderr)
        shutil.rmtree(home, ignore_errors=True)
        return BROKEN_OFF
    _tell(results, given)
    if any(result.wrong for result in results):
        print(f"the journals are in {home}", file=sys.stderr)
        return WRONG
    shutil.rmtree(home, ignore_errors=True)
    return OK


def _break_off(_: int, __: FrameType | None) -> None:
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)  # all is being ended already
    raise KeyboardInterrupt


def _run(name: str, given: argparse.Namespace, home: Path) -> report.Result:
    folder, started = home / name, time.monotonic()
    folder.mkdir()

    def say(text: str) -> None:
        print(f"{name} {time.monotonic() - started:6.1f} s: {text}", file=sys.stderr, flush=True)

    seconds = given.seconds / len(given.stages)
    say(f"begins, for {seconds:.0f} s")
    result = Stage(name, seconds, given.seed, folder, given.server, say).run()
    say(f"{result.ledger.events:,} events, {len(result.wrong)} things wrong")
    return result


def _tell(results: list[report.Result], given: argparse.Namespace) -> None:
    conditions = report.conditions(given.seconds, given.seed, given.server)
    text = f"{conditions}\n\n{report.table(results)}\n\n{report.faults(results)}"
    if given.json:
        told = [result.as_dict() for result in results]
        print(json.dumps({"conditions": conditions, "seed": given.seed, "stages": told}, indent=2))
    else:
        print(text)
    if given.write:
        report.write(given.write, f"\n{text}\n")
    for result in results:
        for one, times in Counter(result.wrong).items():
            often = f" ({times} times)" if times > 1 else ""
            print(f"WRONG in {result.stage}: {one}{often}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
