"""The API: which endpoint answers what, and what an error is in the words of HTTP.

The endpoints themselves are in questions.py and panels.py, their shapes in answers.py. Called in
threads.
"""

from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from redmeter.dashboard import caching, panels, questions
from redmeter.dashboard.caching import Body
from redmeter.dashboard.endpoints import Endpoint
from redmeter.dashboard.refusals import Refusal
from redmeter.errors import (
    AccessDenied,
    IncompatibleStore,
    InvalidName,
    InvalidSetting,
    InvalidValue,
    LimitExceeded,
    RedmeterError,
    StoreError,
    StoreRefused,
    StoreUnavailable,
    UnknownPrecision,
)
from redmeter.keys import span
from redmeter.reading.overview import Watch
from redmeter.reading.rowrankings import RowRankings, Start
from redmeter.store import Store

#: How long an answer may take, seconds.
PATIENCE = 10.0
#: Largest answer, bytes of JSON.
MAX_BYTES = caching.MAX_BYTES

Values = Mapping[str, Any]

_RETRY = {"Retry-After": "1"}

_ANSWERS: dict[str, Callable[[Store, Values], Any]] = {
    "/api/series": questions.series,
    "/api/names": questions.names,
    "/api/top": questions.top,
    "/api/summary": questions.summary,
    "/api/messages": questions.messages,
    "/api/marks": questions.marks,
    "/api/forecast": questions.forecast,
    "/api/pages": panels.pages,
    "/api/detail": panels.detail,
}


class Answers:
    """Answers about a store.

    Args:
        store: what the answers are about.
        start: runs the ranking of very many series: see rowrankings.py.

    Attributes:
        reader: what is asked: the store itself, or the same on a replica.

    Raises:
        InvalidSetting: see Store.reader.
    """

    def __init__(self, store: Store, start: Start | None = None) -> None:
        self.store = store
        self.reader = store.reader
        self._rankings = RowRankings(self.reader, start)
        self._watch = Watch(self.reader, self._rankings)

    def answer(self, endpoint: Endpoint, values: Values) -> Any:
        """Answer a question. Called by several threads.

        Raises:
            RedmeterError: see refusal_of().
        """
        # The page shows what there is, and says what is missing.
        reader, replica = self.reader.best_effort(), self.reader is not self.store
        # A caller's client may wait for as long as it likes; a thread of ours may not.
        with reader.link.bounded(PATIENCE):
            if endpoint.path == "/api/overview":
                return panels.overview(reader, self._watch, values, replica=replica)
            if endpoint.path == "/api/counters":
                return panels.counters(reader, self._rankings, values)
            if endpoint.path == "/api/health":  # of the one that takes what is written
                return panels.health(self.store, values)
            return _ANSWERS[endpoint.path](reader, values)


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


def refusal_of(error: RedmeterError) -> Refusal:
    """Say what was wrong in the words of HTTP."""
    if isinstance(error, Refusal):
        return error
    text = str(error)
    if isinstance(error, UnknownPrecision):
        kept = ", ".join(f"{p} ({span(p)})" for p in error.kept)
        return Refusal(400, "unknown-precision", text.partition(";")[0], f"kept are: {kept}")
    if isinstance(error, LimitExceeded):
        what, _, fix = text.partition(": ")
        return Refusal(400, "too-many", what, fix)
    if isinstance(error, InvalidName | InvalidValue | InvalidSetting):
        return Refusal(400, "bad-parameter", text, "see /api/openapi.json")
    if isinstance(error, StoreUnavailable):
        message = f"the store at {error.location} does not answer"
        return Refusal(503, "store-unavailable", message, "it is tried again by itself", _RETRY)
    if isinstance(error, AccessDenied):
        return Refusal(503, "store-denied", text, error.fix, _RETRY)
    if isinstance(error, IncompatibleStore):
        return Refusal(503, "store-incompatible", text, "use the version that made it", _RETRY)
    code = "store-refused" if isinstance(error, StoreRefused) else "store-trouble"
    fix = "redmeter doctor says more" if isinstance(error, StoreError) else "see the log"
    return Refusal(503, code, text, fix, _RETRY)
