"""Suggestions for a name that is not stored, or is stored as another kind."""

import contextlib
import difflib
import glob
import shlex
from typing import NamedTuple

from redmeter.errors import InvalidName, LimitExceeded
from redmeter.names import parse_name
from redmeter.reading.names import read_names
from redmeter.store import Store

#: Names suggested for one that is not there, and those that are compared with it.
_SUGGESTED, _COMPARED = 5, 1_000


class Stored(NamedTuple):
    """All series of one name, with labels and without, by kind; sorted."""

    counters: list[str]
    observed: list[str]
    gauges: list[str]


def stored(store: Store, name: str) -> Stored:
    """Return the series of a name, with labels and without.

    Raises:
        LimitExceeded: too many names match.
        StoreError: the store is unreachable or refuses.
    """
    literal = glob.escape(name)

    def read(**kind: bool) -> list[str]:
        patterns = (literal, literal + "{*")
        return [one for each in patterns for one in read_names(store, each, **kind)]

    return Stored(read(), read(histograms=True), read(gauges=True))


def labels_of(series: list[str]) -> dict[str, set[str]]:
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
        names = stored(store, base)
        if not histograms and name in names.observed:
            return f"it is a histogram: redmeter summary {shlex.quote(name)}"
        if mine := names.observed if histograms else names.counters or names.gauges:
            return _listed(mine)
        if names.observed:
            return f"it is a histogram: redmeter summary {shlex.quote(base)}"
        kinds = (True,) if histograms else (False, True)
        for kind in kinds:
            if some := _similar(store, base, histograms=kind):
                return _listed(some)
    return "redmeter names lists all"


def _similar(store: Store, base: str, *, histograms: bool) -> list[str]:
    def read(pattern: str) -> list[str]:
        return read_names(store, pattern, histograms=histograms)

    near = read(glob.escape(base[:4]) + "*")
    return near or difflib.get_close_matches(base, read("*")[:_COMPARED])


def _listed(names: list[str]) -> str:
    more = len(names) - _SUGGESTED
    rest = f" … ({more:,} more)" if more > 0 else ""
    return f"available: {', '.join(names[:_SUGGESTED])}{rest}"
