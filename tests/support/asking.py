"""Asking an ASGI application in this process, as one asks a server: a client of httpx."""

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any

import httpx


class _Transport(httpx.BaseTransport):
    """Hands requests to an application, in an event loop that is there for all of them."""

    def __init__(self, app: Any, root_path: str, runner: asyncio.Runner) -> None:
        self._app = httpx.ASGITransport(app, root_path=root_path)
        self._runner = runner

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answer a request."""
        return self._runner.run(self._answered(request))

    async def _answered(self, request: httpx.Request) -> httpx.Response:
        answer = await self._app.handle_async_request(request)
        assert isinstance(answer.stream, httpx.AsyncByteStream)
        content = b"".join([part async for part in answer.stream])
        return httpx.Response(
            answer.status_code, headers=answer.headers, stream=httpx.ByteStream(content)
        )


@contextlib.contextmanager
def asking(
    app: Any, *, root_path: str = "", base_url: str = "http://localhost", **options: Any
) -> Iterator[httpx.Client]:
    """Return a client of an application.

    Args:
        root_path: where the application is mounted; the client asks for whole paths.
        base_url: what the client takes it to be called.
    """
    with asyncio.Runner() as runner:
        transport = _Transport(app, root_path, runner)
        with httpx.Client(transport=transport, base_url=base_url, **options) as client:
            yield client


def ask(client: httpx.Client, path: str, **parameters: Any) -> Any:
    """Return what the API answers with 200; a busy machine's 503 is tried again."""
    for _ in range(5):
        answer = client.get(f"/api/{path}", params=parameters)
        if answer.status_code != 503:
            break
    assert answer.status_code == 200, answer.text
    return answer.json()
