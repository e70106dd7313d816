"""Print the structure of this checkout in figures, and draw it to docs/images/structure.svg.

Each module and folder right below the package is in the lowest row above all that it imports; a
line leads to an import that no other import brings along. tests/test_structure.py has the limits.
"""
# ruff: noqa: INP001

import ast
import posixpath
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: Names that mean the same in each module: its logger, and type variables.
_CONVENTIONS = re.compile(r"logger|[A-Z]|_.*")
_TS_IMPORT = re.compile(r"""\b(?:from|import)\s*\(?\s*["'](\.[^"']*)["']""")
_STYLE = """<style>text{font:13px sans-serif;text-anchor:middle;fill:#1f2328}
rect{fill:#fff;stroke:#57606a}path{fill:none;stroke:#57606a;opacity:.5}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}rect{fill:#0d1117}rect,path{stroke:#9198a1}}
</style>"""
Modules = Mapping[str, ast.Module]
Graph = Mapping[str, set[str]]


def modules() -> Modules:
    """Return the syntax trees of the package by module, e.g. `redmeter.store.store`."""
    files = {path.relative_to(ROOT / "src"): path for path in (ROOT / "src").rglob("*.py")}
    names = {".".join(name.with_suffix("").parts): path for name, path in sorted(files.items())}
    return {name.removesuffix(".__init__"): ast.parse(names[name].read_bytes()) for name in names}


def imports(trees: Modules, *, types: bool) -> Graph:
    """Return what each module imports of the package; `types`: also below TYPE_CHECKING."""
    graph: dict[str, set[str]] = {}
    for module, tree in trees.items():
        names = set()
        for node in _nodes(tree, types=types):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                full = {f"{node.module}.{alias.name}" for alias in node.names}
                names |= {name if name in trees else str(node.module) for name in full}
        graph[module] = (names & trees.keys()) - {module}
    return graph


def _nodes(tree: ast.AST, *, types: bool) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        if types or not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            yield node
            yield from _nodes(node, types=types)


def frontend_imports(folder: Path = ROOT / "frontend" / "src") -> Graph:
    """Return what each file of the page imports of the others, types included."""
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*.ts*")}
    graph = {}
    for name, path in files.items():
        texts = _TS_IMPORT.findall(path.read_text(encoding="utf-8"))
        bare = {posixpath.normpath(posixpath.join(name, "..", text)) for text in texts}
        graph[name] = {one + end for one in bare for end in ("", ".ts", ".tsx")} & files.keys()
    return graph


def reach(graph: Graph, start: str) -> set[str]:
    """Return all that a module imports, directly or not; itself only if it is in a circle."""
    seen, waiting = set[str](), list(graph[start])
    while waiting:
        if (module := waiting.pop()) not in seen:
            seen.add(module)
            waiting += graph[module]
    return seen


def circles(graph: Graph) -> set[frozenset[str]]:
    """Return the sets of modules that all import each other, directly or not."""
    below = {module: reach(graph, module) for module in graph}
    found = (frozenset(other for other in below[one] if one in below[other]) for one in graph)
    return {circle for circle in found if circle}


def shared_names(trees: Modules) -> dict[str, list[str]]:
    """Return the public functions, classes and constants that several modules define."""
    homes: dict[str, list[str]] = {}
    for module, tree in trees.items():
        for name in {name for node in tree.body for name in _defined(node)}:
            if not _CONVENTIONS.fullmatch(name):
                homes.setdefault(name, []).append(module)
    return {name: found for name, found in sorted(homes.items()) if len(found) > 1}


def _defined(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = (one for target in targets for one in ast.walk(target))
        yield from (name.id for name in names if isinstance(name, ast.Name))


def folders() -> dict[str, int]:
    """Return how many files each folder of the package has, without its subfolders."""
    files = sorted(path.parent.relative_to(ROOT / "src") for path in (ROOT / "src").rglob("*.py"))
    return {folder.as_posix(): files.count(folder) for folder in files}


def files_of_call(call: str) -> int:
    """Return how many files run for a call: the number that CONTRIBUTING.md states."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return int(
        re.findall(r"\b(\d+) files run", page.partition(f"## Where one `{call}()` goes")[2])[0]
    )


def figures(trees: Modules) -> str:
    """Return the figures as a Markdown table."""
    sources = [path.read_bytes() for path in (ROOT / "src").rglob("*.py")]
    rows = {
        "Python files": len(sources),
        "lines": sum(source.count(b"\n") for source in sources),
        "folders with more than 15 files": sum(count > 15 for count in folders().values()),
        "circles of imports at run time": len(circles(imports(trees, types=False))),
        "circles of imports with those of types": len(circles(imports(trees, types=True))),
        "circles of imports in the page": len(circles(frontend_imports())),
        "public names that several modules define": len(shared_names(trees)),
        "files that run for one `inc()` with its flush": files_of_call("inc"),
        "files that run for one `series()`": files_of_call("series"),
    }
    lines = ["| figure | value |", "|---|---|", *(f"| {row} | {rows[row]:,} |" for row in rows)]
    return "\n".join(lines) + "\n"


def units(graph: Graph) -> Graph:
    """Return the imports between the modules and folders right below the package."""
    found: dict[str, set[str]] = {}
    for module, imported in graph.items():
        own, *others = ([*one.split("."), "redmeter"][1] for one in (module, *imported))
        found.setdefault(own, set()).update({*others} - {own})
    del found["__main__"]
    return found


def picture(graph: Graph) -> str:
    """Return a graph without circles as SVG, for light and dark pages."""
    below = {unit: reach(graph, unit) for unit in graph}
    rows: dict[str, int] = {}
    for unit in sorted(graph, key=lambda unit: (len(below[unit]), unit)):
        rows[unit] = max((rows[other] + 1 for other in graph[unit]), default=0)
    x: dict[str, float] = {}
    y = {unit: (max(rows.values()) - row) * 66 + 8 for unit, row in rows.items()}
    shapes = []
    for depth in sorted(set(y.values())):
        above = {unit: [x[one] for one in x if unit in graph[one]] or [300.0] for unit in y}
        row = [unit for unit in sorted(y) if y[unit] == depth]
        row.sort(key=lambda unit: sum(above[unit]) / len(above[unit]))
        left = 300 - sum(len(unit) * 4 + 16 for unit in row)
        for unit in row:
            wide = len(unit) * 8 + 12
            x[unit] = left + 10 + wide / 2
            shapes += [f'<rect x="{left + 10}" y="{depth}" width="{wide}" height="26" rx="5"/>']
            shapes += [f'<text x="{x[unit]:g}" y="{depth + 18}">{unit}</text>']
            left += wide + 20
    lines = []
    for unit in sorted(graph):
        for other in sorted(graph[unit] - {far for one in graph[unit] for far in below[one]}):
            a, b, c, d = x[unit], y[unit] + 26, x[other], y[other]
            lines += [f'<path d="M{a:g} {b}C{a:g} {b + 24} {c:g} {d - 24} {c:g} {d}"/>']
    size = f'xmlns="http://www.w3.org/2000/svg" viewBox="0 0 600 {max(y.values()) + 34}"'
    return "\n".join([f"<svg {size}>{_STYLE}", *lines, *shapes, "</svg>"]) + "\n"


if __name__ == "__main__":
    sys.stdout.write(figures(found := modules()))
    drawn = picture(units(imports(found, types=True)))
    (ROOT / "docs" / "images" / "structure.svg").write_text(drawn, encoding="utf-8")
