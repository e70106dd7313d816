"""migrate: a store to another server, database, prefix, or to a cluster."""

import contextlib
import dataclasses
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Annotated, Any

import typer

from redmeter import migrating, settings
from redmeter import store as stores
from redmeter.cli import output
from redmeter.cli.app import NOT_FOUND, STORE, AsJson, Prefix, command, fail
from redmeter.errors import InvalidSetting
from redmeter.keys import Kept
from redmeter.migrating.report import Report, Survey, differences, shown
from redmeter.store import Store, embedded, urls

_FROM = "URL of the store to move, as in --url of other commands."
_TO = "URL of the new store; redis+cluster:// too."
_NOTHING = "FROM has nothing to move: are its URL and prefix (--from-prefix) right?"


@command(
    name="migrate",
    epilog="Examples: redmeter migrate redis://one/0 redis+cluster://a,b,c --dry-run · "
    "redmeter migrate redis://one/0 redis+cluster://a,b,c · "
    "redmeter migrate redis://one/0 redis://one/0 --from-prefix ''",
)
def migrate(
    source: Annotated[
        str,
        typer.Argument(
            metavar="FROM", envvar="REDMETER_PREVIOUS_URL", show_envvar=True, help=_FROM
        ),
    ],
    target: Annotated[
        str, typer.Argument(metavar="TO", envvar="REDMETER_URL", show_envvar=True, help=_TO)
    ],
    from_prefix: Annotated[
        str | None,
        typer.Option(
            "--from-prefix",
            envvar="REDMETER_PREVIOUS_PREFIX",
            show_envvar=True,
            help="Prefix of every key of FROM, if it differs; "
            '"" for the keys of redmeter.book and the listings, = for the prefix of TO.',
        ),
    ] = None,
    prefix: Prefix = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would move; change nothing.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Move a store to another server, database or prefix, or to a cluster, while it is in use.

    First let the writers write to TO, and the readers read both (REDMETER_PREVIOUS_URL). The
    command then moves the data from FROM to TO; each event counts once, whatever fails on the way.
    If it is interrupted or killed, run it again: it resumes. Run it again as well if a late writer
    wrote to FROM. TO's retention applies; data that TO does not keep stay in FROM.
    """
    with _opened(source, target, from_prefix, prefix) as (one, other):
        if dry_run:
            _tell_survey(migrating.survey(one, other), json)
            return
        for text in _differences(one, other):
            output.note(text)
        brake = _Brake()
        with brake, output.progress("moving") as show:
            report = migrating.migrate(
                one, other, progress=show, quit=brake.is_pulled, waiting=_tell_waiting
            )
    interrupted = brake.pulled and not report.finished
    if json:
        output.as_json(report.as_dict())
    elif report.finished or report.pieces:
        _tell(report, interrupted=interrupted)
    if interrupted:
        output.note("interrupted; the same command goes on")
        raise KeyboardInterrupt
    if report.nothing:
        fail(_NOTHING, NOT_FOUND)
    if report.left:
        left = [f"{key} ({ascii(what)[1:-1]})" for key, what in report.left.items()]
        fail(f"TO has not stored all of what stays in FROM under {shown(left)}", STORE)


class _Brake:
    """Ctrl-C ends the run after what is under way; a second one ends it at once."""

    def __init__(self) -> None:
        self.pulled = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._pull)

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def is_pulled(self) -> bool:
        """Whether it was pulled."""
        return self.pulled

    def _pull(self, _signal: int, _frame: FrameType | None) -> None:
        if self.pulled:
            raise KeyboardInterrupt
        self.pulled = True


@contextlib.contextmanager
def _opened(
    source: str, target: str, from_prefix: str | None, prefix: str | None
) -> Iterator[tuple[Store, Store]]:
    """Open both stores, and close them. Where TO is new, it will keep what FROM keeps."""
    own = settings.resolve("prefix", prefix)
    # Not what the option has: an empty variable is none to that, and here it is the empty prefix.
    theirs = settings.resolve("previous_prefix", from_prefix)
    path = urls.parse(source).path
    if path is not None and not embedded.exists(path):  # rather than to make one there
        raise InvalidSetting("FROM", f"there is no store in {path}")
    alone: dict[str, Any] = {"read_from": "master", "previous_url": ""}
    one = stores.open(source, prefix=own if theirs == settings.SAME else theirs, **alone)
    if one is None:
        raise InvalidSetting("FROM", "off is no store")
    one.act_as("FROM")
    try:
        view, _ = one.read()
        if view.version:
            alone |= {"retention": view.retention, "histogram_retention": view.histograms}
        other = stores.open(target, prefix=own, **alone)
        if other is None:
            raise InvalidSetting("TO", "off is no store")
        other.act_as("TO")
        try:
            yield one, other
        finally:
            other.close()
    finally:
        one.close()


def _differences(one: Store, other: Store) -> list[str]:
    """Return what TO keeps otherwise than FROM says, in words."""
    theirs, ours = one.read()[0], other.read()[0]
    if not theirs.version:
        return []
    return differences(
        Kept(theirs.retention, theirs.histograms), Kept(ours.retention, ours.histograms)
    )


def _tell_survey(found: Survey, json: bool) -> None:
    if json:
        output.as_json(dataclasses.asdict(found))
        return
    rows = [
        (kind, _width(precision), number, found.entries[kind][precision])
        for kind, some in found.series.items()
        for precision, number in sorted(some.items())
    ]
    output.table(["KIND", "PRECISION", "SERIES", "ENTRIES"], rows, right={1})
    if found.lost:
        what = f"what it had stored from batch {found.lost:,} on"
        output.line(f"TO has lost {what}, or a part of that: the move sends it again first")
    if found.moved and not found.series:
        output.line(f"all of it was moved to {found.moved}")
    elif not (found.series or found.unkept or found.lost):
        output.line(_NOTHING)
    if found.new and found.told:
        output.line("TO is new, and will keep what FROM keeps")
    elif found.new:
        output.line(
            "TO is new, and FROM does not say what it keeps: TO will keep what is configured"
        )
    for text in found.differences:
        output.line(text)
    if found.short:
        output.line(
            "FROM may lack memory for what was taken, which stays there for a day: raise its "
            f"maxmemory by {-(-found.short // 1_000_000):,} MB"
        )
    _tell_left(found.unkept, found.strange)


def _tell_waiting(most: float) -> None:
    output.note(f"another run is or was at work: waiting, {most:.0f} s at most")


def _tell(report: Report, *, interrupted: bool) -> None:
    rows = [
        (
            *(kind, _width(precision), one.taken, one.stored, one.aged + one.future),
            *((one.looked_for, one.found) if one.looked_for else ("", "")),
        )
        for kind, some in report.sums.items()
        for precision, one in sorted(some.items())
        if one.taken
    ]
    if rows:
        output.table(
            ["KIND", "PRECISION", "TAKEN", "STORED", "TOO OLD", "LOOKED FOR", "FOUND"],
            rows,
            right={1, 5, 6},
        )
    whole, many = report.total(), output.many
    output.line(
        f"{many(report.pieces, 'piece')} in {many(report.batches, 'batch', 'batches')}, "
        f"{report.seconds:.1f} s: {whole.taken:,} taken, {whole.stored:,} stored; "
        f"looked for {whole.looked_for:,}, found {whole.found:,}"
    )
    if report.resumed:
        now = report.now().taken
        output.line(f"with all earlier runs; this one took {now:,}")
        if report.complete and not now:
            output.line("nothing lies in FROM any more that moves: readers may do without it")
    for count, what in (
        (report.again, "sent again, since TO had stored and then lost them"),
        (whole.refused * bool(report.left), "refused by TO, and kept in FROM"),
        (whole.uncertain, "stored or not, nobody can know: TO has lost who had sent what"),
        (whole.unread, "not of the form, and not moved: gone from FROM in a day"),
    ):
        if count:
            output.line(f"{count:,} {what}")
    if whole.found > whole.looked_for:
        output.line("found are more than stored: others wrote the same slices meanwhile")
    _tell_left(report.unkept, report.strange)
    if report.stragglers:
        number = many(report.stragglers, "piece was", "pieces were")
        output.line(f"{number} written to FROM while it was moved")
    if (report.stragglers or not report.finished) and not interrupted:
        output.line("FROM is still written to: let all writers move, then run it again")


def _tell_left(unkept: dict[str, dict[int, int]], strange: list[str]) -> None:
    for kind, some in unkept.items():
        for precision, number in sorted(some.items()):
            text = output.many(number, "series", "series")
            output.line(f"left in FROM, as TO does not keep {_width(precision)}: {text} of {kind}")
    if strange:
        output.line(f"left alone, since they are none of ours: {shown(map(ascii, strange))}")


def _width(precision: int) -> str:
    return output.span(precision) if precision else ""
