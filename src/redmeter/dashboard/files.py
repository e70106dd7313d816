"""The page itself: index.html and its assets, as the build left them in static/.

Only files of that folder are served, by their exact names: a requested path is never used as a path
of the file system. Files are cached until they change, so a new build shows without a restart.

Not Starlette's StaticFiles: Body compresses a file once and answers by its ETag, as it does for
the API, and a missing build or file is answered as an error of the API.
"""

import mimetypes
from pathlib import Path

from redmeter.dashboard.cache import Body
from redmeter.dashboard.errors import HTTPError

#: What the build writes.
STATIC_FOLDER = Path(__file__).parent / "static"
#: Names of assets hold a hash of their content: they never change.
IMMUTABLE = "public, max-age=31536000, immutable"

#: Not left to the machine, whose tables differ.
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}


class Files:
    """The files of the page.

    Args:
        folder: where index.html is, and assets/.
    """

    def __init__(self, folder: Path = STATIC_FOLDER) -> None:
        self._folder = folder
        self._known: dict[Path, tuple[tuple[int, int], Body]] = {}

    @property
    def built(self) -> bool:
        """Whether there is a page."""
        return (self._folder / "index.html").is_file()

    def index(self) -> Body:
        """Return the page.

        Raises:
            HTTPError: it is not built.
        """
        if not self.built:
            raise HTTPError(
                503,
                "page-not-built",
                "the page is not built in this checkout",
                "`make up` builds it; the JSON below /api/ is there anyway",
            )
        return self._read(self._folder / "index.html", "private, no-cache")

    def asset(self, name: str) -> Body:
        """Return a file of assets/, by its name.

        Raises:
            HTTPError: there is none of that name.
        """
        folder = self._folder / "assets"
        files = {file.name: file for file in folder.iterdir()} if folder.is_dir() else {}
        file = files.get(name)
        if file is None or not file.is_file():
            raise no_such(f"assets/{name}")
        return self._read(file, IMMUTABLE)

    def _read(self, file: Path, cache: str) -> Body:
        stat = file.stat()
        state = stat.st_mtime_ns, stat.st_size
        known = self._known.get(file)
        if known is None or known[0] != state:
            kind = _TYPES.get(file.suffix) or mimetypes.guess_type(file.name)[0]
            body = Body(file.read_bytes(), kind or "application/octet-stream", cache=cache)
            known = self._known[file] = state, body
        return known[1]


def no_such(path: str) -> HTTPError:
    """Return the refusal of a path that nothing is at."""
    shown = ascii(path)[1:-1][:100]
    fix = "/api/openapi.json lists what there is"
    return HTTPError(404, "not-found", f"there is nothing at {shown}", fix)
