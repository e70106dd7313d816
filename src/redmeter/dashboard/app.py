"""Dashboard: the ASGI application, standalone or mounted. Its API is in api.py.

    /               the page           /api/…     JSON, see openapi.json
    /assets/…       its files          /healthz   whether Redis is reachable, without a login
    /api/v1/…       Prometheus' HTTP API, see prometheus.py; /metrics, to be scraped

All paths are relative to the mount point, and so are the requests of the page.
"""

import asyncio
import contextlib
import os
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Iterable
from functools import partial
from http import HTTPStatus
from time import monotonic
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from redmeter import store as stores
from redmeter.dashboard.access import Given, check_access
from redmeter.dashboard.api import endpoints as api
from redmeter.dashboard.api import prometheus
from redmeter.dashboard.api.endpoints import ENDPOINTS
from redmeter.dashboard.api.parameters import Endpoint, check_order_of_times, parse_query
from redmeter.dashboard.api.prometheus import PrometheusAPI
from redmeter.dashboard.api.serialize import as_json
from redmeter.dashboard.cache import MAX_ANSWER_BYTES, AnswerCache, Body
from redmeter.dashboard.errors import HTTPError, http_error_of
from redmeter.dashboard.files import Files, no_such
from redmeter.dashboard.guard import (
    ALIVE,
    HEADERS,
    VITAL,
    Guard,
    Hosts,
    error_response,
    refusal,
    route_path,
)
from redmeter.errors import RedmeterError
from redmeter.extras import needs
from redmeter.queries import Queries
from redmeter.store import Store

#: How long an answer is shared, seconds: for precisions below a minute, which show events soon, and
#: for others.
KEEP_FINE, KEEP = 0.2, 3.0
#: What open pages repeat, every 10 s or more rarely, is shared so many times as long: by all who
#: watch, each from another moment on.
REPEATED = 3.2
_REPEATED_PATHS = frozenset({"/api/overview", "/api/status", "/api/alerts", "/api/views"})
#: How many times as long lists of percentiles are shared: they take that much longer to read, and
#: their finest intervals are 5 s and a minute.
PERCENTILES_FINE, PERCENTILES = 30, 10

#: The time at which an answer was made, also with a 304, whose body is an earlier one.
NOW_HEADER = "Redmeter-Now"

T = TypeVar("T")
WSGIApp = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class Dashboard(Starlette):
    """The page and its JSON, as an ASGI application that may be mounted anywhere.

        app.mount("/metrics", Dashboard(meter, access=may_look))        # Starlette, FastAPI
        DispatcherMiddleware(app.wsgi_app, {"/metrics": Dashboard(meter, access=may_look).wsgi})

    Nothing is connected to before the first request.

    Args:
        source: a Meter, a URL, or a client of redis-py or a fork such as valkey-py, which is never
            closed. None: by the environment's settings.
        access: a function, plain or async, that gets the request and returns whether it may
            pass, or a response; or "open" for everybody.
        prefix: the beginning of every key; not with a Meter, which has its own.
        allowed_hosts: names that the Host header may have, without ports; `*.example.org` matches
            all subdomains. None: any that the application in front of it accepts.

    Raises:
        InvalidSetting: there is no access=; or a setting cannot be used.
    """

    def __init__(
        self,
        source: Any = None,
        *,
        access: Given = None,
        prefix: str | None = None,
        allowed_hosts: Iterable[str] | Hosts | None = None,
    ) -> None:
        policy = check_access(access)
        if allowed_hosts is not None and not isinstance(allowed_hosts, Hosts):
            allowed_hosts = Hosts(allowed_hosts)
        store, self._owned = _store_of(source, prefix)
        self._shared = AnswerCache()
        # One ranking at a time, whatever lists wait for theirs.
        rank = partial(self._shared.run, "ranking")
        self._answers = None if store is None else api.API(store, rank)
        self._prometheus = None if store is None else PrometheusAPI(store.reader)
        self._queries = AnswerCache(threads=prometheus.QUERY_THREADS)
        #: For the health of the store, which is answered even if all other threads are busy.
        self._vital = AnswerCache()
        self._files = Files()
        self._wsgi: WSGIDashboard | None = None
        routes = [
            Route("/", self._page),
            Route("/assets/{name}", self._asset),
            *(Route(path, self._probe) for path in VITAL),
            Route("/api/openapi.json", self._openapi),
            *(Route(one.path, partial(self._api, one)) for one in ENDPOINTS),
            Route("/metrics", self._metrics),
            *(
                Route(prometheus.ROOT + name, partial(self._query, name), methods=["GET", "POST"])
                for name in prometheus.NAMES
            ),
        ]
        super().__init__(
            routes=routes,
            middleware=[Middleware(Guard, access=policy, hosts=allowed_hosts)],
            exception_handlers={HTTPException: _not_found, HTTPError: _refuse},
            lifespan=_lifespan,
        )
        # A slash too many is another path; and a redirect would name a host.
        self.router.redirect_slashes = False

    @property
    def wsgi(self) -> "WSGIDashboard":
        """The same as a WSGI application."""
        with needs("page", "the dashboard under WSGI"):
            from a2wsgi import ASGIMiddleware

        if self._wsgi is None:
            middleware: Any = ASGIMiddleware  # in its types, an environ is a TypedDict
            self._wsgi = WSGIDashboard(partial(middleware, self))
        return self._wsgi

    @property
    def built(self) -> bool:
        """Whether the page is there, and not its JSON alone."""
        return self._files.built

    def close(self) -> None:
        """Close the connections, unless they are a Meter's or a client's."""
        if self._owned and self._answers is not None:
            self._answers.store.close()

    # Endpoints

    async def _page(self, request: Request) -> Response:
        return self._files.index().response(request)

    async def _asset(self, request: Request) -> Response:
        return self._files.asset(request.path_params["name"]).response(request)

    async def _openapi(self, request: Request) -> Response:
        return api.openapi().response(request)

    async def _api(self, endpoint: Endpoint, request: Request) -> Response:
        values = parse_query(endpoint, request.scope.get("query_string", b""))
        check_order_of_times(values)
        fine = (values.get("precision") or 60) < 60
        keep = KEEP_FINE if fine else KEEP
        if not fine and endpoint.path in _REPEATED_PATHS:
            keep *= REPEATED
        if values.get("kind") == "histogram" and endpoint.path == "/api/metrics":
            keep *= PERCENTILES_FINE if fine else PERCENTILES
        key = endpoint.path, tuple(sorted(values.items()))
        body = await self._answered(
            self._shared, key, partial(_made, endpoint, self._answers, values), keep
        )
        return body.response(request)

    async def _metrics(self, request: Request) -> Response:
        form, partial = prometheus.scrape_options(request)

        def make() -> Body:
            return _there(self._prometheus).metrics(form, partial=partial)

        body = await self._answered(self._shared, ("/metrics", form, partial), make, KEEP_FINE)
        return body.response(request)

    async def _query(self, name: str, request: Request) -> Response:
        parameters = await prometheus.parameters_of(request)
        pairs = (*parameters.pairs, *request.path_params.items())
        parameters = prometheus.Parameters(pairs)
        arrived = monotonic()

        def make() -> Body:
            return _there(self._prometheus).body(name, parameters, arrived)

        keep = prometheus.shared_seconds(name, parameters)
        body = await self._answered(
            self._queries, (name, pairs), make, keep, prometheus.timed_out()
        )
        return body.response(request)

    async def _probe(self, request: Request) -> Response:
        ok = Body(as_json({"status": "ok"}), "application/json", cache="no-store")
        if route_path(request.scope) == ALIVE:
            return ok.response(request)

        def make() -> Body:
            _there(self._answers).reader.read()
            return ok

        try:
            body = await self._answered(self._vital, "/healthz", make, KEEP_FINE)
        except HTTPError:
            retry = {"Retry-After": "1", "Cache-Control": "no-store"}
            return Response(as_json({"status": "unavailable"}), 503, retry, "application/json")
        return body.response(request)

    async def _answered(
        self,
        shared: AnswerCache,
        key: Any,
        make: Callable[[], Body],
        keep: float,
        late: HTTPError | None = None,
    ) -> Body:
        """Wait for an answer, and translate its error; `late` is the error of one that is late."""
        try:
            future = asyncio.wrap_future(shared.get(key, make, keep))
            # A client may leave before the answer is complete; the others still get it.
            return await asyncio.wait_for(future, api.ANSWER_SECONDS)
        except HTTPError:
            raise
        except RedmeterError as error:
            raise http_error_of(error) from error
        except TimeoutError:
            if late is not None:
                raise late from None
            text, fix = f"no answer within {api.ANSWER_SECONDS:g} s", "ask again, or for less"
            raise HTTPError(503, "timed-out", text, fix, {"Retry-After": "1"}) from None


class WSGIDashboard:
    """A WSGI application. A function for `access=` finds the environ in request.scope.

    a2wsgi runs the ASGI application in an event loop of its own, in a thread. That starts with the
    first request of each process: a server may load the application before it forks. What a server
    may hand over and a2wsgi cannot read is refused before.

    Args:
        make: makes what answers.
    """

    def __init__(self, make: Callable[[], WSGIApp]) -> None:
        self._make = make
        self._forget()
        # A thread does not come along into a fork, and a lock comes as somebody else holds it.
        forget = weakref.WeakMethod(self._forget)
        os.register_at_fork(after_in_child=lambda: (found := forget()) and found())

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._app: WSGIApp | None = None

    def _made(self) -> WSGIApp:
        with self._lock:
            if self._app is None:
                self._app = self._make()
            return self._app

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        """Answer a request."""
        try:
            environ.get("QUERY_STRING", "").encode("ascii")
            for part in ("SCRIPT_NAME", "PATH_INFO"):
                environ.get(part, "").encode("latin-1").decode()
        except UnicodeError:
            return _refuse_bytes(start_response)
        return self._made()(environ, start_response)


def _refuse_bytes(start_response: Callable[..., Any]) -> list[bytes]:
    fix = "encode it as UTF-8, then by percent signs"
    error = HTTPError(400, "not-utf-8", "the address is no UTF-8", fix)
    body = as_json(error.answer())
    headers = {**HEADERS, "Content-Type": "application/json", "Cache-Control": "no-store"}
    headers["Content-Length"] = str(len(body))
    start_response(f"{error.status} {HTTPStatus(error.status).phrase}", list(headers.items()))
    return [body]


def _made(endpoint: Endpoint, answers: api.API | None, values: dict[str, Any]) -> Body:
    """Make an answer: called in a thread."""
    answer = _there(answers).answer(endpoint, values)
    content = as_json(answer)
    if len(content) > MAX_ANSWER_BYTES:
        raise HTTPError(
            400,
            "answer-too-large",
            f"the answer would have {len(content):,} bytes",
            f"at most {MAX_ANSWER_BYTES:,}: ask for less",
        )
    # The time comes first, so that the rest is what follows the first comma.
    tag = content.partition(b",")[2]
    return Body(content, "application/json", tag=tag, headers={NOW_HEADER: f"{answer.now:.3f}"})


def _there(answers: T | None) -> T:
    """Return what answers.

    Raises:
        HTTPError: there is no store.
    """
    if answers is None:
        fix = "set REDMETER_URL to a store, or give one to Dashboard()"
        raise HTTPError(503, "switched-off", "redmeter is switched off here", fix)
    return answers


def _store_of(source: Any, prefix: str | None) -> tuple[Store | None, bool]:
    """Return the store of a source, and whether the dashboard must close it."""
    if isinstance(source, Queries):
        return source._store, False
    if isinstance(source, Store):
        return source, False
    if source is None or isinstance(source, str):
        return stores.open(source, prefix=prefix, announce=True), True
    return stores.open(client=source, prefix=prefix), True


async def _not_found(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    path = route_path(request.scope)
    if path.startswith(prometheus.ROOT):
        return prometheus.not_found(path)
    return error_response(no_such(path))


async def _refuse(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPError)
    return refusal(request.scope, error)


@contextlib.asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncIterator[None]:
    yield
    assert isinstance(app, Dashboard)
    app.close()
