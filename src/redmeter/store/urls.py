"""Where the store is: a URL taken apart, and a text for it that holds no password."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qsl, unquote, urlsplit

from redis.connection import parse_url

from redmeter.errors import InvalidSetting
from redmeter.store import embedded

_EXAMPLES = "redis://HOST:PORT/DB, rediss://…, unix:///PATH, embedded://PATH or off"


@dataclass(frozen=True, slots=True)
class Target:
    """A place to connect to."""

    kind: Literal["server", "embedded", "off"]
    #: For messages: scheme, host, port, database or path; no user, no password.
    location: str
    #: Keyword arguments of the client; they may hold a password, so no repr shows them.
    options: dict[str, Any] = field(default_factory=dict, repr=False)
    #: Data directory of an embedded server.
    path: Path | None = None


def parse(url: str) -> Target:
    """Read a URL. No I/O.

    Args:
        url: see settings.py; empty means the embedded server at its default place.

    Raises:
        InvalidSetting: unknown scheme, bad port or database, unknown option. The message does
            not repeat the URL, which may hold a password.
    """
    if url == "off":
        return Target("off", "off")
    scheme, separator, rest = url.partition("://")
    scheme = scheme.lower()
    if not url or scheme == "embedded":
        path = Path(unquote(rest)).expanduser() if rest else embedded.default_path()
        return Target("embedded", f"embedded://{path}", path=path)
    if not separator or scheme not in ("redis", "rediss", "unix"):
        known = scheme if separator and scheme.replace("+", "").isalnum() else "none"
        raise InvalidSetting("url", f"unknown scheme ({known}); use {_EXAMPLES}")
    try:
        parts = urlsplit(url)
        options = dict(parse_url(scheme + separator + rest))  # type: ignore[no-untyped-call]
        port = parts.port
    except ValueError:  # its text may quote a part of the password
        raise InvalidSetting(
            "url",
            "cannot be read: check port, database and options, and write special characters "
            f"of the password as %XX; use {_EXAMPLES}",
        ) from None
    database = options.get("db", 0)
    if scheme == "unix":
        location = f"unix://{options.get('path', '')}?db={database}"
    else:
        if parts.path.strip("/") and not parts.path.strip("/").isdigit():
            raise InvalidSetting("url", "the part after the last / is the database, a number")
        location = f"{scheme}://{parts.hostname or 'localhost'}:{port or 6379}/{database}"
    options.pop("decode_responses", None)
    unknown = [key for key, _ in parse_qsl(parts.query) if not key.replace("_", "").isalnum()]
    if unknown:
        raise InvalidSetting("url", "an option's name is not a word")
    return Target("server", location, options)
