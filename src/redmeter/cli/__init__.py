"""The command `redmeter`: one thin module per group of commands, over recording and reading.

    app.py       the application, its options, how errors become exit codes
    output.py    tables, JSON and plain columns       chart.py    a series as columns of blocks
    asking.py    names, series, top                   keeping.py  clean, retention, doctor
    serving.py   up, stop                             place.py    where it is written that up runs
    replaying.py  replay                              messages.py  logs
    demonstrating.py  demo

Exit codes: 0 done, also where Ctrl-C is the way to end it (up, demo, --daemon, --follow,
--watch) · 1 not found, nothing to migrate, or doctor found something that fails · 2 wrong usage or
input · 3 the store cannot be used · 130 interrupted by Ctrl-C.
"""

from redmeter.cli.app import main

__all__ = ["main"]
