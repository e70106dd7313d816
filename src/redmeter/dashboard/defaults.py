"""What the page on its own is told where nobody says else, and by which names. Imports nothing."""

#: Where it is: on this machine alone, and at a port that nobody registered.
HOST, PORT = "127.0.0.1", 7380
#: Ports that are tried from there on, where nobody says which.
PORTS = 50
#: Whether the store answers: paths that need no credentials; the last two are Prometheus'.
VITAL = ("/healthz", "/-/healthy", "/-/ready")
#: Environment variables of secrets, which must not stand in the list of processes.
TOKEN, USERS = "REDMETER_TOKEN", "REDMETER_USERS"
