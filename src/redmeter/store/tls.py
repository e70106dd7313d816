"""TLS: the verification of our own connections, and the fix if one fails.

Certificate and host name are verified unless the URL disables it, whatever the client library's
defaults are. Nothing here connects; errors are distinguished by their texts, since the client
library keeps nothing else of them.
"""

import re
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import redis

from redmeter.errors import InvalidSetting
from redmeter.expressions import late

_DEFAULTS = {"ssl_cert_reqs": "required", "ssl_check_hostname": True}
#: For the client, both words for required mean the same.
_LEVELS = ("required", "optional", "none")

#: Pattern of an error's text -> the fix. The first match applies.
_MENDED = (
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
        late(r"(?i)certificate required|handshake failure|EOF occurred|bad certificate|unknown ca"),
        "the server may want a certificate of yours: ssl_certfile and ssl_keyfile name its files",
    ),
)
#: How a connection ends that speaks TLS where the server does not, or the other way round; or where
#: the server wants a certificate of ours, and has broken off before it said so.
_SILENT = late(r"(?i)timeout connecting")
_BROKEN = late(r"(?i)reset by peer|closed by server|protocol error|broken pipe")
_SPEAKS = "Is the server running, and does it speak TLS at this port?"


def advice(location: str, text: str) -> str:
    """Return the fix of a connection that failed; "" if TLS has nothing to do with it.

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
        return f"{_SPEAKS} It may want a certificate of yours: ssl_certfile, ssl_keyfile"
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


def _reason(error: Exception) -> str:
    reason = getattr(error, "reason", None)
    return str(reason).replace("_", " ").lower() if reason else "not readable"
