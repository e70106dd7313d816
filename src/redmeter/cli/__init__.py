"""The command `redmeter`: one thin module per group of commands, over recording and reading.

    app.py       the application, its options
    failure.py   how errors become messages, exit codes and JSON
    output.py    tables, JSON and plain columns       chart.py    a series as columns of blocks
    asking.py    names, series, top                   keeping.py  clean, retention, doctor
    serving.py   up, stop                             place.py    where it is written that up runs
    replaying.py  replay                              messages.py  logs
    demonstrating.py  demo

Exit codes: 0 done, also where Ctrl-C is the way to end it (up, demo, --daemon, --follow,
--watch), and where nothing failed (top --failing) or was logged (logs) · 1 not found, no hit in
what was replayed, or doctor found something that fails · 2 wrong usage or input · 3 the store
cannot be used · 130 interrupted by Ctrl-C.
"""

from redmeter import interrupts


def main() -> None:
    """Run the command."""
    interrupts.end_at_once()  # before the imports below, which take a while
    from redmeter.cli import app

    app.main()
