"""What counting requests adds to them, next to exporters for Prometheus. Rows for run.py.

Applications are called in this process, without sockets, with routes as a small shop has them. All
sides take turns, and what one adds is its time less that of the bare application in the same turn.

The exporters are those of the extra `bench`; rows whose exporter is not there are left out.

Nothing of Redmeter or redis-py is imported before it is needed: web_memory.py measures the memory
of these applications without either.
"""

import gc
import importlib.util
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from table import Row, micro, sized

if TYPE_CHECKING:
    import redis

    from redmeter import Meter

#: Calls of one turn, and turns.
CALLS, TURNS = sized(2_000, 20), sized(15, 1)
#: Routes of the shop; asked for is the one in the middle.
ROUTES = [f"/part{number}/{{id}}" for number in range(11)]
PATH = ROUTES[5].replace("{id}", "7")

#: Makes the seconds that one call takes, over so many of them.
Timed = Callable[[int], float]


def compared(what: str, sides: Mapping[str, Timed], target: str = "<= 0.5") -> Row:
    """Return the row of what our middleware adds, and the better one of all others.

    Args:
        sides: name -> how it is timed; among them "bare" and "ours".
    """
    others = [name for name in sides if name not in ("bare", "ours")]
    for timed in sides.values():
        timed(sized(200, 5))
    rounds: list[dict[str, float]] = []
    for _ in range(TURNS):
        gc.collect()
        rounds.append({name: timed(CALLS) for name, timed in sides.items()})
    added = {
        name: statistics.median(each[name] - each["bare"] for each in rounds)
        for name in ("ours", *others)
    }
    best = min(others, key=added.__getitem__)
    ratio = statistics.median(
        (each["ours"] - each["bare"]) / (each[best] - each["bare"]) for each in rounds
    )
    bare = statistics.median(each["bare"] for each in rounds)
    rest = "".join(f", {name} {micro(added[name])}" for name in others if name != best)
    floor = f"other: {best}{rest}; bare application {micro(bare)}"
    return Row(what, micro(added["ours"]), micro(added[best]), ratio, target, floor)


def missing(*modules: str) -> bool:
    """Tell whether modules are not installed, and say so."""
    absent = [name for name in modules if importlib.util.find_spec(name) is None]
    if absent:
        print(f"left out: {', '.join(absent)} (pip install '.[bench]')", file=sys.stderr)
    return bool(absent)


# ---------------------------------------------------------------- ASGI


def starlette_app() -> Any:
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    def answering() -> Any:
        async def answer(_request: object) -> PlainTextResponse:
            return PlainTextResponse("hello")

        return answer

    return Starlette(routes=[Route(route, answering()) for route in ROUTES])


def fastapi_app() -> Any:
    from fastapi import FastAPI
    from fastapi.responses import PlainTextResponse

    app = FastAPI()

    def answering() -> Any:
        async def answer(id: int) -> PlainTextResponse:  # noqa: A002 - as the route calls it
            return PlainTextResponse(f"hello {id}")

        return answer

    for route in ROUTES:
        app.get(route)(answering())
    return app


def with_ours(app: Any, meter: "Meter") -> Any:
    from redmeter.integrations.asgi import RedmeterMiddleware

    app.add_middleware(RedmeterMiddleware, meter=meter)
    return app


def with_starlette_exporter(app: Any) -> Any:
    app.add_middleware(importlib.import_module("starlette_exporter").PrometheusMiddleware)
    return app


def with_instrumentator(app: Any) -> Any:
    module = importlib.import_module("prometheus_fastapi_instrumentator")
    module.Instrumentator().instrument(app)
    return app


async def _receive() -> dict[str, Any]:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _send(_message: object) -> None:
    pass


def asgi(app: Any) -> Timed:
    """Return what times an ASGI application, within one event loop for each turn."""
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": PATH,
        "raw_path": PATH.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(b"host", b"shop.example"), (b"user-agent", b"bench")],
        "client": ("127.0.0.1", 50000),
        "server": ("127.0.0.1", 80),
    }

    async def ask(calls: int) -> float:
        started = time.perf_counter()
        for _ in range(calls):
            await app({**scope, "state": {}}, _receive, _send)
        return (time.perf_counter() - started) / calls

    import asyncio  # not for WSGI: web_memory.py

    return lambda calls: asyncio.run(ask(calls))


def asgi_rows(_conn: "redis.Redis", url: str) -> Iterator[Row]:
    """What a request of an ASGI application takes longer."""
    from redmeter import Meter

    if missing("starlette_exporter", "prometheus_fastapi_instrumentator"):
        return
    for name, made in (("Starlette", starlette_app), ("FastAPI", fastapi_app)):
        with Meter(url) as meter:
            sides = {
                "bare": asgi(made()),
                "ours": asgi(with_ours(made(), meter)),
                "starlette_exporter": asgi(with_starlette_exporter(made())),
                "instrumentator": asgi(with_instrumentator(made())),
            }
            yield compared(f"added to a request, {name}", sides)


ROWS = {"asgi": asgi_rows}
