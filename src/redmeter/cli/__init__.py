"""The command `redmeter`: one thin module per group of commands, over recording and reading.

    app.py       the application, its options, how errors become exit codes
    output.py    tables, JSON and plain columns       chart.py    a series as columns of blocks
    asking.py    names, series, top                   keeping.py  clean, retention, doctor
    serving.py   up, stop                             place.py    where it is written that up runs
    replaying.py  replay                              messages.py  logs
    demonstrating.py  demo

Exit codes: 0 done, also where Ctrl-C is the way to end it (up, demo, --daemon, --follow,
--watch) · 1 not found, nothing to migrate, no hit in what was replayed, or doctor found
something that fails · 2 wrong usage or input · 3 the store cannot be used · 130 interrupted
by Ctrl-C.
"""

import contextlib
import sys


def main() -> None:
    """Run the command."""
    try:
        from redmeter.cli import app  # here, since it takes a while, in which there may be a Ctrl-C

        app.main()
    except KeyboardInterrupt:
        with contextlib.suppress(OSError):
            if sys.stderr:
                print("error: interrupted", file=sys.stderr)  # noqa: T201
        raise SystemExit(130) from None
