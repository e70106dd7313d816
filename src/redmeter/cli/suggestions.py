"""Suggestions for a name that is not stored, or is stored as another kind."""

import contextlib
import difflib
import glob
import shlex
from typing import NamedTuple

from redmeter.errors import InvalidName, LimitExceeded
from redmeter.names import parse_name
from redmeter.queries import Queries
from redmeter.reading.selection import selects
from redmeter.store import Store
from redmeter.stored.families import STATES
from redmeter.types import Selection

#: Names suggested for one that is not there, and those that are compared with it.
_SUGGESTED, _COMPARED = 5, 1_000


class SeriesOfName(NamedTuple):
    """All series of one name, with labels and without, by kind; sorted."""

    counters: list[str]
    observed: list[str]
    gauges: list[str]


def series_of_name(store: Store, name: str) -> SeriesOfName:
    """Return the series of a name, with labels and without.

    Raises:
        LimitExceeded: too many names match.
        StoreError: the store is unreachable or refuses.
    """
    literal = glob.escape(name)
    patterns = (literal, literal + "{*")
    names = Queries(store).names
    return SeriesOfName(
        *(
            [one for kind in kinds for each in patterns for one in names(each, kind=kind)]
            for kinds in (("counter",), ("histogram",), STATES)
        )
    )


def is_stored(store: Store, selection: Selection, kind: str) -> bool:
    """Return whether there are series of a kind that a selection means."""
    names = Queries(store).names(glob.escape(selection.name) + "*", kind=kind)
    return any(selects(selection, name) for name in names)


def label_values(series: list[str]) -> dict[str, set[str]]:
    """Return label -> its values, in order of the labels' names."""
    values: dict[str, set[str]] = {}
    for one in series:
        with contextlib.suppress(InvalidName):  # written by someone else
            for key, value in parse_name(one).labels:
                values.setdefault(key, set()).add(value)
    return dict(sorted(values.items()))


def suggestion(store: Store, name: str, *, histograms: bool = False) -> str:
    """Suggest other label sets of a name, or similar names.

    Args:
        histograms: suggest histograms only; otherwise counters, and histograms if no counter fits.
    """
    base = name.partition("{")[0].rstrip("*")
    with contextlib.suppress(LimitExceeded):  # too many to look through
        names = series_of_name(store, base)
        if not histograms and name in names.observed:
            return f"it is a histogram: redmeter summary {shlex.quote(name)}"
        if mine := names.observed if histograms else names.counters or names.gauges:
            return _listed(mine)
        if names.observed:
            return f"it is a histogram: redmeter summary {shlex.quote(base)}"
        for kind in ("histogram",) if histograms else ("counter", "histogram"):
            if some := _similar(store, base, kind):
                return _listed(some)
    return "redmeter names lists all"


def _similar(store: Store, base: str, kind: str) -> list[str]:
    names = Queries(store).names
    near = names(glob.escape(base[:4]) + "*", kind=kind)
    if near:
        return near
    bases = dict.fromkeys(one.partition("{")[0] for one in names(kind=kind))
    return difflib.get_close_matches(base, [*bases][:_COMPARED])


def _listed(names: list[str]) -> str:
    more = len(names) - _SUGGESTED
    rest = f" … ({more:,} more)" if more > 0 else ""
    return f"available: {', '.join(names[:_SUGGESTED])}{rest}"
