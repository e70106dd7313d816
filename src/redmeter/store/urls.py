"""Where the store is: a URL taken apart, and a text for it that holds no password."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from redis.connection import parse_url

from redmeter.errors import InvalidSetting

_EXAMPLES = "redis://HOST:PORT/DB, rediss://…, unix:///PATH, embedded://PATH or off"

#: Schemes that others use, worth naming when they are refused.
_OTHERS = {
    *("redis+sentinel", "redis+cluster", "redis-sentinel", "redis-cluster", "redis+unix", "http"),
    *("rediss+sentinel", "rediss+cluster", "valkey", "valkeys", "https", "tcp", "file", "sqlite"),
}
#: Options of the client that may stand in a URL, beside those of TLS: those whose value is text.
_OPTIONS = {
    *("db", "username", "password", "client_name", "lib_name", "lib_version", "protocol"),
    *("socket_timeout", "socket_connect_timeout", "socket_keepalive", "socket_read_size"),
    *("health_check_interval", "max_connections", "retry_on_timeout", "decode_responses"),
    *("encoding", "encoding_errors"),
}
#: Of these, what we set ourselves: accepted, since URLs are shared with other programs.
_IGNORED = (
    *("decode_responses", "encoding", "encoding_errors", "max_connections", "retry_on_timeout"),
)


class Target(NamedTuple):
    """A place to connect to."""

    kind: Literal["server", "embedded", "off"]
    #: For messages: scheme, host, port, database or path; no user, no password.
    location: str
    #: Keyword arguments of the client; they may hold a password, so no repr shows them.
    options: Mapping[str, Any] = MappingProxyType({})
    #: Data directory of an embedded server.
    path: Path | None = None

    def __repr__(self) -> str:
        return f"<Target {self.kind} {self.location}>"


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
        return _embedded(rest)
    if not separator or scheme not in ("redis", "rediss", "unix"):
        # Only what is known to be a scheme is repeated; it might be a part of a password.
        known = f" ({scheme})" if separator and scheme in _OTHERS else ""
        raise InvalidSetting("url", f"unknown scheme{known}; use {_EXAMPLES}")
    try:
        parts = urlsplit(url)
        options = dict(parse_url(scheme + separator + rest))  # type: ignore[no-untyped-call]
        port = parts.port
    except ValueError:  # its text may quote a part of the password
        raise _unreadable() from None
    host = parts.netloc.rpartition("@")[2]
    if options.get("max_connections", 1) < 1 or options.get("protocol", 2) not in (2, 3):
        raise _unreadable()
    if parts.fragment or "@" in parts.query or port == 0:
        raise _unreadable()  # an unescaped # or ? in the password, which would go on after it
    if scheme == "unix" and (host or not parts.path[1:] or (parts.netloc and "@" in parts.path)):
        raise _unreadable()  # an unescaped / in the password, or unix://tmp/… for unix:///tmp/…
    database = options.get("db", 0)
    if scheme == "unix":
        location = f"unix://{options.get('path', '')}?db={database}"
    else:
        number = parts.path.strip("/")
        if number and not (number.isascii() and number.isdigit()):
            raise InvalidSetting("url", "the part after the last / is the database, a number")
        name = parts.hostname or "localhost"
        shown = f"[{name}]" if ":" in name else name
        location = f"{scheme}://{shown}:{port or 6379}/{database}"
    given = parse_qs(parts.query, keep_blank_values=True)
    # After an unescaped & in a password there, the rest of it looks like an option.
    secret = any("password" in option for option in given)
    for option in given:
        if option not in _OPTIONS and not option.startswith("ssl_"):
            named = "" if secret else f": {option[:40]!a}"
            known = ", ".join(sorted(_OPTIONS))
            raise InvalidSetting("url", f"has an unknown option{named}; use {known}, ssl_…")
    for option in _IGNORED:
        options.pop(option, None)
    return Target("server", location, options)


def _embedded(rest: str) -> Target:
    # Who has a server elsewhere need not load what starts one.
    from redmeter.store import embedded

    try:
        path = Path(unquote(rest)).expanduser() if rest else embedded.default_path()
    except RuntimeError:
        raise InvalidSetting("url", "embedded://~USER/…: no such user, or no home") from None
    return Target("embedded", f"embedded://{path}", path=path)


def _unreadable() -> InvalidSetting:
    return InvalidSetting(
        "url",
        "cannot be read: check port, database and options, and write special characters "
        f"of the password as %XX; use {_EXAMPLES}",
    )
