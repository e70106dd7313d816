"""Options that select label sets: --label, --by, --exact and --aggregate."""

import json
from collections.abc import Sequence
from typing import Annotated

import typer

from redmeter.errors import InvalidName, InvalidSetting
from redmeter.queries import select
from redmeter.reading.selection import name_of
from redmeter.resolve import resolve_name
from redmeter.store import Store
from redmeter.types import Selection

Labels = Annotated[
    list[str] | None,
    typer.Option(
        "--label",
        metavar="<label=value>",
        help="Only label sets with this label. Repeatable.",
    ),
]
By = Annotated[
    list[str] | None,
    typer.Option("--by", metavar="<label>", help="Split by the values of this label. Repeatable."),
]
Exact = Annotated[
    bool, typer.Option("--exact", help="Read the one series that is stored under this name.")
]
Aggregate = Annotated[
    str | None,
    typer.Option("--aggregate", help="Label sets of a gauge: sum, min, max or mean."),
]


def labels_of(options: Sequence[str] | None) -> dict[str, str]:
    """Return the labels of --label options.

    Raises:
        InvalidSetting: an option is not LABEL=VALUE, or a label is given twice.
    """
    labels: dict[str, str] = {}
    for text in options or ():
        label, equals, value = text.partition("=")
        if not equals or label in labels:
            problem = "give each label once, as LABEL=VALUE, e.g. plan=pro"
            raise InvalidSetting("--label", f"{text!r:.40}: {problem}")
        labels[label] = value
    return labels


def selection_of(
    store: Store,
    name: str,
    labels: Sequence[str] | None = None,
    by: Sequence[str] | None = None,
    *,
    exact: bool = False,
) -> Selection:
    """Return what a name and its options select.

    Raises:
        InvalidSetting: an option is not LABEL=VALUE, or a label is given twice; `--by` with
            `--exact`.
        InvalidName: the name or a label is not allowed.
    """
    where = labels_of(labels)
    if exact and by:
        raise InvalidSetting("--exact", "reads one series, which has no groups: leave out --by")
    if exact and not where:
        return Selection(resolve_name(store, name), exact=True)
    try:
        return select(name, where, by or None, exact=exact)
    except InvalidName:
        if where or by:
            raise
        # A name of another program may not parse; it is a series of its own.
        return Selection(resolve_name(store, name), exact=True)


def named(selection: Selection, key: Sequence[str | None]) -> str:
    """Return the displayed name of a group: with the labels it was split by."""
    known = {label: value for label, value in zip(selection.by, key, strict=True) if value}
    if not known:
        return name_of(selection)
    pairs = sorted((dict(selection.labels) | known).items())
    return f"{selection.name}{{{','.join(f'{label}={json.dumps(v)}' for label, v in pairs)}}}"
