"""Memory that counting requests adds to a worker, compared with exporters for Prometheus.

Each figure is the resident memory of a process of its own after SERVED requests, less that of a
process whose application is not counted. That one imports nothing of Redmeter, and not redis-py
either, which is most of what Redmeter adds. So there are two rows for each framework: for an
application without redis-py, and for one that has imported it anyway.

    python benchmarks/web_memory.py FRAMEWORK SIDE URL     what run.py starts: prints its memory
"""

import gc
import importlib
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import web
import web_wsgi
from table import Row, sized

if TYPE_CHECKING:
    import redis

#: Requests after which memory is looked at, and processes of which the median counts.
SERVED, PROCESSES = sized(5_000, 50), sized(3, 1)
#: Sides that are no exporter.
BARE, WITH_CLIENT, OURS = "bare", "redis-py", "ours"


def _with_client(app: Any) -> Any:
    importlib.import_module("redis")
    return app


def _meter(url: str) -> Any:
    from redmeter import Meter

    return Meter(url)


#: Framework -> side -> makes what times it, of the store's URL.
SIDES: dict[str, dict[str, Callable[[str], web.Timed]]] = {
    "Starlette": {
        BARE: lambda _: web.asgi(web.starlette_app()),
        WITH_CLIENT: lambda _: web.asgi(_with_client(web.starlette_app())),
        OURS: lambda url: web.asgi(web.with_ours(web.starlette_app(), _meter(url))),
        "starlette_exporter": lambda _: web.asgi(web.with_starlette_exporter(web.starlette_app())),
        "prometheus_fastapi_instrumentator": lambda _: web.asgi(
            web.with_instrumentator(web.starlette_app())
        ),
    },
    "Flask": {
        BARE: lambda _: web_wsgi.wsgi(web_wsgi.flask_app()),
        WITH_CLIENT: lambda _: web_wsgi.wsgi(_with_client(web_wsgi.flask_app())),
        OURS: lambda url: web_wsgi.wsgi(web_wsgi.flask_with_ours(_meter(url))),
        "prometheus_flask_exporter": lambda _: web_wsgi.wsgi(web_wsgi.flask_with_exporter()),
    },
    "Django": {
        BARE: lambda _: web_wsgi.wsgi(web_wsgi.django_handler(MIDDLEWARE=[])),
        WITH_CLIENT: lambda _: web_wsgi.wsgi(_with_client(web_wsgi.django_handler(MIDDLEWARE=[]))),
        OURS: lambda url: web_wsgi.wsgi(web_wsgi.django_with_ours(_meter(url))),
        "django_prometheus": lambda _: web_wsgi.wsgi(web_wsgi.django_with_exporter()),
    },
}


def memory_of(framework: str, side: str, url: str) -> float:
    """Return the MB that a process takes after it has served."""
    command = [sys.executable, str(Path(__file__)), framework, side, url]

    def taken() -> int:
        return int(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)

    return statistics.median(taken() for _ in range(PROCESSES)) / 2**20


def memory_rows(_conn: "redis.Redis", url: str) -> Iterator[Row]:
    """What a worker takes more."""
    for framework, sides in SIDES.items():
        exporters = [side for side in sides if side not in (BARE, WITH_CLIENT, OURS)]
        if web.missing(*exporters):
            continue
        taken = {side: memory_of(framework, side, url) for side in sides}
        added = {side: taken[side] - taken[BARE] for side in exporters}
        (best, least), *others = sorted(added.items(), key=itemgetter(1))
        rest = "".join(f", {name} {more:.1f} MB" for name, more in others)
        for suffix, before in (("", BARE), (" with redis-py", WITH_CLIENT)):
            ours = taken[OURS] - taken[before]
            floor = f"other: {best}{rest}; application {taken[before]:.1f} MB"
            figures = f"{ours:.1f} MB", f"{least:.1f} MB", ours / least, "none", floor
            yield Row(f"memory added, {framework}{suffix}", *figures)


def _serve_and_tell(framework: str, side: str, url: str) -> None:
    timed = SIDES[framework][side](url)
    if side == BARE:
        ours = [name for name in sys.modules if name.partition(".")[0] in ("redis", "redmeter")]
        assert ours == [], "else there is nothing to compare with"
    timed(SERVED)
    time.sleep(1.2)  # so that what was recorded has been stored
    gc.collect()
    import psutil  # type: ignore[import-untyped]

    print(psutil.Process().memory_info().rss)


ROWS = {"web memory": memory_rows}

if __name__ == "__main__":
    _serve_and_tell(*sys.argv[1:])
