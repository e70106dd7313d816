"""Web servers in processes of their own, and what was stored of what they answered."""

import sys
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from redmeter.names import parse_name
from support.applications import COUNTED_STARLETTE, DJANGO, FLASK, ROUTES, STARLETTE_ROUTES
from support.load import Load
from support.programs import Program, Programs


class Served(NamedTuple):
    """An application, and how it is served."""

    code: str
    #: Path -> route by which it counts.
    routes: Mapping[str, str]
    #: The server's module and its options, but for the port.
    command: tuple[str, ...]
    env: Mapping[str, str] = {}
    #: What the server is given to serve.
    target: str = "application:app"

    def start(self, programs: Programs, port: int, **env: str) -> Program:
        """Start the server; it flushes once a minute, and at its end."""
        programs.write("application.py", self.code)
        server, *options = self.command
        address = f"127.0.0.1:{port}"
        places = {
            "uvicorn": ("--port", str(port)),
            "gunicorn": ("--bind", address, "--worker-tmp-dir", str(programs.folder)),
            "waitress": ("--listen", address),
        }
        store = {"REDMETER_URL": programs.url, "REDMETER_FLUSH_INTERVAL": "60"}
        return programs.command(
            *(sys.executable, "-m", server, *options, *places[server], self.target),
            env={**store, **self.env, **env},
        )

    def answered(self, load: Load) -> Counter[tuple[str, str]]:
        """Return what the client saw: (route, status) -> how many."""
        return Counter((self.routes[one.path], f"{one.status // 100}xx") for one in load.answered)


def stored(conn: Any) -> Counter[tuple[str, str]]:
    """Return what is stored: (route, status) -> how many."""
    found: Counter[tuple[str, str]] = Counter()
    for name, count in conn.hgetall("redmeter:total:").items():
        parsed = parse_name(name.decode())
        if parsed.base == "http_requests":
            assert parsed.label("method") == "GET"
            found[str(parsed.label("route")), str(parsed.label("status"))] += int(count)
    return found


def uvicorn(workers: int) -> Served:
    """Return an application of Starlette's under uvicorn."""
    # A busy machine may need longer for a new worker than uvicorn's 5 s; then it aborts the reload.
    # uvicorn handles no signal for as long if a worker is killed right before it would answer:
    # this is less than Programs wait for an end.
    patience = ("--timeout-worker-healthcheck", "20")
    command = ("uvicorn", "--workers", str(workers), "--log-level", "critical", *patience)
    return Served(COUNTED_STARLETTE, STARLETTE_ROUTES, command)


def gunicorn(*options: str, code: str = FLASK) -> Served:
    """Return an application of Flask's, or another one, under gunicorn with two workers."""
    return Served(code, ROUTES, ("gunicorn", "--workers", "2", "--log-level", "critical", *options))


def waitress() -> Served:
    """Return one under waitress. It knows nothing of SIGTERM, so the application flushes then."""
    return Served(f"{FLASK}\nredmeter.meter.flush_on_sigterm()", ROUTES, ("waitress",))


def waitress_from_env() -> Served:
    """Return one whose code knows nothing of metrics, loaded by the factory."""
    code, env = FLASK.replace("redmeter = Redmeter(app)", ""), {"REDMETER_APP": "application:app"}
    target = "redmeter.integrations.wsgi:from_env"
    return Served(code, ROUTES, ("waitress", "--call"), env, target)


def django_in_uvicorn() -> Served:
    """Return an application of Django's under uvicorn, with two workers."""
    return uvicorn(2)._replace(code=DJANGO, routes=ROUTES, env={"ASGI": "1"})
