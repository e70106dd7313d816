"""The reference of the Python API, made from signatures, docstrings and `#:` comments.

tools/docs.py writes it. The names are those of docs/compatibility.md; tests/docs compares them.
"""
# ruff: noqa: INP001

import ast
import dataclasses
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import Any, NamedTuple

import redmeter
from redmeter import results

PATH = "docs/reference/python-api.md"

#: Methods of Meter, by purpose.
METHODS = {
    "Record": (
        *("count", "counter", "gauge", "observe", "histogram", "timer", "count_exceptions"),
        *("log", "record_exception", "mark"),
    ),
    "Read counters and gauges": (
        *("series", "gauge_series", "forecast", "total", "names", "top"),
        *("series_many", "gauge_series_many"),
    ),
    "Read histograms": ("summary", "summary_many", "statistics"),
    "Read logs and exceptions": (
        *("log_messages", "log_frequencies", "loggers", "log_changes"),
        *("exceptions", "exception"),
    ),
    "Ask whether all is well": ("status", "explain", "verdict", "marks"),
    "Query in PromQL": ("query",),
    "Control": ("flush", "flush_on_sigterm", "recorder_health", "close"),
}
INSTRUMENTS = ("Counter", "Gauge", "Histogram", "Timer", "InProgress", "CountedExceptions")
#: Modules and their public names.
MODULES = {
    "redmeter.testing": ("MemoryMeter", "Event", "Logged", "ManualClock"),
    "redmeter.book": (
        *("update_counter", "get_counter", "clean_counters", "log_recent", "log_common"),
        *("update_stats", "get_stats", "access_time"),
    ),
    "redmeter.integrations.asgi": ("RedmeterMiddleware", "from_env"),
    "redmeter.integrations.wsgi": ("RedmeterMiddleware", "from_env"),
    "redmeter.integrations.flask": ("Redmeter",),
    "redmeter.integrations.django": ("RedmeterMiddleware", "meter"),
    "redmeter.integrations.django_db": ("install",),
    "redmeter.integrations.sqlalchemy": ("install",),
    "redmeter.integrations.celery": ("install",),
    "redmeter.integrations.rq": ("install",),
    "redmeter.integrations.process": ("install",),
    "redmeter.integrations.logging": ("install", "RedmeterHandler"),
    "redmeter.integrations.structlog": ("RedmeterProcessor",),
    "redmeter.dashboard": ("Dashboard",),
    "redmeter.dashboard.django": ("dashboard_urls",),
    "redmeter.analysis.text.secrets": ("mask",),
}
#: Modules whose docstring is about their inside.
SILENT = ("redmeter.analysis.text.secrets", "redmeter.dashboard")
_INTRO = """\
The public classes and functions. [Compatibility](../compatibility.md) has the guarantees,
[How-to](../how-to.md) recipes, and [Web applications](../integrations/web.md) the integrations.

Every exception that Redmeter raises deliberately is one of the [errors](#errors). Results are
frozen dataclasses: `dataclasses.asdict`, FastAPI and pydantic serialize them. Times are Unix
seconds, widths of intervals are seconds, and None is an unknown value or a gap.

In asynchronous code, record directly, since that only touches memory, and read in a thread:
`await asyncio.to_thread(meter.series, "orders", precision="1m")`.
"""


class _Field(NamedTuple):
    name: str
    type: str
    comment: str


def page() -> str:
    """Return the page."""
    listed = {name for names in METHODS.values() for name in names}
    public = {
        name for name, _ in inspect.getmembers(redmeter.Meter, inspect.isfunction) if name[0] != "_"
    }
    assert listed == public, f"methods of Meter without a place in METHODS: {listed ^ public}"
    classes = [getattr(redmeter, name) for name in redmeter.__all__ if name != "__version__"]
    errors = [kind for kind in classes if issubclass(kind, Exception)]
    errors.sort(key=lambda kind: [base.__name__ for base in reversed(kind.__mro__)])
    named = {name: getattr(results, name) for name in results.__all__}
    values = [
        kind
        for _, kind in sorted(named.items() | {(kind.__name__, kind) for kind in classes})
        if dataclasses.is_dataclass(kind) or hasattr(kind, "_fields")
    ]
    parts = [
        "<!-- Made by tools/docs.py from the code; change it there. -->\n",
        "# Python API\n",
        _INTRO,
        _contents(values),
        "## Meter\n",
        _code("from redmeter import Meter"),
        _class(redmeter.Meter, members=False),
    ]
    for title, names in METHODS.items():
        parts.append(f"### {title}\n")
        parts += [_function(getattr(redmeter.Meter, name), level=4) for name in names]
    parts.append("## Instruments\n")
    parts += [
        f"### {name}\n\n{_class(getattr(redmeter, name), init=False)}" for name in INSTRUMENTS
    ]
    parts.append("## Results\n")
    parts.append(_code("from redmeter import results"))
    parts += [f"### {kind.__name__}\n\n{_class(kind, init=False)}" for kind in values]
    parts.append("## Errors\n")
    parts += [f"### {kind.__name__}\n\n{_bases(kind)}{_class(kind, init=False)}" for kind in errors]
    for module, names in MODULES.items():
        about = "" if module in SILENT else importlib.import_module(module).__doc__ or ""
        parts.append(f"## {module}\n\n{_text(about)}")
        for name in names:
            thing = getattr(importlib.import_module(module), name)
            parts.append(
                f"### {module.rpartition('.')[2]}.{name}\n\n{_class(thing)}"
                if inspect.isclass(thing)
                else _function(thing, level=3, owner=module.rpartition(".")[2])
                if inspect.isfunction(thing)
                else f"### {module.rpartition('.')[2]}.{name}\n\nA `{type(thing).__name__}`.\n"
            )
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts)).rstrip() + "\n"


def _contents(values: list[Any]) -> str:
    links = [
        *(
            f"[{title}](#{_anchor(title)})"
            for title in ("Meter", "Instruments", "Results", "Errors")
        ),
        *(f"[{name}](#{_anchor(name)})" for name in MODULES),
    ]
    named = ", ".join(f"[{kind.__name__}](#{_anchor(kind.__name__)})" for kind in values)
    return f"{' · '.join(links)}\n\nResults: {named}.\n"


def _anchor(title: str) -> str:
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def _bases(kind: type) -> str:
    bases = " and ".join(f"`{base.__name__}`" for base in kind.__bases__)
    return f"Subclass of {bases}.\n\n"


def _class(kind: Any, *, init: bool = True, members: bool = True) -> str:
    """Return a class: its docstring, fields, properties and methods."""
    parts = [_text(inspect.getdoc(kind) or "")]
    if init and "__init__" in vars(kind) and not dataclasses.is_dataclass(kind):
        parts.insert(0, _code(_signature(kind.__init__, kind.__name__)))
    fields = [*_fields(kind)]
    if fields:
        rows = [
            f"| `{name}` | `{_cell(type_)}` | {_cell(comment)} |" for name, type_, comment in fields
        ]
        parts.append("| field | type | |\n|---|---|---|\n" + "\n".join(rows) + "\n")
    if members:
        for name, member in vars(kind).items():
            if name[0] == "_":
                continue
            if isinstance(member, property):
                parts.append(f"`{name}`: {_text(member.__doc__ or '')}")
            elif inspect.isfunction(member):
                parts.append(_function(member, level=4))
    return "\n".join(parts)


def _function(function: Any, *, level: int, owner: str = "") -> str:
    function = inspect.unwrap(function)
    name = function.__name__
    title = f"{'#' * level} {f'{owner}.' if owner else ''}{name}\n"
    return "\n".join(
        [title, _code(_signature(function, name)), _text(inspect.getdoc(function) or "")]
    )


def _signature(function: Any, name: str) -> str:
    """Return a signature with annotations as they are written, one parameter per line if long."""
    definition = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef)
    arguments = definition.args
    if arguments.args and arguments.args[0].arg == "self":
        del arguments.args[0]
    returns = ast.unparse(definition.returns) if definition.returns else ""
    arrow = f" -> {returns}" if returns and name == definition.name else ""
    parameters = [*_parameters(arguments)]
    line = f"{name}({', '.join(parameters)}){arrow}"
    if len(line) <= 100:
        return line
    return "\n".join([f"{name}(", *(f"    {each}," for each in parameters), f"){arrow}"])


def _parameters(arguments: ast.arguments) -> Iterator[str]:
    missing = [None] * (len(arguments.args) - len(arguments.defaults))
    for each, default in zip(arguments.args, [*missing, *arguments.defaults], strict=True):
        yield _parameter(each, default)
    if arguments.vararg:
        yield f"*{ast.unparse(arguments.vararg)}"
    elif arguments.kwonlyargs:
        yield "*"
    for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _parameter(each, default)
    if arguments.kwarg:
        yield f"**{ast.unparse(arguments.kwarg)}"


def _parameter(argument: ast.arg, default: ast.expr | None) -> str:
    annotation = argument.annotation
    written = ast.unparse(annotation).strip("'") if annotation else ""
    hint = f": {written}" if written else ""
    return f"{argument.arg}{hint}" + (f" = {ast.unparse(default)}" if default is not None else "")


def _fields(kind: Any) -> Iterator[_Field]:
    """Yield the fields of a dataclass or a named tuple, inherited ones included."""
    for base in kind.__bases__:
        if dataclasses.is_dataclass(base):
            yield from _fields(base)
    if not dataclasses.is_dataclass(kind) and not hasattr(kind, "_fields"):
        return
    source = textwrap.dedent(inspect.getsource(kind))
    (definition,), lines = ast.parse(source).body, source.splitlines()
    assert isinstance(definition, ast.ClassDef)
    for part in definition.body:
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            at, comment = part.lineno - 2, list[str]()
            while found := re.match(r"\s*#: (.*)", lines[at]):
                comment.insert(0, found[1])
                at -= 1
            yield _Field(part.target.id, ast.unparse(part.annotation), " ".join(comment))


def _text(docstring: str) -> str:
    """Return a docstring as Markdown: sections become lists."""
    text = inspect.cleandoc(docstring)
    parts = re.split(r"^(Args|Returns|Raises|Yields|Attributes):\n", text, flags=re.MULTILINE)
    shown = [f"{_examples(parts[0]).strip()}\n"]
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        body = textwrap.dedent(body).strip("\n")
        if title in ("Returns", "Yields"):
            shown.append(f"{title}: {' '.join(body.split())}\n")
            continue
        items = [" ".join(each.split()) for each in re.split(r"\n(?=\S)", body)]
        names = [re.sub(r"^([\w*, ]+): ", _named, item, count=1) for item in items]
        shown.append(
            f"{title if title != 'Args' else 'Arguments'}:\n\n"
            + "\n".join(f"- {each}" for each in names)
            + "\n"
        )
    return "\n".join(shown)


def _named(found: re.Match[str]) -> str:
    return ", ".join(f"`{name.strip()}`" for name in found[1].split(",")) + ": "


def _examples(text: str) -> str:
    """Return a text with its indented lines as code blocks."""
    return re.sub(
        r"(?:^    .*\n?(?:\n(?=    ))?)+",
        lambda found: _code(textwrap.dedent(found[0]).strip()),
        text,
        flags=re.MULTILINE,
    )


def _code(text: str) -> str:
    return f"```py\n{text}\n```\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
