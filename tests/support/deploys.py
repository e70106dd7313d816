"""Traffic of a web application around a deploy, as a meter records it."""

import random
from typing import Any

#: Requests of each route and minute.
REQUESTS = 100


def record_deploy(
    meter: Any,
    deploy: float,
    *,
    minutes: range = range(-61, 7),
    routes: tuple[str, ...] = ("/", "/cart"),
    worse: str = "",
    width: int = 60,
) -> None:
    """Record requests by the minute, and a mark.

    Args:
        deploy: when the mark is set, Unix seconds.
        minutes: relative to the minute of the deploy.
        worse: the route that is slower and fails more often afterwards.
        width: seconds of a minute.
    """
    rng, start = random.Random(7), deploy // width * width
    for minute in minutes:
        for route in routes:
            bad = route == worse and minute > 0
            labels = {"method": "GET", "route": route}
            failed, at = 30 if bad else 1, start + minute * width
            for status, number in (("5xx", failed), ("2xx", REQUESTS - failed)):
                meter.count("http_requests", number, labels=labels | {"status": status}, at=at)
            for _ in range(REQUESTS):
                seconds = rng.lognormvariate(-3.0, 0.4) * (3 if bad else 1)
                meter.observe("http_request_seconds", seconds, labels=labels, at=at)
    meter.mark("v2", at=deploy)


def record_requests(
    meter: Any,
    at: float,
    route: str,
    requests: int,
    failed: int,
    *,
    rng: random.Random | None = None,
    seconds: float = 0.0,
) -> None:
    """Record requests of a route at a moment.

    Args:
        rng, seconds: what draws response times, and their median; without it, there are none.
    """
    labels = {"method": "GET", "route": route}
    for status, number in (("5xx", failed), ("2xx", requests - failed)):
        if number:
            meter.count("http_requests", number, labels=labels | {"status": status}, at=at)
    for _ in range(requests if rng else 0):
        value = (rng or random).lognormvariate(0, 0.4) * seconds
        meter.observe("http_request_seconds", value, labels=labels, at=at)
