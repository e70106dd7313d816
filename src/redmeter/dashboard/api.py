"""The API: maps each path to its handler, with a time limit. Called in threads."""

from collections.abc import Callable
from functools import cache
from importlib.resources import files

from redmeter.dashboard import diagnoses, handlers
from redmeter.dashboard.cache import Body
from redmeter.dashboard.endpoints import Endpoint
from redmeter.dashboard.handlers import Found, Values
from redmeter.dashboard.schemas import Answer
from redmeter.dashboard.serialize import convert
from redmeter.health.writers import health_panel
from redmeter.reading.page.background_ranking import RowRankings, Start
from redmeter.reading.page.overview import Watch
from redmeter.store import Store

#: How long an answer may take, seconds.
PATIENCE = 10.0

_HANDLERS: dict[str, Callable[[Store, Values], Found]] = {
    "/api/series": handlers.series,
    "/api/names": handlers.names,
    "/api/top": handlers.top,
    "/api/summary": handlers.summary,
    "/api/messages": handlers.messages,
    "/api/marks": handlers.marks,
    "/api/exceptions": handlers.exceptions,
    "/api/exception": handlers.exception,
    "/api/forecast": handlers.forecast,
    "/api/routes": handlers.routes,
    "/api/verdict": diagnoses.verdict,
    "/api/detail": handlers.detail,
    "/api/alerts": diagnoses.alerts,
    "/api/explain": diagnoses.explain,
    "/api/status": diagnoses.status,
    "/api/statements": handlers.statements,
    "/api/jobs": handlers.jobs,
    "/api/views": handlers.views,
}


class API:
    """Answers about a store.

    Args:
        store: what the answers are about.
        start: runs the ranking of very many series: see background_ranking.py.

    Attributes:
        reader: executes the queries: the store itself, or its replicas.

    Raises:
        InvalidSetting: see Store.reader.
    """

    def __init__(self, store: Store, start: Start | None = None) -> None:
        self.store = store
        self.reader = store.reader
        self._rankings = RowRankings(self.reader, start)
        self._watch = Watch(self.reader, self._rankings, health_panel)

    def answer(self, endpoint: Endpoint, values: Values) -> Answer:
        """Answer a question. Called by several threads.

        Raises:
            RedmeterError: see errors.http_error_of().
        """
        # The page shows the available data, and names the missing parts.
        reader, replica = self.reader.best_effort(), self.reader is not self.store
        # A caller's client may wait for as long as it likes; a thread of ours may not.
        with reader.link.bounded(PATIENCE):
            if endpoint.path == "/api/overview":
                result = handlers.overview(reader, self._watch, values, replica=replica)
            elif endpoint.path == "/api/metrics":
                result = handlers.metrics(reader, self._rankings, values)
            elif endpoint.path == "/api/doctor":  # about the primary, not a replica
                result = handlers.doctor(self.store, values)
            else:
                result = _HANDLERS[endpoint.path](reader, values)
        fields = {"now": result.now, "missing": reader.skipped(), **result.given}
        return convert(endpoint.answer, result.source, **fields)


def check_alive(store: Store) -> None:
    """Check that the store answers.

    Raises:
        StoreError: it does not.
    """
    store.read()


@cache
def openapi() -> Body:
    """Return the file that describes all this."""
    text = (files("redmeter.dashboard") / "openapi.json").read_bytes()
    return Body(text, "application/json")
