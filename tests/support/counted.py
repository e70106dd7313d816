"""What tests of web frameworks share: what was counted of requests, and the case of all of them."""

from collections.abc import Callable
from typing import Any

from redmeter.integrations.asgi import RedmeterMiddleware
from redmeter.names import parse_name
from redmeter.testing import MemoryMeter
from support.asgi import ask

#: Method, path, and what is expected: route and status.
Case = tuple[str, str, str, int]

#: Where the middleware hangs: it is the application's own, or stands around it.
HUNG = ("within", "around")


def recorded(meter: MemoryMeter) -> tuple[str | None, ...]:
    """Return method, route and status of the one kind of request that was counted."""
    (name,) = (each for each in meter.names() if each.startswith("http_requests"))
    parsed = parse_name(name)
    return tuple(parsed.label(key) for key in ("method", "route", "status"))


def check_counted(made: Callable[[], Any], meter: MemoryMeter, case: Case, hung: str) -> None:
    """Check that a request is counted by the template of its route, and answered as without us.

    Args:
        made: makes the application.
        hung: see HUNG.
    """
    method, path, route, status = case
    bare = ask(made(), path, method)
    app = made()
    if hung == "within":
        app.add_middleware(RedmeterMiddleware, meter=meter, exact_status=True)
    else:
        app = RedmeterMiddleware(app, meter, exact_status=True)
    for _ in range(2):  # by a route that is not known yet, and by one that is
        answered = ask(app, path, method)
        assert answered.status == bare.status == status
        assert answered.body == bare.body
    known = method if method != "PROPFIND" else "_OTHER"
    assert recorded(meter) == (known, route, str(status))
    assert meter.recorded("hits") == 2
