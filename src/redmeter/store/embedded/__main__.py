"""Run the supervisor: python -I -S …/redmeter/store/embedded/__main__.py ARGUMENTS

Problem: `python -m redmeter.store.embedded` would first import redmeter and redmeter.store, and
with them the client library: 20 MB and 100 ms of a process that needs none of it. Idea: this file
is run by its path and puts empty packages where those would be, which know only their folder; so
the absolute imports of the supervisor's modules work, and load nothing else.
"""
# ruff: noqa: PTH120  no pathlib: see files.py

import os
import sys


def _run() -> None:
    """Put the packages there and run."""
    folder = os.path.dirname(__file__)
    for name in ("redmeter.store.embedded", "redmeter.store", "redmeter"):
        package = type(sys)(name)
        package.__path__ = [folder]
        sys.modules[name] = package
        folder = os.path.dirname(folder)
    from redmeter.store.embedded.supervisor import run_supervisor

    run_supervisor(sys.argv[1:])


if __name__ == "__main__":
    _run()
