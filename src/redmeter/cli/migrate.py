"""migrate: a store to another server, database, prefix or cluster."""

import contextlib
import dataclasses
import signal
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Annotated, Any

import typer

from redmeter import migrating, settings
from redmeter import store as stores
from redmeter.cli import output
from redmeter.cli.app import AsJson, Prefix, command, fail
from redmeter.cli.failure import NOT_FOUND, STORE, USAGE, Failure
from redmeter.errors import InvalidSetting, StoreError
from redmeter.store import Store, embedded
from redmeter.store.servers import urls

#: From how long a freeze on the command asks first, seconds.
ASKED = 60.0
_SOURCE = "URL of the store to move, as in --url of other commands."
_TARGET = "URL of the new store."
#: Reasons of a MigrationError that another option or argument mends.
_USAGE = {"same", "prefix", "taken", "not-empty", "moved-elsewhere"}


@command(
    name="migrate",
    epilog="Examples: redmeter migrate redis://old redis://new --dry-run · "
    "redmeter migrate redis://old redis+cluster://a,b,c --yes · "
    "redmeter migrate redis://new redis://old --replace · "
    "redmeter migrate redis://old redis://old --prefix '' --target-prefix redmeter:",
)
def migrate_command(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help=_SOURCE)],
    target: Annotated[str, typer.Argument(metavar="TARGET", help=_TARGET)],
    prefix: Prefix = None,
    target_prefix: Annotated[
        str | None,
        typer.Option("--target-prefix", help="Prefix of every key of TARGET, if different."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be copied; change nothing.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask before a long freeze.")
    ] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Remove the data that TARGET has, to move back to it.")
    ] = False,
    erase: Annotated[
        bool, typer.Option("--erase", help="Remove the data of SOURCE after the move.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Move a store to another server, database, prefix or cluster.

    The move is a short planned outage: SOURCE accepts no events while it is copied. Writers keep
    theirs in memory, and send them to REDMETER_NEXT_URL afterwards. If the command is interrupted,
    or fails, SOURCE is in use again and unchanged, unless it reports otherwise; running the same
    command again is always safe.
    """
    with _opened(source, target, prefix, target_prefix) as (old, new):
        survey = migrating.survey(old)
        if not survey.total and not survey.moved:
            fail("SOURCE has no data: are its URL and prefix right?", NOT_FOUND)
        with _steps("checking") as (_, options):
            migrating.check(old, new, replace=replace, **options)
        if dry_run:
            _show_survey(survey, json, asks=survey.freeze_seconds > ASKED and not yes)
            return
        if survey.freeze_seconds > ASKED and not yes:
            _ask(survey)
        with _steps("copying") as (show, options):
            report = migrating.migrate(
                *(old, new),
                replace=replace,
                erase=erase,
                progress=lambda done: show(done, survey.total),
                **options,
            )
    _show(report, json)


@contextlib.contextmanager
def _steps(text: str) -> Iterator[tuple[output.Show, dict[str, Any]]]:
    """Show progress, and what is waited for; stop at Ctrl-C; explain errors.

    Yields:
        The function that shows progress, and the options `waiting` and `quit`.
    """
    brake = _Brake()
    try:
        with brake, output.progress(text) as show:

            def waiting(what: str, left: float) -> None:
                show(0, None, f"waiting for {what}, at most {left:.0f} s")

            yield show, {"waiting": waiting, "quit": brake.is_pulled}
    except migrating.Interrupted:
        output.note("SOURCE is in use again, and unchanged; the same command starts again")
        raise KeyboardInterrupt from None
    except migrating.MigrationError as error:
        code = USAGE if error.reason in _USAGE else STORE
        again = "" if code == USAGE else "the same command starts again, or goes on"
        raise Failure(str(error), code, fix=again) from error
    except StoreError:
        output.note("run the same command again: it starts again, or goes on")
        raise


class _Brake:
    """Ctrl-C stops the run after the current step, and SIGTERM too; a second one at once."""

    def __init__(self) -> None:
        self._pulled = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._pull)

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def is_pulled(self) -> bool:
        """Whether somebody pressed Ctrl-C."""
        return self._pulled

    def _pull(self, _signal: int, _frame: FrameType | None) -> None:
        if self._pulled:
            raise KeyboardInterrupt
        self._pulled = True


@contextlib.contextmanager
def _opened(
    source: str, target: str, prefix: str | None, target_prefix: str | None
) -> Iterator[tuple[Store, Store]]:
    """Open both stores, and close them."""
    path = urls.parse_target(source).path
    if path is not None and not embedded.exists(path):  # rather than to create one there
        raise InvalidSetting("SOURCE", f"there is no store in {path}")
    source_prefix = settings.resolve("prefix", prefix)
    other = source_prefix if target_prefix is None else target_prefix
    with contextlib.ExitStack() as stack:
        both = []
        for name, url, key_prefix in (("SOURCE", source, source_prefix), ("TARGET", target, other)):
            store = stores.open(url, prefix=key_prefix)
            if store is None:
                raise InvalidSetting(name, "off is no store")
            both.append(stack.enter_context(contextlib.closing(store)))
        yield both[0], both[1]


def _ask(survey: migrating.Survey) -> None:
    seconds = f"{survey.freeze_seconds:.0f} s"
    text = f"{output.many(survey.total, 'key')}: SOURCE would be frozen for about {seconds}"
    if not sys.stdin.isatty():
        fail(text, USAGE, "give --yes")
    output.note(text)
    if not typer.confirm("Go on?", err=True):
        raise KeyboardInterrupt


def _show_survey(survey: migrating.Survey, json: bool, *, asks: bool) -> None:
    if json:
        output.print_json(dataclasses.asdict(survey) | {"total": survey.total})
        return
    output.table(["FAMILY", "KEYS"], sorted(survey.keys.items()))
    output.line(
        f"{output.many(survey.total, 'key')}: SOURCE would be frozen for about "
        f"{survey.freeze_seconds:.1f} s{'; without --yes, the command asks before' if asks else ''}"
    )


def _show(report: migrating.MigrationReport, json: bool) -> None:
    if unconfirmed := [server for server, seal in report.seal.items() if seal == "unconfirmed"]:
        output.note(
            f"warning: no replica of {', '.join(unconfirmed)} has confirmed that SOURCE has moved; "
            "a failover now may make SOURCE accept events next to TARGET. Check the replicas, and "
            "run the same command again: it asks them again"
        )
    if json:
        output.print_json(dataclasses.asdict(report) | {"total": report.total})
        return
    if report.already:
        output.line("everything was copied before; TARGET is in use")
    else:
        output.table(["FAMILY", "KEYS"], sorted(report.keys.items()))
        output.line(
            f"{output.many(report.total, 'key')} with {output.many(report.values, 'value')} in "
            f"{report.seconds:.1f} s; SOURCE was frozen for {report.freeze_seconds:.1f} s and "
            "accepts no events any more"
        )
    if alone := [server for server, seal in report.seal.items() if seal == "no replica"]:
        output.line(f"no replica is connected to {', '.join(alone)}: only it knows of the move")
    if report.foreign:
        shown = ", ".join(report.foreign_keys)
        output.line(f"{report.foreign:,} of other programs, not copied: {shown}")
    if report.erased:
        output.line(f"{output.many(report.erased, 'key')} removed from SOURCE")
