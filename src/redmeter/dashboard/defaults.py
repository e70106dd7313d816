"""Defaults of the standalone page, and the names of its settings. Imports nothing."""

#: Where it is: on this machine alone, and at a port that nobody registered.
HOST, PORT = "127.0.0.1", 7380
#: How many ports are tried from there on if none is given.
PORTS = 50
#: Whether the store answers: paths that need no credentials; the last two are Prometheus'.
VITAL = ("/healthz", "/-/healthy", "/-/ready")
#: Environment variables of secrets, which must not stand in the list of processes.
TOKEN, USERS = "REDMETER_TOKEN", "REDMETER_USERS"
