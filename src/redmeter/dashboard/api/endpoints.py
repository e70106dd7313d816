"""The API: the table of its endpoints, and their answers, with a time limit. Called in threads."""

from functools import cache
from importlib.resources import files

from redmeter.dashboard.api.diagnosis import DIAGNOSIS_ENDPOINTS
from redmeter.dashboard.api.logs import LOG_ENDPOINTS
from redmeter.dashboard.api.page import PAGE_ENDPOINTS
from redmeter.dashboard.api.parameters import Context, Endpoint, ParameterValues
from redmeter.dashboard.api.schemas import EndpointAnswer
from redmeter.dashboard.api.serialize import convert
from redmeter.dashboard.api.series import SERIES_ENDPOINTS
from redmeter.dashboard.cache import Body
from redmeter.dashboard.errors import RETRIED, RETRY, HTTPError
from redmeter.errors import UnknownLabel
from redmeter.reading.page.background_ranking import RowRankings, Start
from redmeter.reading.page.overview import Watch
from redmeter.store import Store

ENDPOINTS: tuple[Endpoint, ...] = (
    *SERIES_ENDPOINTS,
    *LOG_ENDPOINTS,
    *PAGE_ENDPOINTS,
    *DIAGNOSIS_ENDPOINTS,
)

#: How long an answer may take, seconds.
ANSWER_SECONDS = 10.0


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
        self._watch = Watch(self.reader, self._rankings)

    def answer(self, endpoint: Endpoint, values: ParameterValues) -> EndpointAnswer:
        """Answer a question. Called by several threads.

        Raises:
            RedmeterError: see errors.http_error_of().
        """
        # The page shows the available data, and names the missing parts.
        reader = self.reader.best_effort()
        # A caller's client may wait for as long as it likes; a thread of ours may not.
        with reader.link.bounded(ANSWER_SECONDS):
            context = Context(reader, self.store, self._watch, self._rankings)
            try:
                result = endpoint.handler(context, values)
            except UnknownLabel as error:
                if missing := "; ".join(reader.skipped()):  # a series there may have the label
                    text = f"{error.problem} on the nodes that answer ({missing})"
                    raise HTTPError(503, "store-unavailable", text, RETRIED, RETRY) from None
                raise
        fields = {"now": result.now, "missing": reader.skipped(), **result.given}
        return convert(endpoint.answer, result.source, **fields)


@cache
def openapi() -> Body:
    """Return the file that describes all this."""
    text = (files("redmeter.dashboard") / "openapi.json").read_bytes()
    return Body(text, "application/json")
