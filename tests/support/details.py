"""The details of a series, as the page reads them."""

from redmeter.reading.page.detail import Detail, detail
from redmeter.reading.windows import Frame
from redmeter.store import Store
from redmeter.store.query import run_query


def read_detail(store: Store, name: str, precision: int, frame: Frame | None = None) -> Detail:
    """Return the details of a series by its stored name; see detail()."""
    return run_query(store, lambda kept: detail(store.keys, kept, name, precision, frame))[1]
