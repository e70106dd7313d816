"""Shell completion of names of series, labels and marks: what the store has, within a second.

A shell waits for the answer while somebody types, so it is silent: without a store, with a wrong
password, or after a second there are no suggestions. An embedded server that does not run is not
started. Names are untrusted, and a shell runs what it inserted: a text that needs quotes, such as
`$(reboot)`, is not suggested.
"""

import atexit
import contextlib
import glob
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from redmeter.store import Store

#: How long a shell waits.
COMPLETION_SECONDS = 1.0
#: Suggestions at most.
_MOST = 500
#: A text that means itself in every shell.
_PLAIN = re.compile(r"\w[\w@%+=:,./-]*")


def complete_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Suggest names of series, without labels."""

    def names(store: "Store") -> Iterable[str]:
        from redmeter.queries import Queries

        pattern, queries = glob.escape(incomplete) + "*", Queries(store)
        for kind in ("counter", "gauge", "histogram"):
            yield from (name.partition("{")[0] for name in queries.names(pattern, kind=kind))

    return _suggestions(ctx, incomplete, names)


def complete_labels(ctx: typer.Context, incomplete: str) -> list[str]:
    """Suggest LABEL=VALUE of the series that the command line names."""
    return _suggestions(
        ctx,
        incomplete,
        lambda store: (
            f"{label}={value}"
            for label, values in _labels(store, ctx).items()
            for value in sorted(values)
        ),
    )


def complete_keys(ctx: typer.Context, incomplete: str) -> list[str]:
    """Suggest labels of the series that the command line names."""
    return _suggestions(ctx, incomplete, lambda store: _labels(store, ctx))


def complete_marks(ctx: typer.Context, incomplete: str) -> list[str]:
    """Suggest labels of marks, the newest first."""

    def labels(store: "Store") -> Iterable[str]:
        from redmeter.queries import Queries

        return (mark.label for mark in reversed(Queries(store).marks()))

    return _suggestions(ctx, incomplete, labels)


def _labels(store: "Store", ctx: typer.Context) -> dict[str, set[str]]:
    from redmeter.cli.suggestions import label_values, series_of_name

    # Of a command line that ends with an option without its value, Click only reads the options.
    given = ctx.params.get("name") or ctx.args
    series: list[str] = []
    for name in [given] if isinstance(given, str) else given:
        for names in series_of_name(store, name.partition("{")[0]):
            series += names
    return label_values(series)


def _suggestions(
    ctx: typer.Context, incomplete: str, read: Callable[["Store"], Iterable[str]]
) -> list[str]:
    """Return the texts that a reading of the store gives and that begin with the typed one."""
    found: dict[str, None] = {}

    def fill() -> None:
        try:
            with contextlib.closing(_store(ctx.params)) as store:
                for text in read(store):
                    if text.startswith(incomplete) and _PLAIN.fullmatch(text):
                        found[text] = None
        except Exception:  # noqa: BLE001, S110  whatever it is, the shell goes on
            pass

    reader = threading.Thread(target=fill, daemon=True)
    reader.start()
    reader.join(COMPLETION_SECONDS)
    if reader.is_alive():
        atexit.register(_leave, reader)
    return list(found)[:_MOST]


def _leave(reader: threading.Thread) -> None:
    """End the process at once, where the interpreter would wait for a thread that waits."""
    if reader.is_alive():
        sys.stdout.flush()
        os._exit(0)


def _store(options: dict[str, Any]) -> "Store":
    """Open the store of the command line.

    Raises:
        LookupError: there is none, or only an embedded server that does not run.
        RedmeterError: the options are wrong.
    """
    from redmeter import settings, store
    from redmeter.store import embedded
    from redmeter.store.servers import urls

    url, prefix = options.get("url"), options.get("prefix")
    target = urls.parse_target(settings.resolve("url", url))
    if target.path is not None and embedded.running(target.path) is None:
        raise LookupError
    opened = store.open(url, prefix=prefix, timeout=COMPLETION_SECONDS)
    if opened is None:
        raise LookupError
    return opened
