"""Library code: which source files belong to a library, and which to the application.

Problem: most errors are raised by a library, for a reason that is in the application. The frame
`default.py:1192 in do_execute` is the same for every failed statement of a program.

Idea: the path decides.

    /srv/shop/.venv/lib/python3.12/site-packages/flask/app.py    library: site-packages
    /usr/lib/python3/dist-packages/requests/api.py               library: dist-packages
    /usr/lib/python3.12/json/decoder.py                          library: where `os` is
    <frozen runpy>                                               library: the standard library
    …/redmeter/integrations/wsgi.py                              library: Redmeter itself
    /srv/shop/.venv/../views.py, /srv/shop.pyz/shop/views.py     application
    <string>, <stdin>, <template>                                application

A virtual environment within the project is therefore no problem, and neither is an editable
install, which stays outside of site-packages.

Bound: one dictionary lookup for a known file; FILES files are cached.

Not done: an application that is itself installed into site-packages, and libraries that are copied
next to the application (`pip install --target`, AWS Lambda), look like the other kind.
"""

import os
from pathlib import Path

#: Files that are cached.
FILES = 4096

_known: dict[str, bool] = {}


def in_library(file: str) -> bool:
    """Return whether a source file belongs to a library, the standard library, or Redmeter.

    Args:
        file: as a code object or a traceback names it.
    """
    known = _known.get(file)
    if known is None:
        known = _is_library(file.replace("\\", "/"))
        if len(_known) < FILES:
            _known[file] = known
    return known


def _is_library(path: str) -> bool:
    return (
        not path
        or path.startswith(("<frozen ", *_FOLDERS))
        or "/site-packages/" in path
        or "/dist-packages/" in path
    )


def _folder(file: str | None) -> tuple[str, ...]:
    return (f"{Path(file).parent.as_posix()}/",) if file else ()


#: Where the standard library and Redmeter are. `os` has no file in a program that is frozen whole.
_FOLDERS = (
    *_folder(getattr(os, "__file__", None)),
    *_folder(str(Path(__file__).parents[1])),
)
