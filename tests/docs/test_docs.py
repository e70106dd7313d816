"""The docs are true: what they show runs, what they name exists, what exists is named."""

import base64
import fcntl
import importlib
import inspect
import os
import pty
import re
import shlex
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from starlette.requests import Request

import redmeter
from redmeter import results
from redmeter.dashboard import Dashboard
from redmeter.dashboard.guard import own_hosts
from redmeter.settings import SETTINGS
from redmeter.store import embedded
from support.asking import asking
from support.servers import Server
from support.tools import loaded
from support.waiting import eventually

ROOT = Path(__file__).parents[2]
GENERATED = (
    "docs/reference/commands.md",
    "docs/reference/settings.md",
    "docs/reference/python-api.md",
)
FOLDERS = ("docs", "examples", "deploy")
PAGES = sorted([*ROOT.glob("*.md"), *(p for f in FOLDERS for p in ROOT.glob(f"{f}/**/*.md"))])
WRITTEN = [page for page in PAGES if str(page.relative_to(ROOT)) not in GENERATED]
#: Pages of which each section is to be had by itself; the others are read from top to bottom.
BY_SECTION = (
    "README.md",
    *(f"docs/how-to/{name}.md" for name in ("logs", "operate", "read", "record", "run", "servers")),
)
#: Commands that make what the tests have already: an environment with the command in it.
PREPARED = (". .venv/", "pip install", "make ")
#: What a make target is for those who are in the environment.
TARGETS = {
    "make up": "redmeter up --detach --sample-log tests/data/access.log",
    "make stop": "redmeter stop",
}

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
_NUMBERS = re.compile(r"[0-9][0-9,.:-]*")


def label(page: Path) -> str:
    """Return a test's id."""
    return str(page.relative_to(ROOT))


def blocks(page: Path, language: str) -> list[str]:
    """Return the fenced blocks of a language."""
    found = _FENCE.findall(page.read_text(encoding="utf-8"))
    return [text for tag, text in found if tag == language]


def commands(page: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield what stands behind each prompt, and the lines shown below it."""
    for block in blocks(page, "console"):
        _, *parts = re.split(r"^\$ ", block, flags=re.MULTILINE)
        for part in parts:
            command, *shown = part.splitlines()
            yield command, shown


def invocations(command: str) -> Iterator[list[str]]:
    """Yield the arguments of each call of redmeter within a line of shell."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[str] = []
    for word in [*lexer, ";"]:
        if word and set(word) <= set("|;&"):
            if words and Path(words[0]).name == "redmeter":
                yield words[1:]
            words = []
        else:
            words.append(word)


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    """tools/docs.py, as a module."""
    return loaded("tools/docs.py")


@pytest.fixture(scope="module")
def known() -> dict[str, Any]:
    """Each command by its name, as Typer parses it."""
    from redmeter.cli.app import COMMAND_LIST, load_command

    return {name: load_command(name) for name in COMMAND_LIST}


@pytest.fixture
def home(tmp_path: Path) -> Iterator[dict[str, str]]:
    """An environment whose home is empty; an embedded server there is ended with it."""
    kept = {"PATH", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH"}
    environ = {name: value for name, value in os.environ.items() if name in kept}
    environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environ['PATH']}"
    environ |= {"HOME": str(tmp_path), "TERM": "xterm", "PYTHONPATH": str(ROOT / "src")}
    yield environ
    locks = list(tmp_path.glob("**/supervisor.lock"))
    if locks:  # a test that failed may have left `up` behind, which would start it again
        on_terminal("redmeter stop", environ)
    for data in locks:
        embedded.stop(data.parent)


def checked(code: str) -> str:
    """Return a snippet in which each `expression  # -> value` is compared."""
    return re.sub(
        r"^(\S.*?)  +# -> (.*)$",
        lambda found: f"assert repr({found[1]}) == {found[2]!r}, repr({found[1]})",
        code,
        flags=re.MULTILINE,
    )


def programs() -> Iterator[Any]:
    """Yield the Python of each page; of those whose sections stand alone, that of each section."""
    for page in PAGES:
        parts = {"": page.read_text(encoding="utf-8")}
        if label(page) in BY_SECTION:
            # Comments of a fenced block begin with one "#" at most.
            _, *split = re.split(r"^## (.*)$", parts[""], flags=re.MULTILINE)
            parts = dict(zip(split[::2], split[1::2], strict=True))
        for head, text in parts.items():
            found = [code for tag, code in _FENCE.findall(text) if tag == "python"]
            if found:
                yield pytest.param("\n".join(found), id=f"{label(page)} {head}".strip())


@pytest.mark.parametrize("code", [*programs()])
def test_the_python_of_the_docs_runs(code: str, server: Server, home: dict[str, str]) -> None:
    """From top to bottom, warnings being errors, with the values that its comments promise."""
    done = followed(code, server, home)
    assert done.returncode == 0, done.stderr


def followed(code: str, server: Server, home: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run the Python of a page or a section on a server."""
    code = checked(code)
    code = code.replace("localhost", "127.0.0.1").replace("port=6379", f"port={server.port}")
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env=home | {"REDMETER_URL": server.url},
        cwd=home["HOME"],
        capture_output=True,
        text=True,
        timeout=30.0,
    )


@pytest.mark.slow
@pytest.mark.parametrize("step", [1, -1], ids=["forwards", "backwards"])
def test_the_docs_can_be_followed_in_any_order_on_one_server(
    step: int, server: Server, home: dict[str, str]
) -> None:
    """Pages share no names and no prefix whose values or retention they promise."""
    failed = {}
    for program in [*programs()][::step]:
        done = followed(program.values[0], server, home)
        if done.returncode:
            failed[program.id] = done.stderr.splitlines()[-1]
    assert failed == {}


def test_the_manifest_for_kubernetes_runs(known: dict[str, Any], server: Server) -> None:
    """Its arguments start the page, and its probes are answered; on loopback, at another port."""
    (manifest,) = blocks(ROOT / "docs" / "how-to" / "run.md", "yaml")
    deployment, service = yaml.safe_load_all(manifest)
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    name, *arguments = container["args"]
    with known[name].make_context(name, [*arguments]) as context:
        assert context.params["host"] == "0.0.0.0"
        (port,) = (one["containerPort"] for one in container["ports"])
        assert context.params["port"] == port == service["spec"]["ports"][0]["targetPort"]
        hosts = own_hosts(context.params["host"], context.params["allow_host"])
    assert hosts.allow(service["metadata"]["name"])
    dashboard = Dashboard(server.url, access="open", allowed_hosts=hosts)
    with asking(dashboard) as client:
        paths = {k: container[k]["httpGet"]["path"] for k in ("livenessProbe", "readinessProbe")}
        assert {client.get(path).status_code for path in paths.values()} == {200}
        server.kill()
        eventually(lambda: client.get(paths["readinessProbe"]).status_code == 503)
        assert client.get(paths["livenessProbe"]).status_code == 200
    dashboard.close()


def test_the_page_of_the_example_is_shown_to_who_logged_in(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the session that the application signs, and by nothing that any client may send."""
    monkeypatch.setenv("REDMETER_URL", server.url)
    page = blocks(ROOT / "docs" / "dashboard.md", "python")
    (code,) = (c for c in page if "FastAPI()" in c and "Dashboard(" in c)
    found: dict[str, Any] = {}
    exec(code, found)  # noqa: S102
    app = found["app"]

    def login(role: str, request: Request) -> None:
        request.session["role"] = role

    app.get("/login/{role}")(login)
    with asking(app) as client:
        forged = base64.b64encode(b'{"role":"admin"}').decode()
        for sent in ({}, {"x-role": "admin"}, {"Cookie": f"session={forged}.x.y"}):
            assert client.get("/metrics/?role=admin", headers=sent).status_code == 403
        for role, status in (("guest", 403), ("admin", 200)):
            client.get(f"/login/{role}")
            assert client.get("/metrics/api/marks").status_code == status


def test_a_promised_value_that_is_wrong_is_found() -> None:
    """The comparison above can fail."""
    exec(checked("1 + 1   # -> 2\n"))  # noqa: S102
    with pytest.raises(AssertionError):
        exec(checked("1 + 1   # -> 3\n"))  # noqa: S102


@pytest.mark.parametrize("page", PAGES, ids=label)
def test_each_command_of_a_page_exists_with_these_options(
    page: Path, known: dict[str, Any]
) -> None:
    """Whole lines are parsed as the command parses them; within a text, names and options."""
    for line, _ in commands(page):
        for name, *arguments in invocations(line):
            assert name in known, line
            with known[name].make_context(name, arguments):
                pass
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    for code in _CODE.findall(text):
        for name, *arguments in invocations(code) if code.startswith("redmeter ") else ():
            if name.startswith("-") or name == "COMMAND":
                continue
            assert name in known, code
            options = {option for each in known[name].params for option in each.opts} | {"--help"}
            given = {each for each in arguments if each.startswith("-") and each != "-"}
            assert given <= options, code


def on_terminal(command: str, environ: dict[str, str]) -> tuple[int, str]:
    """Run a line of shell on a terminal of 80 columns; return its code and what it showed."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
    with subprocess.Popen(
        ["bash", "-c", command],
        env=environ,
        cwd=environ["HOME"],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        shown = b""
        try:
            while piece := os.read(ours, 65536):
                shown += piece
        except OSError:  # what a terminal says at its end
            pass
        os.close(ours)
    return process.returncode, _ESCAPES.sub("", shown.decode(errors="replace"))


def comparable(line: str, home: str) -> str:
    """Return a line without what differs from day to day: numbers, bars, places."""
    line = line.replace("/home/you", home).replace(home, "~")
    return " ".join(re.sub("[█▏▎▍▌▋▊▉]", "", _NUMBERS.sub("#", line)).split())


def test_the_tutorial_is_true_word_by_word(home: dict[str, str]) -> None:
    """Every command of it runs, and what it shows is what is shown there, but for the time."""
    page = ROOT / "docs" / "tutorial.md"
    folder = Path(home["HOME"])
    (folder / "tests").symlink_to(ROOT / "tests")
    for name, code in re.findall(
        r"Save this as `(\w+\.py)`.*?^```python\n(.*?)^```$",
        page.read_text(encoding="utf-8"),
        re.DOTALL | re.MULTILINE,
    ):
        (folder / name).write_text(code)
    for line, wanted in commands(page):
        command = TARGETS.get(line, line)
        if command.startswith(PREPARED):
            continue
        code, shown = on_terminal(command, home)
        assert code == 0, f"{command}\n{shown}"
        lines = {comparable(each, str(folder)) for each in shown.splitlines()}
        for each in wanted:
            # Charts depend on where the slices begin; "…" stands for what is left out.
            if not re.search(r"[┤└…]|a column is|^ +20[0-9]{2}-|\.venv/bin", each):
                text = comparable(each, str(folder))
                assert text in lines, f"{command}\nnot shown: {each}\n{shown}"


def test_what_the_readme_shows_is_what_is_printed(home: dict[str, str], server: Server) -> None:
    """Its commands run on a log, and their output has the form that is shown."""
    log = (ROOT / "tests" / "data" / "access.log").read_text(encoding="utf-8")
    (Path(home["HOME"]) / "access.log").write_text(log)
    for line, wanted in commands(ROOT / "README.md"):
        if line.startswith(PREPARED):
            continue
        code, shown = on_terminal(line, home | {"REDMETER_URL": server.url})
        assert code == 0, shown
        lines = {comparable(each, "~") for each in shown.splitlines()}
        assert comparable(wanted[0], "~") in lines


def test_every_command_and_setting_is_told_by_hand_too(known: dict[str, Any]) -> None:
    """Not only by the generated reference."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in WRITTEN)
    assert [name for name in known if f"redmeter {name}" not in text] == []
    used = [one for one in SETTINGS if one.variable in text or f"`{one.name}`" in text]
    assert [one.name for one in SETTINGS if one not in used] == []


def anchors(page: Path) -> set[str]:
    """Return the names of a page's headings, as links have them."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    heads = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def test_the_reference_has_every_public_name() -> None:
    """Each export of `redmeter` and its results, and what pages import from other modules."""
    text = (ROOT / GENERATED[2]).read_text(encoding="utf-8")
    headings = set(re.findall(r"^#+ (\S+)$", text, flags=re.MULTILINE))
    exports = {name for name in redmeter.__all__ if not name.startswith("_")}
    exports |= {name for name in results.__all__ if inspect.isclass(getattr(results, name))}
    assert exports - headings == set()
    imported = {
        f"{module.rpartition('.')[2]}.{name}"
        for page in WRITTEN
        for module, name in re.findall(
            r"^from (redmeter\.(?:integrations|testing|dashboard)[\w.]*) import (\w+)",
            page.read_text(encoding="utf-8"),
            flags=re.MULTILINE,
        )
    }
    assert imported
    assert imported - headings == set()


def test_what_the_changelog_calls_is_there() -> None:
    """Each `redmeter.x.y()`: a function of that module."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    called = re.findall(r"`(redmeter(?:\.\w+)+)\.(\w+)\(", text)
    assert called
    for module, name in called:
        assert callable(getattr(importlib.import_module(module), name)), name


@pytest.mark.parametrize("page", PAGES, ids=label)
def test_internal_links_lead_somewhere(page: Path) -> None:
    """To a file that is there, and to a heading in it."""
    for target in _LINK.findall(_FENCE.sub("", page.read_text(encoding="utf-8"))):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), target


def test_each_page_can_be_reached() -> None:
    """From the README, by way of links."""
    seen, waiting = set(), [ROOT / "README.md", ROOT / "docs" / "index.md"]
    while waiting:
        page = waiting.pop()
        if page in seen or page.suffix != ".md":
            continue
        seen.add(page)
        targets = _LINK.findall(page.read_text(encoding="utf-8"))
        waiting += [
            (page.parent / each.partition("#")[0]).resolve()
            for each in targets
            if "://" not in each and not each.startswith("#")
        ]
    assert set(PAGES) - seen == set()


def test_generated_pages_are_current(tool: ModuleType) -> None:
    """A change of a command or a setting comes with new ones."""
    assert sorted(tool.pages()) == sorted([*GENERATED, tool.OPTIONS, tool.FAULTS, tool.LOGS])
    assert tool.stale(ROOT) == {}, tool.FIX


def test_a_stale_page_fails_the_check_and_the_fix_is_named(
    tool: ModuleType, tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    """--check writes nothing; without it the pages are made, and then it has nothing to say."""
    pages = tool.pages()
    monkeypatch.setattr(tool, "pages", lambda: pages)
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    assert tool.main(["--check"]) == 1
    said = capsys.readouterr().err
    assert GENERATED[0] in said
    assert "python tools/docs.py" in said
    assert list(tmp_path.iterdir()) == []
    assert tool.main([]) == 0
    assert tool.main(["--check"]) == 0
    (tmp_path / GENERATED[1]).write_text("else\n")
    assert tool.main(["--check"]) == 1


def test_generated_pages_do_not_depend_on_the_terminal(tool: ModuleType, monkeypatch: Any) -> None:
    """Nor on the environment of whoever makes them."""
    before = tool.pages()
    for name, value in {"COLUMNS": "33", "TERM": "dumb", "REDMETER_URL": "off"}.items():
        monkeypatch.setenv(name, value)
    assert tool.pages() == before


def project_files() -> Iterator[Path]:
    """Yield the files of the project: not what tools have made."""
    made = {".git", ".venv", ".cache", "dist", "__pycache__", "node_modules", "static"}
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [f for f in folders if f not in made and not f.endswith("_cache")]
        folders[:] = [f for f in folders if f != ".hypothesis"]
        yield from (Path(folder) / file for file in files)


def test_no_file_names_a_package_host_or_a_download_address() -> None:
    """Versions are pinned; where packages come from is for each machine to say."""
    # Taken apart, or this file would be found.
    hosts = ["py" + "pi.org", "python" + "hosted.org", "npm" + "js.org", "get" + "pip.py"]
    hosts += ["conda" + ".anaconda.org", "deb." + "debian.org", "download." + "redis.io"]
    others = ["releases/" + "download", "--index" + "-url", "--extra-index" + "-url"]
    words = ["shared/" + "design"]
    forbidden = re.compile("|".join(map(re.escape, hosts + others + words)).encode())
    found = [
        f"{file.relative_to(ROOT)}: {match[0].decode()}"
        for file in project_files()
        if (match := forbidden.search(file.read_bytes()))
    ]
    assert found == []


def test_each_test_that_the_threat_model_names_is_there() -> None:
    """What is said to be shown is shown."""
    text = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", text.partition("## Threats")[2])
    assert len(named) > 20
    for file, name in named:
        source = (ROOT / "tests" / file).read_text(encoding="utf-8")
        assert f"\ndef {name}(" in source, (file, name)
