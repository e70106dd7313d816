"""Refusals: answers that say no, with the reason and what mends it. Imports nothing of a server."""

from collections.abc import Mapping

from redmeter.dashboard.answers import ErrorAnswer
from redmeter.errors import RedmeterError


class Refusal(RedmeterError):
    """A request is answered by an error.

    Attributes:
        status: of HTTP, 4xx or 503.
        code: what programs go by, e.g. `unknown-parameter`.
        message: what was wrong.
        fix: what mends it.
        headers: more headers of the answer.
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
        """Return what is sent."""
        return {"error": {"code": self.code, "message": self.message, "fix": self.fix}}
