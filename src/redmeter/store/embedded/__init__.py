"""The embedded server: a real Valkey or Redis of the user's own, started when it is needed.

Problem: metrics should work after ``pip install``, with no server to set up, and many processes
of one user should see the same data. Idea: one data directory is one server. A process that needs
it calls ensure(); the first one starts it, the others join. None of them owns it: it outlives them
all, and a small supervisor process ends it once no client was connected for a while.

    your process ──ensure()──> supervisor ──> valkey-server
         └──────── unix socket ───────────────────┘

    paths.py                         where files and socket are; which server program
    launcher.py                      start, join, look, stop: in your process
    files.py                         the files and the socket: on both sides
    __main__.py  supervisor.py       the process that owns the server, its child

In the data directory: ``supervisor.lock`` (locked: somebody cares), ``server.lock`` (locked:
the data are in use), ``server.json`` (what runs), ``server.version`` (what wrote the data),
``server.log`` and ``server.log.1`` (at most about 2 MB), ``appendonlydir/``; and of the command
``up-*.lock`` and ``up-*.log``, see cli/lock.py.

Not done: Windows; TCP; a server shared by several machines or by several users.
"""

from redmeter.store.embedded.launcher import IDLE_TIMEOUT, Info, ensure, exists, make, running, stop
from redmeter.store.embedded.paths import candidate, default_path, find_binary

__all__ = [
    "IDLE_TIMEOUT",
    "Info",
    "candidate",
    "default_path",
    "ensure",
    "exists",
    "find_binary",
    "make",
    "running",
    "stop",
]
