"""The architecture holds: who imports whom, and nothing happens before the first use."""

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

SRC = Path(__file__).parents[1] / "src"
PACKAGE = SRC / "redmeter"

#: A module imports from rows above its own in this list, and from its own folder. The pure row is
#: in two parts, since settings and the format are written in terms of names and keys.
ROWS = (
    {"errors", "types", "lazy_regex"},
    {"names", "extras", "clock"},
    {"stored"},
    {"results"},
    {"settings", "analysis", "promql"},
    {"export"},
    {"store"},
    {"recording", "reading", "maintenance", "migrating"},
    {"health"},
    {"queries"},
    {"meter", "interrupts"},
    {"alerting"},
    {"book", "integrations", "ingest", "dashboard", "testing"},
    {"demo"},
    {"cli"},
)
#: redmeter/__init__.py, as in `from redmeter import Meter`: it lies where Meter lies.
FACE = "redmeter"
FREE = {FACE, "__main__"}
RANK = {name: rank for rank, row in enumerate(ROWS) for name in row} | {
    FACE: next(rank for rank, row in enumerate(ROWS) if "meter" in row)
}

#: The Redis client and its parts.
CLIENT = {"redis", "hiredis", "valkey"}
#: What rows without I/O and threads have no use for.
EFFECTS = {
    *("socket", "selectors", "select", "ssl", "asyncio", "threading", "concurrent", "signal"),
    *("subprocess", "multiprocessing", "queue", "shutil", "tempfile", "http", "socketserver"),
}
#: What belongs to single integrations, and must not come with `from redmeter import Meter`.
HEAVY = {
    *("typer", "rich", "click", "starlette", "uvicorn", "a2wsgi", "django", "flask", "celery"),
    *("rq", "asyncio", "http.server", "unittest", "pytest", "hypothesis", "structlog"),
    *("numpy", "promql_parser", "re2", "pandas", "pyarrow"),
}

MODULES = sorted(PACKAGE.rglob("*.py"))


def unit(path: Path) -> str:
    """Return what a file belongs to: a module or a folder right below the package."""
    part = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    return FACE if part == "__init__" else part


def imports(tree: ast.AST) -> Iterator[str]:
    """Yield the dotted names that a module imports anywhere, also within functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield from (f"{node.module}.{name.name}" for name in node.names)


def units_imported(tree: ast.AST) -> set[str]:
    """Return the units of ours that a module imports."""
    found = set()
    for name in imports(tree):
        package, _, rest = name.partition(".")
        if package == FACE:
            first = rest.partition(".")[0]
            found.add(first if first in RANK else FACE)
    return found


def layer_faults(own: str, tree: ast.AST) -> list[str]:
    """Return what a unit imports from its own row or from one above."""
    if own in FREE:
        return []
    return sorted(u for u in units_imported(tree) - {own} if RANK[u] >= RANK[own])


def packages(tree: ast.AST) -> set[str]:
    """Return the outermost names of all that is imported."""
    return {name.partition(".")[0] for name in imports(tree)}


def client_uses(tree: ast.AST) -> list[int]:
    """Return the lines on which `redis` is more than a type in an annotation."""
    nodes = [*ast.walk(tree)]
    names = [node for node in nodes if isinstance(node, ast.Name) and node.id in CLIENT]
    types: set[int] = set()
    for node in nodes if names else ():
        for annotation in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if isinstance(annotation, ast.AST):
                types.update(id(part) for part in ast.walk(annotation))
    return [name.lineno for name in names if id(name) not in types]


def without_type_checking(tree: ast.Module) -> ast.Module:
    """Return a module without its `if TYPE_CHECKING:` blocks."""
    body = [
        statement
        for statement in tree.body
        if not (isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING")
    ]
    return ast.Module(body, type_ignores=[])


@pytest.fixture(scope="module")
def trees() -> dict[str, tuple[str, ast.Module]]:
    """What each module is: path within the package -> what it belongs to, syntax tree."""
    return {
        str(path.relative_to(PACKAGE)): (unit(path), ast.parse(path.read_text(encoding="utf-8")))
        for path in MODULES
    }


Trees = Mapping[str, tuple[str, ast.Module]]


def test_a_module_imports_only_from_rows_below_its_own(trees: Trees) -> None:
    """Siblings of one folder may know each other, siblings of one row do not."""
    homeless = {own for own, _ in trees.values()} - RANK.keys() - FREE
    assert homeless == set(), "give each a row in ROWS"
    faults = {path: layer_faults(own, tree) for path, (own, tree) in trees.items()}
    assert {path: found for path, found in faults.items() if found} == {}


def test_a_module_imports_by_absolute_names(trees: Trees) -> None:
    """No leading dots."""
    relative = [
        (path, node.lineno)
        for path, (_, tree) in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert relative == []


def test_only_the_store_talks_to_the_client(trees: Trees) -> None:
    """Elsewhere the client is a type at most: in book, and in Meter for type checkers alone."""
    for path, (own, tree) in trees.items():
        if own == "store":
            continue
        found = packages(tree) & CLIENT
        assert found <= ({"redis"} if own in ("book", "meter") else set()), path
        assert client_uses(tree) == [], path
        if own == "meter":
            assert packages(without_type_checking(tree)) & CLIENT == set()


def test_the_pure_rows_do_no_input_output_and_start_no_threads(trees: Trees) -> None:
    """They do not even import what that takes."""
    pure = {path: tree for path, (own, tree) in trees.items() if RANK.get(own, 9) < RANK["store"]}
    assert len(pure) > 30
    effects = {path: packages(tree) & EFFECTS for path, tree in pure.items()}
    assert {path: found for path, found in effects.items() if found} == {}


#: Layers that read through queries/, and the files of the page that compose reads of reading/page/.
READERS = ("cli", "alerting", "dashboard")
HANDLERS = {f"dashboard/api/{area}.py" for area in ("series", "logs", "page", "diagnosis")}
#: Files that call functions of reading/ which read a store, and why. May only get shorter.
DIRECT = {
    "cli/diagnosis.py": "a name that does not parse is read exactly, which Meter.explain() refuses",
    "cli/export.py": "rows of all series: no method of Meter",
    "cli/names.py": "grand totals of many counters in one round trip",
    "cli/logs.py": "all loggers; changes and frequencies of one reading",
    "cli/series.py": "counters, gauges and totals of many names in one round trip",
    "dashboard/api/diagnosis.py": "the answer has the server's clock",
    "dashboard/api/logs.py": "the answer has the server's clock",
    "dashboard/api/series.py": "the answer has the server's clock; many names in one round trip",
}


def entry_functions(trees: Trees) -> set[str]:
    """Return the dotted names of the functions of reading/ that read a store or its keys."""
    return {
        f"redmeter.{path.removesuffix('.py').replace('/', '.')}.{node.name}"
        for path, (own, tree) in trees.items()
        if own == "reading"
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.args.args
        if ast.unparse(node.args.args[0].annotation or node) in ("Store", "Keys")
    }


def reads(tree: ast.AST, entries: set[str]) -> set[str]:
    """Return the entry functions that a module imports, or uses by way of their module."""
    names = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    by_module = {
        f"{names[node.value.id]}.{node.attr}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        if node.value.id in names
    }
    return ({*names.values()} | by_module) & entries


def test_there_is_one_way_in_to_read(trees: Trees) -> None:
    """Commands, alerts and the page call queries/; handlers compose the reads of the page."""
    entries = entry_functions(trees)
    assert {"redmeter.reading.aggregates.read_counter", "redmeter.reading.top.read_top"} <= entries
    direct = {
        path
        for path, (own, tree) in trees.items()
        if own in READERS
        for name in reads(tree, entries)
        if not (path in HANDLERS and name.startswith("redmeter.reading.page."))
    }
    assert direct == DIRECT.keys(), "call a method of Queries; remove a file that does from DIRECT"


def test_the_rule_of_one_way_in_sees_imports_and_uses_of_modules() -> None:
    """Also of a module under another name."""
    entries = {"redmeter.reading.top.read_top"}
    for source in (
        "from redmeter.reading.top import read_top",
        "from redmeter.reading import top as ranking\nranking.read_top(store)",
        "def f():\n    from redmeter.reading.top import read_top as read",
    ):
        assert reads(ast.parse(source), entries) == entries
    assert reads(ast.parse("from redmeter.reading.top import RANKING_PAGE"), entries) == set()


@pytest.mark.parametrize(
    ("own", "source", "faults"),
    [
        ("store", "from redmeter.recording.sync import write_counts", ["recording"]),
        ("store", "def f():\n    import redmeter.meter", ["meter"]),
        ("store", "from redmeter import maintenance, names", ["maintenance"]),
        ("reading", "from redmeter.recording import sync", ["recording"]),
        ("clock", "from redmeter.names import canonical", ["names"]),
        ("names", "from redmeter import Meter", ["redmeter"]),
        ("errors", "import redmeter.stored.keys as k", ["stored"]),
        ("cli", "from redmeter import Meter, book\nfrom redmeter.cli import table", []),
        ("settings", "from redmeter.stored.keys import Retention\nimport os", []),
    ],
)
def test_the_rule_of_rows_sees_every_form_of_import(
    own: str, source: str, faults: list[str]
) -> None:
    """Upwards and sideways is found, downwards and at home is not."""
    assert layer_faults(own, ast.parse(source)) == faults


def test_the_rule_of_the_client_tells_types_from_uses() -> None:
    """An annotation is a type; a call, a base class or an isinstance is a use."""
    types = 'import redis\ndef f(c: redis.Redis, d: "redis.Redis") -> redis.Redis:\n    return c'
    assert client_uses(ast.parse(types)) == []
    for use in ("redis.Redis()", "class A(redis.Redis): ...", "isinstance(1, redis.Redis)"):
        assert client_uses(ast.parse(f"import redis\n{use}")) == [2]


# What happens in a process of its own

#: Notes what a program does to the world, and prints it at the end.
WATCH = """
import json, os, sys, threading
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
EVENTS = ("socket.", "subprocess.", "os.fork", "os.posix_spawn", "os.exec", "os.system", "os.mkdir",
          "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.chmod", "os.truncate",
          "shutil.", "tempfile.", "sqlite3.", "urllib.", "http.", "ftplib.", "webbrowser.",
          "_thread.start")
seen = []
def watch(event, args):
    if event == "open":
        path, mode, flags = args
        if isinstance(flags, int) and flags & WRITES:
            seen.append(f"open {path!r} {mode!r}")
    elif event.startswith(EVENTS):
        seen.append(f"{event} {args!r:.200}")
sys.addaudithook(watch)
"""
REPORT = """
print(json.dumps({"seen": seen, "threads": [t.name for t in threading.enumerate()],
                  "modules": list(sys.modules)}))
"""


def run(program: str, home: Path) -> dict[str, Any]:
    """Run a program in a fresh interpreter; return what it did and what it loaded."""
    environ = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("REDMETER_", "XDG_", "PYTHON", "COV"))
    }
    environ |= {"HOME": str(home), "PYTHONPATH": str(SRC), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", WATCH + program + REPORT],
        env=environ,
        cwd=home,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_watch_notices_what_it_is_there_for(tmp_path: Path) -> None:
    """A connection, a process, a file and a folder leave a trace."""
    program = """
import socket, subprocess
socket.socket().connect_ex(("127.0.0.1", 1))
subprocess.run(["true"])
open("opened", "w").close()
os.close(os.open("opened-by-os", os.O_CREAT | os.O_WRONLY))
os.mkdir("made")
"""
    seen = run(program, tmp_path)["seen"]
    for noticed in (
        *("socket.connect", "subprocess.Popen", "open 'opened'", "open 'opened-by-os'"),
        "os.mkdir",
    ):
        assert any(event.startswith(noticed) for event in seen), (noticed, seen)


def test_importing_everything_below_the_outside_world_does_nothing(tmp_path: Path) -> None:
    """No thread, no connection, no process, no file, whichever module it is."""
    names = sorted(
        ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__")
        for path in MODULES
        if RANK.get(unit(path), 9) <= RANK["meter"] or unit(path) == "book"
        if path.name != "__main__.py"
    )
    assert "redmeter.store.embedded.supervisor" in names
    found = run("\n".join(f"import {name}" for name in names), tmp_path)
    assert found["seen"] == []
    assert found["threads"] == ["MainThread"]
    assert list(tmp_path.iterdir()) == []


def test_importing_a_meter_brings_only_what_it_needs(tmp_path: Path) -> None:
    """Neither the command's libraries nor the page's, nor anything for tests."""
    loaded = set(run("from redmeter import Meter", tmp_path)["modules"])
    assert "redmeter.meter" in loaded
    # The client itself imports asyncio.
    assert (loaded & HEAVY) - set(run("import redis", tmp_path)["modules"]) == set()
    ours = {name.split(".")[1] for name in loaded if name.startswith("redmeter.")}
    assert ours <= {name for name in RANK if RANK[name] <= RANK["meter"]}


ARGUMENTS = (
    *("", "'off'", "'rediss://127.0.0.1:1'", "'unix:///nowhere.sock'", "'embedded://data/of/mine'"),
    "'redis://user:secret@127.0.0.1:1/3', timeout=0.5, prefix='a:', retention='1=10 60=20'",
    "client=__import__('redis').Redis(port=1)",
)


def test_constructing_a_meter_does_nothing_either(tmp_path: Path) -> None:
    """Until it is used: no thread, no connection, no server, no file; nor does its repr."""
    meters = "".join(
        f"meter = redmeter.Meter({arguments})\nrepr(meter)\nmeter.close()\n"
        for arguments in ARGUMENTS
    )
    found = run(f"import redmeter\n{meters}", tmp_path)
    assert found["seen"] == []
    assert found["threads"] == ["MainThread"]
    assert list(tmp_path.iterdir()) == []
