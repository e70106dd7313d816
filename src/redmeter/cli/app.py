"""The application: common options, and how an error becomes a message and an exit code."""

import contextlib
import importlib
import itertools
import logging
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, Final, ParamSpec, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command_from_info

import redmeter
from redmeter import interrupts, settings
from redmeter.cli import output
from redmeter.cli.failure import INTERRUPTED as INTERRUPTED
from redmeter.cli.failure import NOT_FOUND as NOT_FOUND
from redmeter.cli.failure import STORE as STORE
from redmeter.cli.failure import USAGE as USAGE
from redmeter.cli.failure import UsageError, failure_of
from redmeter.cli.failure import fail as fail
from redmeter.clock import seconds_of
from redmeter.errors import EmbeddedServerError, InvalidSetting, StoreError, StoreRefused
from redmeter.stored.keys import span

if TYPE_CHECKING:  # redmeter.store loads the Redis client, which the help needs not
    from redmeter.store import Store

#: Command -> the module that registers it, and its summary in the help, in the order of the help.
#: A module is loaded when its command is called.
COMMAND_LIST: Final[Mapping[str, tuple[str, str]]] = {
    "demo": ("demo", "Run a small tea shop with simulated visitors, to look around."),
    "up": ("up", "Run the page, the cleaner, and the embedded server."),
    "stop": ("up", "Stop everything that `up` runs for a store. Its data is kept."),
    "replay": ("replay", "Count the requests in an access log."),
    "count": ("record", "Count events, from a shell script."),
    "set": ("record", "Set a gauge, from a shell script."),
    "observe": ("record", "Record a value of a histogram, from a shell script."),
    "status": ("diagnosis", "Show whether the last five minutes were as usual."),
    "series": ("series", "Show the samples of counters and gauges, oldest first."),
    "summary": ("summary", "Show the distribution of a histogram: mean and percentiles."),
    "explain": ("diagnosis", "Show which routes, labels or messages account for a change."),
    "forecast": ("forecast", "Show the expected range ahead, and past anomalies."),
    "top": ("top", "Rank counters, histograms, or the values of a label."),
    "query": ("query", "Answer a PromQL query, now or over time."),
    "export": ("export", "Write complete intervals of series to a file, one row each."),
    "names": ("names", "List counters with their grand totals, gauges and histograms."),
    "logs": ("logs", "Show logged messages: new, spiking, common and newest ones."),
    "exceptions": ("exceptions", "Show recorded exceptions, grouped by type and place."),
    "mark": ("marks", "Mark a moment that explains a change, such as a deploy."),
    "verdict": ("verdict", "Judge a deploy by the error rate and p95 of each route."),
    "alerts": ("alerts", "Show, check, run, replay and silence alerts."),
    "clean": ("maintenance", "Remove samples that are older than the retention."),
    "retention": ("maintenance", "Show the retention, or change it for all processes at once."),
    "doctor": ("maintenance", "Check the store, and suggest fixes for problems."),
    "migrate": ("migrate", "Move a store to another server, database, prefix or cluster."),
}


def _write_epilog(epilog: str, formatter: Any) -> None:
    """Write "… Examples: A · B" with each example on a line of its own, ready to be copied."""
    before, heading, examples = epilog.rpartition("Examples: ")
    if before:
        formatter.write_paragraph()
        formatter.write_text(before.strip())
    with formatter.section(heading.strip(": ")):
        for example in examples.split(" · "):
            formatter.write(f"  {example}\n")


def _take_texts_as_they_are(parameter: Any) -> None:
    """Keep Typer from loading Pydantic, which takes longer than Redis, to check that text is text.

    Older versions of Typer convert values without it.
    """
    checked = getattr(parameter, "get_runtime_param", None)
    if checked is None or "get_runtime_param" in vars(parameter):
        return
    kind = parameter.type_descriptor.annotation

    def coerce(value: Any, param: Any, ctx: Any) -> Any:
        if type(value) is kind or (kind == list[str] and value is not None):
            return value
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        return checked().coerce(value, param=param, ctx=ctx)

    parameter.get_runtime_param = lambda: SimpleNamespace(coerce=coerce)


class _Command(TyperCommand):
    def get_params(self, ctx: Any) -> Any:
        parameters = super().get_params(ctx)
        for parameter in parameters:
            _take_texts_as_they_are(parameter)
        return parameters

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except UsageError as error:  # an option without its value comes without its command
            vars(error)["ctx"] = getattr(error, "ctx", None) or ctx
            raise

    def format_epilog(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        _write_epilog(self.epilog or "", formatter)


class _Later(TyperCommand):
    """A command in the help and in completions, until its module is loaded."""


def load_command(name: str) -> Any:
    """Load the module of a command, and return what Typer makes of it.

    Args:
        name: one of COMMAND_LIST.
    """
    importlib.import_module(f"redmeter.cli.{COMMAND_LIST[name][0]}")
    info = next(one for one in app.registered_commands if one.name == name)
    return get_command_from_info(info, pretty_exceptions_short=False, rich_markup_mode=None)


class _Group(TyperGroup):
    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = {name: _Later(name, help=text) for name, (_, text) in COMMAND_LIST.items()}

    def get_params(self, ctx: Any) -> Any:
        parameters = super().get_params(ctx)
        for parameter in parameters:
            _take_texts_as_they_are(parameter)
        return parameters

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        if name and isinstance(command, _Later):
            command = self.commands[name] = load_command(name)
        return name, command, rest

    def main(self, args: Any = None, *more: Any, **named: Any) -> Any:
        words = list(sys.argv[1:] if args is None else args)
        output.begin_output(json="--json" in itertools.takewhile(lambda word: word != "--", words))
        return super().main(words, *more, **named)

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        with _reported():  # help and version are printed here
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        with _reported():
            return super().invoke(ctx)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        _write_epilog(self.epilog or "", formatter)


app = typer.Typer(
    name="redmeter",
    cls=_Group,
    help="Application metrics at several time precisions at once, in the Redis you already run.",
    epilog="Examples: redmeter up --detach · redmeter replay access.log --shift-to-now · "
    "redmeter series hits -p 1h",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        envvar="REDMETER_URL",
        show_envvar=True,
        help="redis://, rediss://, redis+sentinel://, redis+cluster://, unix:// or "
        "embedded://PATH. "
        "Without it: the embedded server in your data directory.",
    ),
]
BestEffort = Annotated[
    bool,
    typer.Option("--best-effort", help="On a cluster: leave out the nodes that are unreachable."),
]
Prefix = Annotated[
    str | None,
    typer.Option(
        "--prefix",
        envvar="REDMETER_PREFIX",
        show_envvar=True,
        help='Prefix of every key; "" for the keys of redmeter.book.',
    ),
]
Timezone = Annotated[
    str | None,
    typer.Option(
        "--timezone",
        envvar="REDMETER_TIMEZONE",
        show_envvar=True,
        help="Time zone of the time of day, such as Europe/Berlin. Default: UTC.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Precision = Annotated[
    str, typer.Option("--precision", "-p", help="Interval width: seconds, or 5s, 1m, 5h, 1d.")
]
AnyPrecision = Annotated[
    str | None,
    typer.Option(
        "--precision",
        "-p",
        help="Interval width: seconds, or 5s, 1m, 5h, 1d. Default: the finest that keeps all.",
    ),
]

P = ParamSpec("P")
R = TypeVar("R")


def command(
    *, epilog: str, name: str | None = None, numbers: bool = False
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Register a command.

    Args:
        numbers: arguments may be negative numbers, which look like options; so an unknown option
            is an argument, which the command has to check.
    """
    settings = {"ignore_unknown_options": True} if numbers else None

    def register(function: Callable[P, R]) -> Callable[P, R]:
        app.command(name, cls=_Command, epilog=epilog, context_settings=settings)(function)
        return function

    return register


@contextlib.contextmanager
def _reported() -> Iterator[None]:
    """Report whatever goes wrong, Ctrl-C and a full disk included, and set the exit code."""
    try:
        try:
            with interrupts.interruptible():
                yield
        except (Exception, KeyboardInterrupt) as error:
            failure = failure_of(error)
            if failure is None:
                raise
            output.failed(failure)
            raise typer.Exit(failure.exit_code) from None
        finally:
            output.finish()
            sys.stdout.flush()  # here, where its errors are still ours to handle
    except BrokenPipeError:  # `| head` has seen enough
        _mute()
        raise typer.Exit(0) from None
    except OSError as error:  # the output: its disk is full
        _mute()
        output.error(f"the output: {error.strerror or error}")
        raise typer.Exit(USAGE) from None


def _mute() -> None:
    """Discard pending output, on which the interpreter would otherwise fail as it exits."""
    with contextlib.suppress(OSError, ValueError):  # a stand-in without a descriptor
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextlib.contextmanager
def opened_store(
    url: str | None,
    prefix: str | None,
    *,
    reading: bool = False,
    best_effort: bool | None = None,
    create: bool = False,
    timezone: str | None = None,
) -> "Iterator[Store]":
    """Open the store that the options name, and close it.

    Args:
        reading: for queries only: reads from replicas if the setting `read_from` allows it.
        best_effort: skip the data of unreachable nodes, and name it in a warning; None if the
            command has no such option.
        create: create the directory of an embedded server if the URL names a missing one: for
            commands that write.
        timezone: the setting, for commands that compare hours or days.
    """
    from redmeter import store as stores

    if not create:
        _check_embedded(settings.resolve("url", url))
    store = stores.open(url, prefix=prefix, timezone=timezone)
    if store is None:
        raise InvalidSetting("url", "redmeter is switched off (REDMETER_URL=off); give --url")
    try:
        with output.left_out():
            chosen = store.reader if reading else store
            chosen = chosen.best_effort() if best_effort else chosen
            try:
                yield chosen
            except StoreError as error:
                failure = failure_of(error)
                if (
                    best_effort is None
                    or best_effort
                    or not _others_answer(chosen, error)
                    or not failure
                ):
                    raise
                failure.fix = "--best-effort shows the data of the other nodes"
                raise failure from None
            finally:
                for skipped in chosen.skipped():
                    output.note(f"warning: {skipped}: its data is missing")
    finally:
        store.close()


def _check_embedded(url: str) -> None:
    """Reject a path without an embedded server's data, instead of starting an empty server there.

    Raises:
        EmbeddedServerError: there is no data.
    """
    from redmeter.store.servers import urls

    path = urls.parse_target(url).path
    if path is None or url in ("", "embedded://"):  # the default path has no typing errors
        return
    from redmeter.store import embedded  # loaded only if it is used

    if not embedded.exists(path):
        raise EmbeddedServerError(
            path,
            "no server data found: check the path in --url or REDMETER_URL; `redmeter up` or a "
            "program that records creates it",
        )


def _others_answer(store: "Store", error: StoreError) -> bool:
    """Return whether an error concerns one node of a cluster while others answer."""
    from redmeter.store.servers.retry import unready_reason

    if isinstance(error, StoreRefused):
        return len(store.shards) > 1 and unready_reason(error) != ""
    return bool(store.link.unreachable())


def fail_where_left_out(store: "Store") -> None:
    """Fail if a part of the store was not read, since the missing name may be there."""
    if left_out := store.skipped():
        text = f"not found on the nodes that answer ({'; '.join(left_out)})"
        fail(text, STORE)


def precision_seconds(text: str) -> int:
    """Read the option --precision: 60, 60s, 1m, 1min, 5h or 1d; seconds.

    Raises:
        InvalidSetting: the text has another form.
    """
    return duration_option("--precision", text)


def duration_option(option: str, text: str, *, least: int = 0, most: int | None = None) -> int:
    """Read a duration: 60, 60s, 1m, 1min, 5h or 1d.

    Args:
        option: for the message.
        text: its value.
        least, most: the limits, seconds.

    Raises:
        InvalidSetting: the text has another form, or the duration is too short or too long.
    """
    seconds = seconds_of(text)
    if seconds is None:
        raise InvalidSetting(option, f"{text!r:.40}: give seconds, or 5s, 1m, 5h, 1d")
    if seconds < least:
        raise InvalidSetting(option, f"{text!r:.40}: give {least}s or more")
    if most is not None and seconds > most:
        raise InvalidSetting(option, f"{text!r:.40}: give {span(most)} or less")
    return seconds


def called() -> str:
    """Return how to call this command from here: `redmeter` where that finds it, else its path.

    A path below the working directory is relative to it, e.g. `.venv/bin/redmeter`.
    """
    program, module = Path(sys.argv[0]), ""
    if program.name != "redmeter":  # python -m redmeter
        program = Path(sys.executable).with_name("redmeter")
    if not program.is_file():
        program, module = Path(sys.executable), " -m redmeter"
    command = shutil.which("redmeter")
    try:
        if command is not None and program.samefile(command):
            return "redmeter"
        path = program.absolute()
        if path.is_relative_to(Path.cwd()):
            path = path.relative_to(Path.cwd())
    except OSError:  # the working directory is gone
        return "redmeter"
    text = str(path) if len(path.parts) > 1 else f"./{path}"  # else the shell would look in PATH
    return shlex.quote(text) + module


def again(url: str | None, prefix: str | None = None) -> str:
    """Return the options by which another command finds the same store, to append to it.

    Settings of the environment need no option. A password is not shown again.
    """
    words = ""
    if url is not None and url != os.environ.get("REDMETER_URL"):
        secret = "@" in url or "password" in url
        words += " --url …" if secret else f" --url {shlex.quote(url)}"
    if prefix is not None and prefix != os.environ.get("REDMETER_PREFIX"):
        words += f" --prefix {shlex.quote(prefix)}"
    return words


def _version(wanted: bool) -> None:
    if wanted:
        output.line(f"redmeter {redmeter.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def run_command() -> None:
    """Run the command."""
    logging.getLogger("redmeter").setLevel(logging.ERROR)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed: discard output
            nowhere = os.open(os.devnull, os.O_WRONLY)
            setattr(sys, name, open(nowhere, "w", encoding="utf-8", closefd=False))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        output.take_any(stream)
    app()
