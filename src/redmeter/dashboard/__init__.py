"""The dashboard: a page and its JSON, on its own or mounted in an application.

    from redmeter.dashboard import Dashboard

    app.mount("/metrics", Dashboard(meter, access=lambda request: request.user.is_staff))

Its packages, which the extra `page` brings, are imported by the first use of that name.
"""

from typing import TYPE_CHECKING, Any

from redmeter.extras import needs

if TYPE_CHECKING:
    from redmeter.dashboard.app import Dashboard as Dashboard

__all__ = ["Dashboard"]

# Defaults of the page on its own, and the names of its settings.
#: Where it is: on this machine alone, and at a port that nobody registered.
HOST, PORT = "127.0.0.1", 7380
#: How many ports are tried from there on if none is given.
PORTS = 50
#: Environment variables of secrets, which must not stand in the list of processes.
TOKEN, USERS = "REDMETER_TOKEN", "REDMETER_USERS"


def __getattr__(name: str) -> Any:
    if name == "Dashboard":
        with needs("page", "the dashboard"):
            from redmeter.dashboard.app import Dashboard

        return Dashboard
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
