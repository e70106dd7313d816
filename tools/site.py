"""Build the site of the docs, or serve it while you write.

    python tools/site.py build     makes site/ and checks it: links, images, anchors, addresses
    python tools/site.py serve     builds it again after each change; http://127.0.0.1:8001/

The pages stay plain Markdown that a code host shows. This copies them to .cache/site, where each
recipe of the how-to pages becomes a page, links follow, and Zensical makes HTML. The result needs
no server and no network: search works offline, and nothing is loaded from elsewhere.
"""
# ruff: noqa: INP001, T201

import argparse
import html
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / ".cache" / "site"
SITE = ROOT / "site"
#: Pages that have another place on the site than below docs/.
MOVED = {
    "README.md": "index.md",
    "docs/index.md": "contents.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CODE_OF_CONDUCT.md": "code-of-conduct.md",
    "examples/README.md": "examples.md",
    "deploy/README.md": "containers.md",
}
#: Pages of docs/how-to/ whose sections are recipes, each of which becomes a page.
RECIPES = ("record", "read", "logs", "servers", "operate", "run", "export", "grafana")
#: Title of a part -> pages, in the order of the navigation; a folder of recipes by its page.
NAVIGATION: dict[str, tuple[str, ...]] = {
    "Start here": ("index.md", "tutorial.md", "examples.md", "faq.md", "why.md", "contents.md"),
    "Coming from": (
        *("coming-from/prometheus-client.md", "coming-from/sentry.md"),
        "how-to/redis-in-action.md",
    ),
    "Recipes": (
        *("how-to.md", *(f"how-to/{name}/index.md" for name in RECIPES)),
        *("how-to/web-server-logs.md", "how-to/move-to-another-server.md", "containers.md"),
    ),
    "Integrations": (
        *("integrations/web.md", "integrations/fastapi.md", "integrations/starlette.md"),
        *("integrations/flask.md", "integrations/django.md", "integrations/wsgi.md"),
        *("integrations/celery.md", "integrations/rq.md", "integrations/sqlalchemy.md"),
        "integrations/process.md",
    ),
    "Use": (
        *("dashboard.md", "explain.md", "verdict.md", "forecast.md", "exceptions.md"),
        *("alerts.md", "prometheus.md"),
    ),
    "Concepts": ("design.md", "safety.md", "scaling.md", "threat-model.md", "glossary.md"),
    "Reference": (
        *("reference/python-api.md", "reference/commands.md", "reference/settings.md"),
        *("stored-format.md", "faults.md", "fault-table.md", "compatibility.md"),
    ),
    "Measured": ("benchmarks.md", "soak.md"),
    "Project": (
        *("changelog.md", "roadmap.md", "contributing.md", "security.md", "code-of-conduct.md"),
    ),
}
_CONFIG = """\
[project]
site_name = "Redmeter"
site_description = "Application metrics in the Redis or Valkey you already run"
site_url = "{url}"
docs_dir = "docs"
site_dir = "site"
use_directory_urls = false
nav = {nav}

[project.theme]
language = "en"
font = false
features = [
  "content.code.copy",
  "navigation.footer",
  "navigation.indexes",
  "navigation.path",
  "navigation.top",
  "navigation.tracking",
  "search.highlight",
]
icon.logo = "lucide/activity"

[[project.theme.palette]]
media = "(prefers-color-scheme: light)"
scheme = "default"
toggle.icon = "lucide/sun"
toggle.name = "Switch to dark mode"

[[project.theme.palette]]
media = "(prefers-color-scheme: dark)"
scheme = "slate"
toggle.icon = "lucide/moon"
toggle.name = "Switch to light mode"

[project.plugins.search]

[project.plugins.offline]

[project.markdown_extensions]
attr_list = {{}}
md_in_html = {{}}
tables = {{}}
toc.permalink = true
pymdownx.highlight.pygments_lang_class = true
pymdownx.superfences = {{}}
"""
_FENCE = re.compile(r"^(```.*?^```)$", re.DOTALL | re.MULTILINE)
#: The target of a link or an image, in Markdown and in HTML.
_LINK = re.compile(r'(?<=\]\()[^)\s]+(?=\))|(?<= src=")[^"]+|(?<= srcset=")[^"]+')
#: What Zensical's offline pages would load from elsewhere, and what they load instead.
_FOREIGN_WORKER, WORKER = "https://unpkg.com/iframe-worker/shim", "file-worker.js"
#: Elements and their attributes that a browser loads by itself.
_LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "srcset"}


class SiteError(Exception):
    """The site is not as it should be; the message lists the faults."""


# ---------------------------------------------------------------- Markdown


def anchor(heading: str) -> str:
    """Return the name of a heading in links, as code hosts and the site have it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def prepared(source: str) -> dict[str, str]:
    """Return the pages of the site: path -> Markdown.

    Args:
        source: the address of the repository; links to files that are no pages go there.
    """
    files = {path.relative_to(ROOT).as_posix(): path for path in ROOT.glob("docs/**/*.md")}
    files |= {name: ROOT / name for name in MOVED}
    texts = {name: path.read_text(encoding="utf-8") for name, path in files.items()}
    places: dict[tuple[str, str], tuple[str, str]] = {}
    pages: dict[str, tuple[str, str]] = {}
    for name, text in texts.items():
        place = place_of(name)
        places[name, ""] = (place, "")
        pages[place] = (name, text)
        if place.startswith("how-to/") and place.endswith("/index.md"):
            pages |= _split(name, place, text, places)
    return {place: _linked(place, *page, places, source) for place, page in pages.items()}


def place_of(name: str) -> str:
    """Return where the site has a page: those of recipes have a folder, with a page of each."""
    place = MOVED.get(name) or name.removeprefix("docs/")
    is_split = place.removeprefix("how-to/").removesuffix(".md") in RECIPES
    return f"{place.removesuffix('.md')}/index.md" if is_split else place


def _split(
    name: str, place: str, text: str, places: dict[tuple[str, str], tuple[str, str]]
) -> dict[str, tuple[str, str]]:
    """Return a page of each recipe, and one that lists them; note where anchors have gone."""
    parts = _FENCE.split(text)
    marked = "".join(
        part if at % 2 else re.sub(r"^## ", "\0", part, flags=re.MULTILINE)
        for at, part in enumerate(parts)
    )
    head, *recipes = marked.split("\0")
    pages: dict[str, tuple[str, str]] = {}
    listed = []
    for recipe in recipes:
        title, _, body = recipe.partition("\n")
        page = f"{place.removesuffix('index.md')}{anchor(title)}.md"
        places[name, anchor(title)] = (page, "")
        for below in re.findall(r"^###+ (.*)$", _FENCE.sub("", body), re.MULTILINE):
            places[name, anchor(below)] = (page, anchor(below))
        pages[page] = (name, f"# {title}\n{re.sub(r'^###', '##', body, flags=re.MULTILINE)}")
        listed.append(f"- [{title}](#{anchor(title)})")
    return {**pages, place: (name, f"{head.rstrip()}\n\n" + "\n".join(listed) + "\n")}


def _linked(
    place: str, name: str, text: str, places: dict[tuple[str, str], tuple[str, str]], source: str
) -> str:
    """Return a page whose links lead to pages of the site."""

    def link(found: re.Match[str]) -> str:
        target = found[0]
        if "://" in target or target.startswith("mailto:"):
            return target
        path, _, heading = target.partition("#")
        file = os.path.normpath((Path(name).parent / path).as_posix()) if path else name
        if (file, "") not in places:
            if file.startswith("docs/"):  # images and other files, which are copied
                return os.path.relpath(file.removeprefix("docs/"), Path(place).parent)
            return f"{source}/{file}"
        page, rest = places.get((file, heading), (places[file, ""][0], heading))
        if page == place and not rest:
            return f"#{heading}" if heading else Path(page).name
        relative = os.path.relpath(page, Path(place).parent)
        return f"{relative}{f'#{rest}' if rest else ''}"

    parts = _FENCE.split(text)
    return "".join(part if at % 2 else _LINK.sub(link, part) for at, part in enumerate(parts))


def title(text: str) -> str:
    """Return the title of a page."""
    found = re.search(r"^# (.+)$", text, re.MULTILINE)
    return found[1].replace("`", "") if found else "Redmeter"


def navigation(pages: dict[str, str]) -> list[dict[str, object]]:
    """Return the navigation of the site.

    Raises:
        SiteError: a page has no place in it.
    """
    used: set[str] = set()

    def entry(page: str) -> dict[str, object]:
        used.add(page)
        if page == "index.md" or not page.endswith("/index.md"):
            return {title(pages[page]): page}
        folder = page.removesuffix("index.md")
        below = [one for one in pages if one.startswith(folder) and one != page]
        used.update(below)
        return {title(pages[page]): [page, *({title(pages[one]): one} for one in below)]}

    nav: list[dict[str, object]] = [
        {part: [entry(page) for page in listed]} for part, listed in NAVIGATION.items()
    ]
    if missing := sorted(set(pages) - used):
        raise SiteError(f"NAVIGATION of tools/site.py lacks {', '.join(missing)}")
    return nav


def prepare(folder: Path) -> None:
    """Write pages, images and configuration into a folder."""
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
    pages = prepared(urls["Source"])
    config = _CONFIG.format(url=urls["Documentation"], nav=_toml(navigation(pages)))
    wanted = {"zensical.toml": config} | {f"docs/{page}": text for page, text in pages.items()}
    for path in [*folder.glob("docs/**/*.md")]:
        if path.relative_to(folder).as_posix() not in wanted:
            path.unlink()
    for name, text in wanted.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    for part in ("assets", "images", "grafana"):
        shutil.copytree(ROOT / "docs" / part, folder / "docs" / part, dirs_exist_ok=True)


def _toml(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{json.dumps(k)} = {_toml(v)}' for k, v in value.items())} }}"
    return json.dumps(value)


# ---------------------------------------------------------------- HTML


class _Page(HTMLParser):
    """The links, anchors and loaded addresses of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what an element refers to."""
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        passive = tag == "link" and given.get("rel") in ("canonical", "next", "prev", "alternate")
        if (attribute := _LOADED.get(tag)) and attribute in given and not passive:
            self.loaded.append(given[attribute])


def faults(site: Path) -> list[str]:
    """Return the faults of a built site: links and images without a target, foreign addresses."""
    files = [path for path in site.rglob("*.html") if path.name != "404.html"]
    pages = {path: _Page(path.read_text(encoding="utf-8")) for path in files}
    texts = list[str]()
    for path, page in pages.items():
        name = path.relative_to(site)
        texts += [f"{name}: loads {one}" for one in page.loaded if re.match(r"(\w+:)?//", one)]
        for target in [*page.links, *page.loaded]:
            if re.match(r"\w+:|//", target):
                continue
            file, _, heading = unquote(html.unescape(target)).partition("#")
            at = (path.parent / file.partition("?")[0]).resolve() if file else path
            at = at / "index.html" if at.is_dir() else at
            if not at.exists():
                texts.append(f"{name}: no file {target}")
            elif heading and at in pages and heading not in pages[at].anchors:
                texts.append(f"{name}: no anchor {target}")
    for style in site.rglob("*.css"):
        for one in re.findall(r"url\(\s*['\"]?((?:https?:)?//[^)'\"]+)", style.read_text("utf-8")):
            texts.append(f"{style.relative_to(site)}: loads {one}")
    if not [*site.rglob("search.js*")] and not [*site.rglob("search_index*")]:
        texts.append("no index for the search")
    return sorted(set(texts))


# ---------------------------------------------------------------- commands


def build(folder: Path = SOURCE, site: Path = SITE) -> int:
    """Build the site; return the number of its pages.

    Raises:
        SiteError: it cannot be built, or has faults.
    """
    prepare(folder)
    done = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--clean"],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SiteError(done.stdout + done.stderr)
    shutil.rmtree(site, ignore_errors=True)
    shutil.copytree(folder / "site", site)
    for page in site.rglob("*.html"):
        ours = os.path.relpath(site / "assets" / WORKER, page.parent)
        page.write_text(page.read_text("utf-8").replace(_FOREIGN_WORKER, ours), encoding="utf-8")
    if texts := faults(site):
        raise SiteError("\n".join(texts))
    return len([*site.rglob("*.html")])


def serve(port: int) -> None:
    """Serve the site on loopback, and prepare its pages after each change, until Ctrl-C."""
    prepare(SOURCE)
    command = [sys.executable, "-m", "zensical", "serve", "--dev-addr", f"127.0.0.1:{port}"]
    server = subprocess.Popen(command, cwd=SOURCE)
    try:
        while server.poll() is None:
            time.sleep(1.0)
            prepare(SOURCE)
    except KeyboardInterrupt:
        pass
    finally:
        server.terminate()
        server.wait()


def main(arguments: list[str]) -> int:
    """Run a command; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("command", choices=("build", "serve"))
    parser.add_argument("--port", type=int, default=8001, help="of `serve`")
    given = parser.parse_args(arguments)
    if given.command == "serve":
        serve(given.port)
        return 0
    try:
        print(f"{build()} pages in {SITE.name}/: open {SITE.name}/index.html")
    except SiteError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
