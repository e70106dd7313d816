"""Write the generated reference pages, or check that they are current.

    python tools/docs.py            writes the pages in docs/reference/, the texts of the options of
                                    web integrations, and the table of losses
    python tools/docs.py --check    exits 1 and names the fix where one of them is stale

The pages are made from what the code itself says: the signatures and docstrings of the commands,
the table of settings. Not from --help, whose lines depend on the terminal and on Typer's version.
"""
# ruff: noqa: INP001

import ast
import importlib
import inspect
import pkgutil
import re
import sys
import textwrap
import types
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from typer.models import ArgumentInfo, CommandInfo, OptionInfo

from redmeter import Meter, cli
from redmeter.cli import failure
from redmeter.cli.app import app
from redmeter.ingest.formats import FORMATS
from redmeter.ingest.log_reader import LogReader
from redmeter.integrations.shared import options
from redmeter.results.recorder import LOSS_REASONS
from redmeter.settings import SETTINGS, WEB, Setting

sys.path.insert(0, str(Path(__file__).parent))
import python_api

ROOT = Path(__file__).parents[1]
OPTIONS = "src/redmeter/integrations/shared/options.py"
FAULTS = "docs/faults.md"
LOGS = "docs/how-to/web-server-logs.md"
FIX = "python tools/docs.py writes it anew (so does make format)"
_GENERAL = """\
`redmeter --version` prints the version, `redmeter --help` and `redmeter COMMAND --help` the help,
`redmeter --install-completion` sets up completion in your shell, which also offers the names of
series, the labels and the marks of the store.

On a terminal, the commands print tables and charts. In a file or a pipe, they print tab-separated
columns with a header line, and times in ISO 8601 in UTC: `2026-11-21T15:30:05Z`, with microseconds
where a time has them. With `--json`, they print one JSON object, and times in Unix seconds;
`redmeter clean --daemon --json` prints one for each pass, on a line of its own.

Errors are one line on standard error, `error: MESSAGE; FIX`. With `--json`, a command that fails
also adds the field `error` to its object, or prints it alone if there is no result:

```json
{"error": {"code": "not-found", "message": "there are no counters yet", "fix": null}}
```

The fields are the same as in errors of [the page's API](../dashboard.md). `fix` is null if there is
none, or if the message contains it. Codes:

CODES
An object without `error` means that the command succeeded; `redmeter doctor` reports the problems
it finds in `level` and in its exit code. A command that is interrupted while it starts prints no
object.
"""
_PRECEDENCE = """\
A value given in code or as an option of a command wins over the environment, the environment over
the default. A value that cannot be used is an `InvalidSetting` that names where it came from.
"""
_MADE = "<!-- Made by tools/docs.py from the code; change it there. -->\n"


def pages() -> dict[str, str]:
    """Return the generated pages: path below the project -> text."""
    return {
        "docs/reference/commands.md": commands_page(),
        "docs/reference/settings.md": settings_page(),
        python_api.PATH: python_api.page(),
        OPTIONS: options_source(inspect.getsource(options)),
        FAULTS: with_losses(_read(ROOT / FAULTS) or ""),
        LOGS: with_formats(_read(ROOT / LOGS) or ""),
    }


def with_losses(page: str) -> str:
    """Return a page whose table of reasons for losses is that of redmeter/results/recorder.py."""
    rows = "".join(
        f"| `{name}` | {reason.cause} | {reason.fix} |\n" for name, reason in LOSS_REASONS.items()
    )
    return _with_table(page, "losses", f"| reason | cause | fix |\n|---|---|---|\n{rows}")


def with_formats(page: str) -> str:
    """Return a page whose table of log formats is that of redmeter/ingest/formats.py.

    Each example is read as `redmeter replay` reads it, to show how it is understood.
    """
    rows = "| format | written by | a line | understood as |\n|---|---|---|---|\n"
    for name, row in FORMATS.items():
        lines = row.example.split("\n")
        reader = LogReader(now=lambda: 0.0)
        hit = [reader.parse_hit(line) for line in lines][-1]
        assert hit is not None, name
        known = f"{hit.method} {hit.path}, {hit.status}"
        if hit.seconds is not None:
            known += f", {hit.seconds:g} s"
        example = "<br>".join(f"`{_cell(line)}`" for line in lines).replace("\t", " ")
        rows += f"| `{name}` | {row.servers} | {example} | {known} |\n"
    return _with_table(page, "formats", rows)


def _with_table(page: str, name: str, table: str) -> str:
    begin, end = f"<!-- {name}: made by tools/docs.py -->\n", f"<!-- end of {name} -->\n"
    before, _, rest = page.partition(begin)
    return before + begin + table + end + rest.partition(end)[2]


def stale(root: Path) -> dict[str, str]:
    """Return the pages that are missing below a folder or differ there: path -> text."""
    return {path: text for path, text in pages().items() if _read(root / path) != text}


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


# ---------------------------------------------------------------- commands


def commands_page() -> str:
    """Return the reference of the command line."""
    for module in pkgutil.iter_modules(cli.__path__):
        importlib.import_module(f"redmeter.cli.{module.name}")  # each registers its commands
    found = sorted(app.registered_commands, key=lambda one: one.name or "")
    listed = [f"| [`redmeter {c.name}`](#redmeter-{c.name}) | {_summary(c)} |" for c in found]
    parts = [
        _MADE,
        "# Commands\n",
        f"{app.info.help}\n",
        "| command | what it does |\n|---|---|\n" + "\n".join(listed) + "\n",
        _GENERAL.replace("CODES\n", _error_codes()),
        f"{_exit_codes()}\n",
    ]
    return "\n".join(parts + [_command(one) for one in found])


def _exit_codes() -> str:
    """Return the paragraph of the package's docstring that lists the exit codes, as a table."""
    found = re.search(r"Exit codes: (.*?)\n\n|Exit codes: (.*)", cli.__doc__ or "", re.DOTALL)
    assert found, "redmeter.cli tells its exit codes"
    text = " ".join((found[1] or found[2]).split()).rstrip(".")
    rows = [code.partition(" ") for code in text.split(" · ")]
    return "| exit code | meaning |\n|---|---|\n" + "\n".join(
        f"| {code} | {meaning} |" for code, _, meaning in rows
    )


def _error_codes() -> str:
    """Return the codes of errors, as a table."""
    rows = [f"| `{code}` | {meaning} |\n" for code, meaning in failure.MEANINGS.items()]
    return "| `code` | meaning |\n|---|---|\n" + "".join(rows) + "\n"


def _command(command: CommandInfo) -> str:
    assert command.callback is not None
    text = inspect.cleandoc(command.callback.__doc__ or "")
    paragraphs = [" ".join(each.split()) for each in text.split("\n\n")]
    rows, usage = [], [f"redmeter {command.name} [OPTIONS]"]
    for name, kind, info, default in _parameters(command.callback):
        rows.append(_row(name, kind, info, default))
        if isinstance(info, ArgumentInfo):
            usage.append(_argument(name, kind, required=default is inspect.Parameter.empty))
    parts = [f"## redmeter {command.name}\n", *(f"{each}\n" for each in paragraphs)]
    parts.append(f"    {' '.join(usage)}\n")
    parts.append("| | default | meaning |\n|---|---|---|\n" + "\n".join(rows) + "\n")
    parts.append(_epilog(command.epilog or ""))
    return "\n".join(parts)


def _parameters(
    function: Callable[..., Any],
) -> Iterator[tuple[str, Any, ArgumentInfo | OptionInfo, object]]:
    """Yield name, type, Typer's description and default of each parameter."""
    for name, parameter in inspect.signature(function, eval_str=True).parameters.items():
        kind, info = typing.get_args(parameter.annotation)
        if not getattr(info, "hidden", False):
            yield name, kind, info, parameter.default


def _row(name: str, kind: Any, info: ArgumentInfo | OptionInfo, default: object) -> str:
    if isinstance(info, ArgumentInfo):
        what = f"`{_argument(name, kind, required=True)}`"
    else:
        # Where there is an Annotated, Typer finds the first of the options in `default`.
        given = [info.default, *(info.param_decls or ())]
        what = ", ".join(f"`{each}`" for each in given if str(each).startswith("-"))
        plain = _plain(kind)
        words = {str: "TEXT", int: "NUMBER", float: "NUMBER", Path: "FILE", bool: ""}
        word = info.metavar.strip("<>").upper() if info.metavar else words[plain]
        what += f" {word}" if word else ""
    meaning = info.help or ""
    if isinstance(info, OptionInfo) and info.min is not None:
        meaning += f" At least {info.min}."
    if info.envvar:
        meaning += f" Also from the environment: `{info.envvar}`."
    missing = (None, False, inspect.Parameter.empty)
    shown = "" if any(default is each for each in missing) else f"`{default}`"
    return f"| {what} | {shown} | {_cell(meaning)} |"


def _argument(name: str, kind: Any, *, required: bool) -> str:
    many = typing.get_origin(_plain(kind)) is list
    text = name.upper() + ("..." if many else "")
    return text if required else f"[{text}]"


def _plain(kind: Any) -> Any:
    """Return T of T | None."""
    if isinstance(kind, types.UnionType):
        (kind,) = [each for each in typing.get_args(kind) if each is not type(None)]
    return kind


def _epilog(text: str) -> str:
    """Return what a command says below its options, its examples as a list."""
    before, _, examples = text.partition("Examples: ")
    lines = []
    for example in examples.split(" · ") if examples else []:
        found = re.fullmatch(r"(.*?)(?: \((.*)\))?", example)
        assert found
        lines.append(f"- `{found[1]}`" + (f" ({found[2]})" if found[2] else ""))
    paragraphs = [before.strip(), "\n".join(["Examples:\n", *lines]) if lines else ""]
    return "\n\n".join(each for each in paragraphs if each) + "\n"


def _summary(command: CommandInfo) -> str:
    assert command.callback is not None
    return inspect.cleandoc(command.callback.__doc__ or "").partition("\n")[0]


# ---------------------------------------------------------------- settings


def settings_page() -> str:
    """Return the reference of the settings."""
    accepted = inspect.signature(Meter.__init__).parameters
    rows = [
        f"| `{one.name}` | `{one.variable}` | {_default(one)} | {one.unit} | {_cell(one.help)} |"
        for one in SETTINGS
    ]
    by_code = [f"`{one.name}`" for one in SETTINGS if one.name in accepted]
    web = [f"`{name}`" for name in WEB]
    others = [
        f"`{one.name}`" for one in SETTINGS if one.name not in accepted and one.name not in WEB
    ]
    verb = "is" if len(others) == 1 else "are"
    named = " and ".join([", ".join(others[:-1]), *others[-1:]] if others[1:] else others)
    rest = f"; {named} {verb} set by the environment alone" if others else ""
    return "\n".join(
        [
            _MADE,
            "# Settings\n",
            _PRECEDENCE,
            "| setting | environment | default | unit | meaning |\n|---|---|---|---|---|\n"
            + "\n".join(rows)
            + "\n",
            f"In code, `Meter` takes {', '.join(by_code[:-1])} and {by_code[-1]}{rest}.",
            "The [integrations of web applications](../integrations/web.md) take",
            f"{', '.join(web[:-1])} and {web[-1]}, and without a meter what `Meter` takes.",
            "The commands take `--url` and `--prefix`. Forms and options of the URL:",
            "[Use your own Redis](../how-to/servers.md#use-your-own-redis).\n",
        ]
    )


def _default(setting: Setting) -> str:
    text = str(setting.default)
    if isinstance(setting.default, float):
        text = f"{setting.default:g}"
    return f"`{text}`" if text else "(empty)"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


# ---------------------------------------------------------------- options in code


def options_source(source: str) -> str:
    """Return a module with the table's text below each setting that its class Arguments lists."""
    table = {one.name: one for one in SETTINGS}
    (arguments,) = (
        each
        for each in ast.parse(source).body
        if isinstance(each, ast.ClassDef) and each.name == "Arguments"
    )
    lines = source.splitlines()
    for number, each in reversed(list(enumerate(arguments.body))):
        if not isinstance(each, ast.AnnAssign) or not isinstance(each.target, ast.Name):
            continue
        if each.target.id in table:
            after = arguments.body[number + 1 : number + 2]
            end = each.end_lineno or 0
            documented = after and isinstance(after[0], ast.Expr)
            lines[end : after[0].end_lineno if documented else end] = _docstring(
                table[each.target.id]
            )
    return "\n".join(lines) + "\n"


def _docstring(setting: Setting) -> list[str]:
    """Return a setting's text, unit and default as a docstring below an attribute."""
    text = setting.help.removeprefix("Web requests: ")
    default = _default(setting) if str(setting.default) else "empty"
    unit = f", in {setting.unit}" if setting.unit in ("seconds", "bytes") else ""
    text = f'"""{text[0].upper()}{text[1:]} Default{unit}: {default}."""'
    indent = " " * 4
    return textwrap.wrap(
        text,
        100,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def main(arguments: list[str]) -> int:
    """Write the pages, or check them; return the exit code."""
    if arguments not in ([], ["--check"]):
        sys.stderr.write("usage: tools/docs.py [--check]\n")
        return 2
    found = stale(ROOT)
    for path, text in found.items():
        if arguments:
            sys.stderr.write(f"{path} is stale: {FIX}\n")
            continue
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(text, encoding="utf-8")
        sys.stdout.write(f"written: {path}\n")
    return int(bool(arguments and found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
