"""The public face: the values of the API and of `--json`, about a fixed store."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from golden import story
from redmeter.dashboard import Dashboard
from support.asking import asking
from support.dumped import settled
from support.golden import canonical_json, check_golden
from support.invoking import invoking
from support.servers import Server

FILES = Path(__file__).parent / "public"

pytestmark = pytest.mark.slow

CHAPTERS = (
    *(story.counters, story.gauges, story.histograms, story.messages, story.marks),
    *(story.replayed, story.web, story.buffered, story.history),
)

REQUESTS = (
    "overview?series=hits",
    "series?name=hits&name=missing&precision=300",
    "series?name=http_requests&by=route",
    "series?name=http_requests",
    "series?name=queue_length&kind=gauge&precision=3600",
    "names",
    "names?kind=histogram&pattern=*_seconds",
    "top",
    "top?name=http_requests&by=route&order=failing&failing=status=5xx",
    "top?name=http_request_seconds&by=route&order=p95",
    "summary?name=cart_value&precision=3600&threshold=12&over_time=1",
    "summary?name=http_request_seconds&q=0.99",
    "messages",
    "messages?logger=shop.orders&severity=error",
    "marks",
    "routes",
    "metrics?grouped=1",
    "metrics?kind=gauge&order=change",
    "metrics?kind=histogram",
    "detail?name=hits",
    "detail?name=cart_value",
    "forecast?name=hits&precision=60",
    "forecast?name=hits",
    "doctor",
    # Errors.
    "series",
    "series?name=hits&precision=7",
    "top?order=failing",
    "nothing",
)

COMMANDS = (
    "names",
    "names *_seconds --kind histogram",
    "series hits missing -p 5m",
    "series queue_length -p 1h",
    "summary cart_value -p 1h --above 12",
    "summary http_request_seconds",
    "top",
    "top http_requests --by route --failing status=5xx",
    "top http_request_seconds --by route --order p95",
    "forecast hits -p 1h --ahead 3",
    "logs",
    "logs shop.orders",
    "mark --list",
    "mark v3",
    "retention",
    "retention 60=240",
    "clean",
    "clean --forget large",
    "doctor",
    # Errors.
    "series hits -p 7s",
    "summary missing",
)


@pytest.fixture
def any_server(server: Server) -> Server:
    """One server: values do not depend on it, and stored keys are tested on all."""
    return server


@pytest.fixture
def full(world: story.World) -> story.World:
    """A store that has it all."""
    for chapter in CHAPTERS:
        chapter(world)
    return world


@pytest.fixture
def client(full: story.World) -> Iterator[httpx.Client]:
    """A client of a dashboard about it."""
    dashboard = Dashboard(full.server.url, access="open")
    with asking(dashboard) as client:
        yield client
    dashboard.close()


def test_the_values_of_the_api_stay_as_they_are(client: httpx.Client, full: story.World) -> None:
    """Status and content of each request."""
    found = []
    for request in REQUESTS:
        answer = client.get(f"/api/{request}")
        found.append(f"GET /api/{request}  {answer.status_code}\n{_shown(answer.json(), full)}")
    check_golden(FILES / "api.txt", "\n".join(found))


def test_the_values_of_the_command_stay_as_they_are(full: story.World) -> None:
    """Exit code and JSON of each command."""
    found = []
    with invoking() as run:
        for command in COMMANDS:
            done = run(*command.split(), "--json")
            shown = _shown(json.loads(done.out or done.err), full)
            found.append(f"$ redmeter {command} --json  {done.code}\n{shown}")
    check_golden(FILES / "command.txt", "\n".join(found))


def _shown(value: Any, world: story.World) -> str:
    """Return JSON without what differs between runs and servers."""
    text = settled(canonical_json(_without_measures(value)))
    return text.replace(f":{world.server.port}/", ":PORT/")


def _without_measures(value: Any) -> Any:
    """Replace what is measured, the server, and the texts of health findings.

    These name the version and the memory of the server, and have tests of their own.
    """
    if isinstance(value, list):
        return [_without_measures(one) for one in value]
    if not isinstance(value, dict):
        return value
    if {"level", "topic"} <= value.keys():
        return {name: value[name] for name in ("level", "topic")}
    found = {name: _without_measures(one) for name, one in value.items()}
    return found | {
        name: "…" for name in ("seconds", "bytes", "server", "version") if name in found
    }
