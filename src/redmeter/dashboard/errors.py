"""Errors of the API: status, code, message and fix. Imports nothing of a server."""

from collections.abc import Mapping

from redmeter.dashboard.api.schemas import ErrorAnswer, Problem
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
    UnknownLabel,
    UnknownPrecision,
    WrongKind,
)
from redmeter.stored.families import STATES
from redmeter.stored.keys import span

#: The header and the fix of an error that may pass.
RETRY, RETRIED = {"Retry-After": "1"}, "it retries automatically"
#: Kind of a name -> the request that reads it.
_CALLS = {
    "counter": "ask /api/series for it",
    **{kind: f"ask /api/series with kind={kind}" for kind in STATES},
    "histogram": "ask /api/summary for it",
}


class HTTPError(RedmeterError):
    """An error response of the API.

    Attributes:
        status: HTTP status, 4xx or 503.
        code: identifier for programs, e.g. `unknown-parameter`.
        message: the problem.
        fix: how to fix it.
        headers: more headers of the response.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        fix: str,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.status = status
        self.code = code
        self.message = message
        self.fix = fix
        self.headers = dict(headers or {})
        super().__init__(f"{message}: {fix}")

    def answer(self) -> ErrorAnswer:
        """Return the body of the response."""
        return ErrorAnswer(error=Problem(code=self.code, message=self.message, fix=self.fix))


def http_error_of(error: RedmeterError) -> HTTPError:
    """Translate an error to one with an HTTP status."""
    if isinstance(error, HTTPError):
        return error
    text = str(error)
    if isinstance(error, UnknownPrecision):
        kept = ", ".join(f"{p} ({span(p)})" for p in error.kept)
        return HTTPError(400, "unknown-precision", text.partition(";")[0], f"kept are: {kept}")
    if isinstance(error, WrongKind):
        message = text.removesuffix(f": {error.fix}")
        return HTTPError(400, "wrong-kind", message, _CALLS[error.kind])
    if isinstance(error, UnknownLabel):
        return HTTPError(400, "unknown-label", error.problem, error.fix)
    if isinstance(error, LimitExceeded):
        message, _, fix = text.partition(": ")
        return HTTPError(400, "too-many", message, fix)
    if isinstance(error, InvalidName | InvalidValue | InvalidSetting):
        return HTTPError(400, "bad-parameter", text, "see /api/openapi.json")
    if isinstance(error, StoreUnavailable):
        message = f"the store at {error.location} does not answer: {error.reason}"
        fix = error.fix or RETRIED
        return HTTPError(503, "store-unavailable", message, fix, RETRY)
    if isinstance(error, AccessDenied):
        return HTTPError(503, "store-denied", text, error.fix, RETRY)
    if isinstance(error, IncompatibleStore):
        return HTTPError(503, "store-incompatible", text, "use the version that made it", RETRY)
    code = "store-refused" if isinstance(error, StoreRefused) else "store-trouble"
    fix = "run redmeter doctor for details" if isinstance(error, StoreError) else "see the log"
    return HTTPError(503, code, text, fix, RETRY)
