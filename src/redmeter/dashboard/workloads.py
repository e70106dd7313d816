"""Handlers of /api/statements, /api/tasks and /api/views."""

from collections.abc import Mapping
from typing import Any

from redmeter.dashboard.handlers import SHIFTS
from redmeter.dashboard.schemas import StatementsAnswer, TasksAnswer, ViewsAnswer
from redmeter.dashboard.serialize import convert
from redmeter.reading.views import read_views
from redmeter.reading.windows import Frame
from redmeter.reading.workloads import read_statements, read_tasks
from redmeter.store import Store

Values = Mapping[str, Any]


def statements(store: Store, values: Values) -> StatementsAnswer:
    """Answer /api/statements."""
    now, found = read_statements(
        store, values["precision"], caller=values["caller"], **_options(store, values)
    )
    return convert(StatementsAnswer, found, now=now, missing=store.skipped())


def tasks(store: Store, values: Values) -> TasksAnswer:
    """Answer /api/tasks."""
    now, found = read_tasks(store, values["precision"], **_options(store, values))
    return convert(TasksAnswer, found, now=now, missing=store.skipped())


def views(store: Store, _: Values) -> ViewsAnswer:
    """Answer /api/views."""
    now, found = read_views(store)
    return convert(ViewsAnswer, found, now=now, missing=store.skipped())


def _options(store: Store, values: Values) -> dict[str, Any]:
    frame = Frame(values["since"], values["until"], SHIFTS[values["against"]], store.clock.wall())
    names = ("order", "limit", "offset")
    return {
        **{name: values[name] for name in names},
        "containing": values["filter"],
        "frame": frame,
    }
