"""URLs: parses the URL of a store, without its password for messages; and options of TLS."""

import re
import ssl
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple
from urllib.parse import parse_qs, quote, unquote, urlsplit

import redis
from redis.connection import URL_QUERY_ARGUMENT_PARSERS, parse_url, to_bool

from redmeter.errors import InvalidSetting
from redmeter.lazy_regex import late

_EXAMPLES = (
    "redis://HOST:PORT/DB, rediss://…, unix:///PATH, redis+cluster://HOST:PORT,…, "
    "redis+sentinel://HOST:PORT,…/SERVICE/DB, embedded://PATH or off"
)

#: Schemes that others use, worth naming when they are refused.
_OTHERS = {
    *("redis-sentinel", "redis-cluster", "redis+unix", "http"),
    *("valkey", "valkeys", "https", "tcp", "file", "sqlite"),
}
#: Options of the client that a URL may have, besides those of TLS: those whose value is text.
_OPTIONS = {
    *("db", "username", "password", "client_name", "lib_name", "lib_version", "protocol"),
    *("socket_timeout", "socket_connect_timeout", "socket_keepalive", "socket_read_size"),
    *("health_check_interval", "max_connections", "retry_on_timeout", "decode_responses"),
    *("encoding", "encoding_errors"),
}
#: Options for OCSP, which need objects and so cannot be in a URL.
_OF_OCSP = {
    *("ssl_validate_ocsp", "ssl_validate_ocsp_stapled"),
    *("ssl_ocsp_context", "ssl_ocsp_expected_cert"),
}
#: The options of TLS: those whose value is text, and those that the client reads from one.
_OF_TLS = {
    *("ssl_ca_certs", "ssl_ca_path", "ssl_ca_data", "ssl_certfile", "ssl_keyfile"),
    *("ssl_password", "ssl_cert_reqs", "ssl_ciphers"),
    *(name for name in URL_QUERY_ARGUMENT_PARSERS if name.startswith("ssl_")),
} - _OF_OCSP
#: The words for yes and no: the client takes any other for yes.
_YES, _NO = ("true", "yes", "on", "1", "t", "y"), ("false", "no", "off", "0", "f", "n")
#: Credentials of the sentinels, which differ from those of the server.
_OF_SENTINELS = ("sentinel_username", "sentinel_password")
#: The default port of sentinels.
_SENTINEL_PORT = 26379
#: One of several hosts, with its port: anything else might be a part of a password.
_HOST = late(r"(?P<host>[\w.-]+|\[[0-9A-Fa-f:.]+\])(:(?P<port>[0-9]{1,5}))?", re.ASCII)
#: Options that we set ourselves: accepted, since URLs are shared with other programs.
_IGNORED = (
    *("decode_responses", "encoding", "encoding_errors", "max_connections", "retry_on_timeout"),
)


def in_short(location: str) -> str:
    """Return a location with no more than two of the nodes that it names, for messages."""
    nodes = location.split(",")
    return location if len(nodes) < 3 else f"{nodes[0]},{nodes[1]} …"


class Target(NamedTuple):
    """A place to connect to."""

    kind: Literal["server", "cluster", "sentinel", "embedded", "off"]
    #: For messages: scheme, host, port, database or path; no user, no password.
    location: str
    #: Keyword arguments of the client; they may hold a password, so no repr shows them.
    options: Mapping[str, Any] = MappingProxyType({})
    #: Data directory of an embedded server.
    path: Path | None = None
    #: Host and port of some nodes of a cluster, or of sentinels.
    nodes: tuple[tuple[str, int], ...] = ()
    #: The name of the service, and our credentials at the sentinels.
    service: str = ""
    of_sentinels: Mapping[str, str] = MappingProxyType({})

    def __repr__(self) -> str:
        return f"<Target {self.kind} {self.location}>"


def parse_target(url: str) -> Target:
    """Read a URL. No I/O.

    Args:
        url: see settings.py; empty means the embedded server at its default place.

    Raises:
        InvalidSetting: unknown scheme, bad port or database, unknown option. The message does
            not repeat the URL, which may hold a password.
    """
    if url == "off":
        return Target("off", "off")
    if url[0:1] in ("'", '"') or url != url.strip():
        raise InvalidSetting(
            "url",
            "is in quotes, or has a space at an end: remove these, which a shell does and "
            "`docker run --env-file` does not",
        )
    scheme, separator, rest = url.partition("://")
    scheme = scheme.lower()
    if not url or scheme == "embedded":
        return _embedded(rest)
    if separator and scheme in ("redis+cluster", "rediss+cluster"):
        return _cluster(scheme, rest)
    if separator and scheme in ("redis+sentinel", "rediss+sentinel"):
        return _sentinel(scheme, rest)
    if not separator or scheme not in ("redis", "rediss", "unix"):
        # Only known schemes are repeated: the text might be a part of a password.
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
    query = parse_qs(parts.query, keep_blank_values=True)
    # After an unescaped & in a password there, the rest of it looks like an option.
    secret = any("password" in option for option in query)
    for option in query:
        if option not in _OPTIONS and option not in _OF_TLS:
            raise _unknown(option, secret=secret)
        if URL_QUERY_ARGUMENT_PARSERS.get(option) is to_bool:
            options[option] = _yes_or_no(option, query[option][0])
    for option in _IGNORED:
        options.pop(option, None)
    return Target("server", location, options)


def _yes_or_no(option: str, word: str) -> bool:
    if word.lower() not in (*_YES, *_NO):
        raise InvalidSetting("url", f"{option} is {', '.join(_YES[:4])}, or {', '.join(_NO[:4])}")
    return word.lower() in _YES


def _cluster(scheme: str, rest: str) -> Target:
    """Parse the rest of a redis+cluster:// URL; each node is written like a single host."""
    netloc, slash, path = rest.partition("/")
    if not slash:
        netloc, question, path = rest.partition("?")
        path = question + path
    login, at, hosts = _of_several(netloc)
    plain = scheme.partition("+")[0]
    targets = [
        parse_target(f"{plain}://{login}{at}{host}{slash}{path}")
        for host in hosts.split(",")
        if host
    ]
    if not targets:
        raise _unreadable()
    if any(target.options.get("db", 0) != 0 for target in targets):
        raise InvalidSetting("url", "a cluster has no databases: leave the number after the / out")
    options = dict(targets[0].options)
    for name in ("db", "host", "port"):
        options.pop(name, None)
    places = [target.options for target in targets]
    nodes = tuple((place.get("host", "localhost"), place.get("port", 6379)) for place in places)
    shown = ",".join(t.location.partition("://")[2].rpartition("/")[0] for t in targets)
    return Target("cluster", f"{scheme}://{shown}", options, nodes=nodes)


def _sentinel(scheme: str, rest: str) -> Target:
    """Parse the rest of a redis+sentinel:// URL: everything except the address of the primary."""
    plain = scheme.partition("+")[0]
    try:
        parts = urlsplit(f"{plain}://{rest}")
        query = parse_qs(parts.query, keep_blank_values=True)
    except ValueError:  # its text may quote a part of the password
        raise _unreadable() from None
    if parts.fragment or "@" in parts.path + parts.query:
        raise _unreadable()  # an unescaped mark in the password, which would go on after it
    login, at, hosts = _of_several(parts.netloc)
    nodes = []
    for each in hosts.split(","):
        match = _HOST.fullmatch(each)
        port = int(match["port"] or _SENTINEL_PORT) if match else 0
        if match is None or not 0 < port < 65536:
            raise _unreadable()
        nodes.append((match["host"].strip("[]"), port))
    service, _, database = parts.path[1:].partition("/")
    name = unquote(service)
    if not name or not name.isprintable():
        form = f"{scheme}://HOST:PORT,HOST:PORT/SERVICE/DB"
        raise InvalidSetting("url", f"lacks the service name that the sentinels know: use {form}")
    pairs = parts.query.split("&")
    others = "&".join(pair for pair in pairs if pair.partition("=")[0] not in _OF_SENTINELS)
    try:
        server = parse_target(f"{plain}://{login}{at}localhost/{database}?{others}")
    except InvalidSetting:
        if any("password" in option for option in query):
            raise _unreadable() from None  # perhaps the rest of an unescaped password
        raise
    options = {k: v for k, v in server.options.items() if k not in ("host", "port")}
    shown = ",".join(f"[{h}]:{p}" if ":" in h else f"{h}:{p}" for h, p in nodes)
    return Target(
        "sentinel",
        f"{scheme}://{shown}/{quote(name, safe='')}/{options.get('db', 0)}",
        options,
        nodes=tuple(nodes),
        service=name,
        of_sentinels={
            option.removeprefix("sentinel_"): query[option][0]
            for option in _OF_SENTINELS
            if option in query
        },
    )


def _of_several(netloc: str) -> tuple[str, str, str]:
    """Split the part before the path into login, `@` and hosts."""
    login, at, hosts = netloc.rpartition("@")
    if "," in login:  # the first host would be taken for the user
        raise InvalidSetting(
            "url",
            "one login precedes all nodes, USER:PASSWORD@HOST:PORT,…; write a comma in it as %2C",
        )
    return login, at, hosts


def _embedded(rest: str) -> Target:
    # Imported only if the embedded server is used.
    from redmeter.store import embedded

    try:
        path = Path(unquote(rest)).expanduser() if rest else embedded.default_path()
    except RuntimeError:
        raise InvalidSetting("url", "embedded://~USER/…: no such user, or no home") from None
    return Target("embedded", f"embedded://{path}", path=path)


def _unknown(option: str, *, secret: bool) -> InvalidSetting:
    """Return the error for an unknown option, which may be a part of a password if `secret`."""
    if option in _OF_OCSP:
        return InvalidSetting(
            "url",
            f"{option}: OCSP is asked by no option of a URL, but by a client of your own, "
            f"Meter(client=redis.Redis(…)); of TLS there are {', '.join(sorted(_OF_TLS))}",
        )
    named = "" if secret else f": {option[:40]!a}"
    known = sorted(_OF_TLS) if option.startswith("ssl_") else [*sorted(_OPTIONS), "ssl_…"]
    return InvalidSetting("url", f"has an unknown option{named}; use {', '.join(known)}")


def _unreadable() -> InvalidSetting:
    return InvalidSetting(
        "url",
        "cannot be read: check port, database and options, and write special characters "
        f"of the password as %XX; use {_EXAMPLES}",
    )


# --- TLS -----------------------------------------------------------------------------------------
# TLS: the verification of our own connections, and the fix if one fails.
#
# Certificate and host name are verified unless the URL disables it, whatever the client library's
# defaults are. Nothing here connects; errors are distinguished by their texts, since the client
# library keeps nothing else of them.

_DEFAULTS = {"ssl_cert_reqs": "required", "ssl_check_hostname": True}
#: For the client, both words for required mean the same.
_LEVELS = ("required", "optional", "none")

#: Pattern of an error's text -> the fix. The first match applies.
_MENDED = (
    (
        late(r"(?i)max number of clients"),
        "raise the server's maxclients, or close connections: CLIENT LIST names them",
    ),
    (
        late(r"self[- ]signed certificate|unable to get (local )?issuer"),
        "the CA of the server's certificate is unknown here: set ssl_ca_certs to its file",
    ),
    (
        late(r"certificate (has expired|is not yet valid)"),
        "the server needs a new certificate, or the clock of this machine is wrong",
    ),
    (
        late(r"(?i)(hostname|IP address) mismatch|doesn't match"),
        "connect to a name that the server's certificate is for, or have one made for this name",
    ),
    (
        late(r"(?i)missing \w+ key identifier|key usage|basic constraints"),
        "from Python 3.13 on certificates have to keep RFC 5280: this one does not, or its CA's",
    ),
    (late(r"certificate verify failed"), "the server needs another certificate, see ssl_ca_certs"),
    (
        late(r"(?i)wrong.version.number|record layer failure|packet length too long"),
        "no TLS is spoken there: redis:// in place of rediss://, or the server's port for TLS",
    ),
    (
        late(r"(?i)alert certificate expired"),
        "the certificate in ssl_certfile has expired: renew it; or the server's clock is wrong",
    ),
    (
        late(r"(?i)alert unknown ca"),
        (
            "the server does not know the CA of the certificate in ssl_certfile: use one of its "
            "CA, or add yours to its tls-ca-cert-file"
        ),
    ),
    (
        late(r"(?i)alert (bad|unsupported) certificate|alert certificate (revoked|unknown)"),
        "the server refuses the certificate in ssl_certfile: revoked, not yet valid, or unsuitable",
    ),
    (
        late(r"(?i)alert protocol version|unsupported protocol|no protocols available"),
        "no version of TLS is allowed on both sides: see tls-protocols there, ssl_min_version here",
    ),
    (
        late(r"(?i)certificate required|handshake failure"),
        "the server may want a certificate of yours: ssl_certfile and ssl_keyfile name its files",
    ),
    (
        late(r"(?i)EOF occurred"),
        (
            "the server may want a certificate of yours: ssl_certfile and ssl_keyfile name its "
            "files; if they do, it may have expired or be of another CA"
        ),
    ),
)
#: How a connection ends that speaks TLS where the server does not, or the other way round; or where
#: the server wants another certificate of ours, and has broken off before it said so.
_SILENT = late(r"(?i)timeout connecting")
_BROKEN = late(r"(?i)reset by peer|closed by server|protocol error|broken pipe")
_SPEAKS = "Is the server running, and does it speak TLS at this port?"


def advice(location: str, text: str) -> str:
    """Return the fix of a connection that failed; "" for the usual one.

    Args:
        location: where it leads to, see urls.Target; of a node, after how that is called.
        text: of the client library's error.
    """
    kind = re.search(r"\brediss?(\+\w+)://", location)
    fix = _advice(location, text)
    return re.sub(r"\b(rediss?)://", rf"\1{kind[1]}://", fix) if kind else fix


def _advice(location: str, text: str) -> str:
    for pattern, fix in _MENDED:
        if pattern.search(text):
            return fix
    silent, broken = _SILENT.search(text), _BROKEN.search(text)
    spoken, plain = (re.search(rf"\b{word}(://|\+)", location) for word in ("rediss", "redis"))
    if spoken and silent:
        return f"{_SPEAKS} If not: redis://"
    if spoken and broken:
        return f"{_SPEAKS} It may want a certificate of yours, or another: see ssl_certfile"
    if plain and broken:
        return "Is the server running, and the URL right? If it wants TLS: rediss://"
    return ""


def verified(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a client, with verification. Reads the files they name.

    Raises:
        InvalidSetting: a file cannot be used, or an option has no such value.
    """
    merged = dict(options)
    if merged.get("connection_class") is not redis.SSLConnection:
        return merged
    merged = _DEFAULTS | merged
    if merged["ssl_cert_reqs"] not in _LEVELS:
        raise InvalidSetting("url", f"ssl_cert_reqs is one of {', '.join(_LEVELS)}")
    if merged["ssl_cert_reqs"] == "none":
        merged["ssl_check_hostname"] = False  # or redis-py 6.0 would not connect at all
    if "ssl_certfile" in merged or "ssl_keyfile" in merged:
        # Given none, OpenSSL would ask for the password of an encrypted key, at the terminal.
        merged.setdefault("ssl_password", "")
    _check_files(merged)
    _check_terms(merged)
    return merged


def _check_files(options: Mapping[str, Any]) -> None:
    names = ("ssl_certfile", "ssl_keyfile", "ssl_ca_certs", "ssl_ca_path", "ssl_ca_data")
    certificate, key, file, folder, data = map(options.get, names)
    for name, path in zip(names, (certificate, key, file, folder), strict=False):
        if path is not None:
            _check_readable(name, path)
    if key is not None and certificate is None:
        raise InvalidSetting("url", "ssl_keyfile needs ssl_certfile, the certificate of that key")
    if certificate is not None and key is None and not _holds_key(certificate):
        raise InvalidSetting(
            "url", f"ssl_certfile: {certificate!a} holds no key: name its file as ssl_keyfile"
        )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        if file is not None or folder is not None or data is not None:
            context.load_verify_locations(file, folder, data)
    except (ssl.SSLError, ValueError) as error:
        raise InvalidSetting(
            "url", f"ssl_ca_…: no certificates of a CA, as PEM ({_reason(error)})"
        ) from None
    try:
        if certificate is not None:
            context.load_cert_chain(certificate, key, options["ssl_password"])
    except (ssl.SSLError, ValueError) as error:
        raise InvalidSetting(
            "url",
            f"ssl_certfile, ssl_keyfile: no certificate and the key that belongs to it, as PEM "
            f"({_reason(error)}); the password of an encrypted key is ssl_password",
        ) from None


def _check_terms(options: Mapping[str, Any]) -> None:
    version, ciphers = options.get("ssl_min_version"), options.get("ssl_ciphers")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        if version is not None:
            context.minimum_version = version
    except (ValueError, OverflowError):
        known = f"{int(ssl.TLSVersion.TLSv1_2)} for TLS 1.2, {int(ssl.TLSVersion.TLSv1_3)} for 1.3"
        raise InvalidSetting("url", f"ssl_min_version is a number: {known}") from None
    try:
        if ciphers is not None:
            context.set_ciphers(ciphers)
    except (ssl.SSLError, ValueError):
        raise InvalidSetting("url", "ssl_ciphers: OpenSSL knows no such ciphers") from None


def _check_readable(name: str, path: str) -> None:
    try:
        if name == "ssl_ca_path":
            next(Path(path).iterdir(), None)
        else:
            Path(path).open("rb").close()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "no path"
        raise InvalidSetting("url", f"{name}: {path!a} cannot be read: {why}") from None


def _holds_key(path: str) -> bool:
    return b"PRIVATE KEY-----" in Path(path).read_bytes()


def _reason(error: Exception) -> str:
    reason = getattr(error, "reason", None)
    return str(reason).replace("_", " ").lower() if reason else "not readable"
