"""Cache of responses: a view that ten people have open is read from Redis once.

A response is cached for a moment under its request; equal requests that arrive while it is made
wait for it. Responses are made in threads, because reading waits for the network. There are few
threads, so that a hanging Redis cannot block more of them, and a bounded queue; beyond it, the
request is rejected as too busy. Idle threads end, so none is left in a fork or at shutdown.

A body is compressed once for all clients. Its ETag covers everything except the time at which it
was made, so unchanged content is not sent again. Starlette's GZipMiddleware compresses each
response anew and ignores `gzip;q=0`; its ETags are only those of files.
"""

import contextlib
import gzip
import hashlib
import math
import os
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future

from starlette.requests import Request
from starlette.responses import Response

from redmeter.dashboard.errors import HTTPError

#: Threads that read at once, and answers that may wait for one.
THREADS, WAITING = 8, 128
#: Answers that are kept at most, and bytes of them together.
MAX_KEPT_ANSWERS, MAX_KEPT_BYTES = 256, 32 * 2**20
#: Largest answer, bytes of JSON.
MAX_ANSWER_BYTES = 4 * 2**20
#: Smallest body that is compressed, bytes: below, it would not become one packet less.
MIN_GZIP = 1_000
#: Of 1 to 9: 5 is within 3 % of the size of 9, in a third of the time.
GZIP_LEVEL = 5


class Body:
    """Bytes that are sent, compressed where that helps.

    Args:
        content: the bytes.
        media_type: of the content.
        tag: the bytes that its ETag covers; the content if not given.
        cache: Cache-Control.
        headers: more headers.
    """

    def __init__(
        self,
        content: bytes,
        media_type: str,
        *,
        tag: bytes | None = None,
        cache: str = "private, no-cache",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.content = content
        self._packed: bytes | None = None
        if len(content) >= MIN_GZIP and _is_text(media_type):
            packed = gzip.compress(content, GZIP_LEVEL, mtime=0)
            self._packed = packed if len(packed) < 0.9 * len(content) else None
        digest = hashlib.sha256(content if tag is None else tag).hexdigest()[:24]
        # Weak: the bytes differ by their compression, and by the time at which they were made.
        self.etag = f'W/"{digest}"'
        self._media_type = media_type
        self._headers = {**(headers or {}), "ETag": self.etag, "Cache-Control": cache}
        self.size = len(content) + len(self._packed or b"")

    def response(self, request: Request) -> Response:
        """Return the answer to a request: 304 where it has this body already."""
        headers = dict(self._headers)
        if self._packed is not None:
            headers["Vary"] = "Accept-Encoding"
        if _matches(request.headers.get("if-none-match", ""), self.etag):
            return Response(status_code=304, headers=headers)
        content = self.content
        if self._packed is not None and _takes_gzip(request.headers.get("accept-encoding", "")):
            content = self._packed
            headers["Content-Encoding"] = "gzip"
        headers["Content-Length"] = str(len(content))
        shown = b"" if request.method == "HEAD" else content
        return Response(shown, 200, headers, self._media_type)


def _is_text(media_type: str) -> bool:
    return media_type.startswith("text/") or media_type.endswith(("json", "javascript", "svg+xml"))


def _matches(header: str, etag: str) -> bool:
    """Compare weakly, as RFC 9110 requires for If-None-Match (section 13.1.2)."""
    bare = etag.removeprefix("W/")
    tags = [part.strip().removeprefix("W/") for part in header.split(",")]
    return bare in tags or tags == ["*"]


def _takes_gzip(header: str) -> bool:
    """Read Accept-Encoding: `gzip;q=0` rejects it, `*` means all others (RFC 9110, 12.5.3)."""
    accepted: dict[str, bool] = {}
    for part in header.lower().split(","):
        name, _, rest = part.partition(";")
        weight = rest.replace(" ", "").removeprefix("q=")
        try:
            accepted[name.strip()] = float(weight or 1) > 0
        except ValueError:
            accepted[name.strip()] = False
    return next((accepted[name] for name in ("gzip", "x-gzip", "*") if name in accepted), False)


class _Kept:
    __slots__ = ("future", "size", "until")

    def __init__(self) -> None:
        self.future: Future[Body] = Future()
        # Begun: who no longer waits for it cannot cancel it for the others.
        self.future.set_running_or_notify_cancel()
        #: By the monotonic clock; infinite while it is being made.
        self.until = math.inf
        self.size = 0


class AnswerCache:
    """Makes answers in threads, and keeps them for a moment.

    Safe to share between threads, event loops and forked processes.

    Args:
        monotonic: a clock, for tests.
        threads: how many answers are made at once.
    """

    def __init__(
        self, monotonic: Callable[[], float] = time.monotonic, threads: int = THREADS
    ) -> None:
        self._monotonic = monotonic
        self._most = threads
        self._start()

    def _start(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._queue: deque[tuple[_Kept, Callable[[], Body], float]] = deque()
        self._threads = 0
        self._bytes = 0

    def get(self, key: Hashable, make: Callable[[], Body], seconds: float) -> "Future[Body]":
        """Return an answer that is there, or will be.

        Args:
            key: identifies the request.
            make: makes the answer, in a thread.
            seconds: how long it is kept.

        Raises:
            HTTPError: too much is waiting.
        """
        if self._pid != os.getpid():  # forked: the threads are the parent's
            self._start()
        now = self._monotonic()
        with self._lock:
            cached = self._kept.get(key)
            if cached is not None and cached.until > now:
                return cached.future
            if self._threads >= self._most and len(self._queue) >= WAITING:
                raise HTTPError(
                    503, "busy", "too much is asked at once", "ask again", {"Retry-After": "1"}
                )
            if cached is not None:
                self._forget(key)
            one = self._kept[key] = _Kept()
            self._trim(now)
            self._queue.append((one, make, seconds))
            if self._threads < self._most:
                self._threads += 1
                # Not to be waited for at the end of the process: it may wait for the network.
                threading.Thread(target=self._work, name="redmeter-page", daemon=True).start()
        return one.future

    def run(self, key: Hashable, work: Callable[[], object]) -> None:
        """Do some work in a thread, unless the same is under way or too much is waiting.

        Args:
            key: of the work; no other than that of an answer.
            work: executed for its side effects. Its exceptions are ignored.
        """

        def make() -> Body:
            work()
            return Body(b"", "text/plain")

        with contextlib.suppress(HTTPError):
            self.get(key, make, 0.0)

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._queue:
                    self._threads -= 1
                    return
                one, make, seconds = self._queue.popleft()
            try:
                body = make()
            except BaseException as error:  # noqa: BLE001  raised to all who wait for the answer
                self._settle(one, 0, seconds)
                one.future.set_exception(error)
            else:
                self._settle(one, body.size, seconds)
                one.future.set_result(body)

    def _settle(self, one: _Kept, size: int, seconds: float) -> None:
        with self._lock:
            one.until = self._monotonic() + seconds
            one.size = size
            self._bytes += size
            self._trim(self._monotonic())

    def _forget(self, key: Hashable) -> None:
        self._bytes -= self._kept.pop(key).size

    def _trim(self, now: float) -> None:
        """Remove expired answers, and the oldest ones above the limit."""
        for key in [key for key, one in self._kept.items() if one.until <= now]:
            self._forget(key)
        while len(self._kept) > MAX_KEPT_ANSWERS or self._bytes > MAX_KEPT_BYTES:
            oldest = next((k for k, one in self._kept.items() if one.until < math.inf), None)
            if oldest is None:
                return
            self._forget(oldest)
