"""Visitors: they arrive by the model of the business, and request pages as people do.

Bound: at most VISITORS at once; further visitors leave. The timeout of a request is 5 s.
"""

import http.client
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from redmeter.demo import shape
from redmeter.demo.database import POPULARITY, PRODUCTS, SEARCHES

#: How many visit at once at most.
VISITORS = 24
#: Seconds that somebody looks at a page, on average; people take longer, but a demo is short.
SECONDS_ON_PAGE = 0.6
#: Seconds between two looks at the clock.
CLOCK_INTERVAL = 0.1
_STRAY = ("/wp-login.php", "/.env", "/admin.php", "/favicon.ico", "/robots.txt")
_WEIGHTS = [POPULARITY[each.category] for each in PRODUCTS]


class Visitors:
    """Sends visitors to the shop until stop() is called.

    Args:
        port: where the shop is.
        seed: how chance begins.
        boost: takes a time, Unix seconds, and returns how many times as many as usual come.
    """

    def __init__(self, port: int, seed: int, boost: Callable[[float], float]) -> None:
        self._port = port
        self._seed = seed
        self._boost = boost
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(VISITORS, "visitor")
        self._thread = threading.Thread(target=self._run, name="visitors", daemon=True)
        self._here = threading.BoundedSemaphore(VISITORS)
        self._lock = threading.Lock()
        #: Answers, those that were no success, and orders.
        self.answers = self.failed = self.ordered = 0

    def start(self) -> None:
        """Let people come."""
        self._thread.start()

    def stop(self) -> None:
        """Let nobody come any more, and wait until all have left."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        self._pool.shutdown(cancel_futures=True)

    def _run(self) -> None:
        chance = random.Random(f"{self._seed} traffic")
        while not self._stop.wait(CLOCK_INTERVAL):
            now = time.time()
            come = shape.visits(now, self._seed) * self._boost(now) * CLOCK_INTERVAL
            for _ in range(shape.poisson(come, chance)):
                self._admit(self._visit, chance.random())
            for _ in range(shape.poisson(shape.REPORTS * CLOCK_INTERVAL, chance)):
                self._admit(self._look_at_report, chance.random())

    def _admit(self, visit: Callable[[random.Random], None], seed: float) -> None:
        if not self._here.acquire(blocking=False):
            return

        def run() -> None:
            try:
                visit(random.Random(seed))
            finally:
                self._here.release()

        self._pool.submit(run)

    def _look_at_report(self, _: random.Random) -> None:
        self._ask("GET", "/admin/report")

    def _visit(self, chance: random.Random) -> None:
        if chance.random() < shape.STRAY:
            self._ask("GET", chance.choice(_STRAY))
        self._ask("GET", "/")
        if chance.random() < shape.SEARCHES_PER_VISIT:
            self._look(chance)
            self._ask("GET", f"/search?q={chance.choice(SEARCHES)}")
        for _ in range(shape.poisson(shape.PRODUCTS_PER_VISIT, chance)):
            self._look(chance)
            number = chance.choices(PRODUCTS, _WEIGHTS)[0].id
            if chance.random() < 0.015:  # an old link
                number += 900
            self._ask("GET", f"/products/{number}")
        buys = chance.random() < shape.CHECKOUTS
        times = 1 + shape.poisson(shape.LINES_PER_ORDER - 1, chance) if buys else 0
        times += shape.poisson(
            max(0.0, shape.INTO_CART - shape.CHECKOUTS * shape.LINES_PER_ORDER), chance
        )
        visitor = f"visitor={chance.getrandbits(64):x}"
        for _ in range(times):
            product = chance.choices(PRODUCTS, _WEIGHTS)[0].id
            pieces = 1 + shape.poisson(shape.PIECES_PER_LINE - 1, chance)
            self._ask("POST", "/cart", f"product={product}&pieces={pieces}", visitor)
        if chance.random() < shape.LOOKS_AT_CART:
            self._ask("GET", "/cart", visitor=visitor)
        if buys:
            self._look(chance)
            status = self._ask("POST", "/checkout", "", visitor)
            with self._lock:
                self.ordered += status == 303

    def _look(self, chance: random.Random) -> None:
        self._stop.wait(chance.expovariate(1 / SECONDS_ON_PAGE))

    def _ask(
        self,
        method: str,
        path: str,
        body: str | None = None,
        visitor: str = "",
    ) -> int:
        """Ask for a page; return the status, or 0 where there was none, or no need any more."""
        if self._stop.is_set():
            return 0
        status = 0
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=5.0)
        try:
            connection.request(method, path, body, {"Cookie": visitor, "Connection": "close"})
            answer = connection.getresponse()
            answer.read()
            status = answer.status
        except (OSError, http.client.HTTPException):
            pass
        finally:
            connection.close()
        with self._lock:
            self.answers += status > 0
            self.failed += status == 0 or status >= 500
        return status
