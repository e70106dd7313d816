"""The command `redmeter`: one module per command or group, over recording and reading.

    app.py       the application, its options, and which module each command is loaded from:
    names.py     names                                series.py    series
    forecast.py  summary.py  top.py  logs.py
    up.py        up, stop                             lock.py      which process `up` is
    marks.py     mark                                 maintenance.py  clean, retention, doctor
    diagnosis.py status, explain                      verdict.py   verdict
    replay.py    replay                               demo.py      demo
    record.py    count, set, observe                  migrate.py   migrate
    completion.py  what a shell offers for names, labels and marks
    failure.py   how errors become messages, exit codes and JSON
    output.py    tables, JSON and plain columns       chart.py     a series as columns of blocks

Without its packages, which the extra `standard` brings, it prints the command that installs them.

Exit codes: 0 success, including Ctrl-C for commands that run until then (up, demo, --daemon,
--follow, --watch), and no result of top --failing, logs or exceptions · 1 nothing found, no request
in the replayed log, a line that count, set or observe cannot record, or a check of doctor fails · 2
wrong usage or input · 3 the store cannot be used · 130 interrupted by Ctrl-C. verdict has its own:
1 worse and only then, 3 too little data, 4 the store cannot be used, 70 a bug.
"""

import sys

from redmeter import interrupts
from redmeter.errors import MissingExtra
from redmeter.extras import needs


def main() -> None:
    """Run the command."""
    interrupts.end_at_once()  # before the imports below, which take a while
    try:
        with needs("standard", "the command"):
            from redmeter.cli import app

            app.run_command()
    except MissingExtra as error:
        sys.exit(missing(error))


def missing(error: MissingExtra) -> int:
    """Print an error without the packages that print others; return the exit code."""
    sys.stderr.write(f"error: {error}\n")
    return 2
