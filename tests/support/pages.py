"""Views of the page, without the rest of the answer."""

from collections.abc import Sequence
from typing import Any

from redmeter.reading.page import http
from redmeter.reading.page.http import RouteTable
from redmeter.reading.page.overview import Overview, Watch
from redmeter.store import Store


def read_overview(store: Store, precision: int, *, series: Sequence[str] = ()) -> Overview:
    """Read the first page."""
    return Watch(store).look(precision, series=series)[1]


def read_routes(store: Store, precision: int, **options: Any) -> RouteTable:
    """Read routes."""
    return http.read_routes(store, precision, **options)[1]
