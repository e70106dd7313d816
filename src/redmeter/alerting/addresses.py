"""Addresses of receivers: URLs, hosts and mail addresses that can be sent to. Pure: no I/O."""

import ipaddress
import re
from urllib.parse import urlsplit

#: The characters of a URL (RFC 3986).
_URL = re.compile(r"(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+")
#: The host and the port of a URL.
_NETLOC = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[^\[\]:]+)(?::[0-9]+)?")
#: Names of hosts, whose last part is no number.
_HOST = re.compile(r"(?![0-9.]+$)(?!-)[\w-]{1,63}(?:\.[\w-]{1,63})*\.?")
#: A mail address, alone or after a name (RFC 5322, without comments and quoted local parts).
_MAIL = re.compile(r'(?:"[^"\\]*"|[^<>@,;:"()\[\]\\]*)<([^<>]+)>|([^<>]+)')
_LOCAL = re.compile(r'[^\s@<>(),:;"\[\]\\.]+(?:\.[^\s@<>(),:;"\[\]\\.]+)*')


def url_mistake(url: str) -> str:
    """Return why no notice can be sent to a URL; "" if one can."""
    if not url.casefold().startswith(("https://", "http://")):
        return "must begin with https:// or http://"
    if not _URL.fullmatch(url):
        return "has a space or another character that URLs write as %20, and hosts as xn--"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return "has no valid host or port, such as https://example.com:8443/hook"
    if not host:
        return "has no host, such as https://example.com/hook"
    if "@" in parts.netloc:
        return "has a user or password, which are not sent"
    if port == 0 or not _NETLOC.fullmatch(parts.netloc) or not is_host(host):
        return "has no valid host or port, such as https://example.com:8443/hook"
    return ""


def is_host(text: str) -> bool:
    """Return whether a text is the name of a host, or an IP address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        try:
            return _HOST.fullmatch(text) is not None and len(text.encode("idna")) <= 253
        except UnicodeError:
            return False
    return True


def is_mail_address(text: str) -> bool:
    """Return whether a text is one mail address: ops@example.com, or Ops <ops@example.com>."""
    match = _MAIL.fullmatch(text)
    local, _, host = (match[1] or match[2]).strip().partition("@") if match else ("", "", "")
    if ":" in host or host.endswith(".") or not (local + host).isascii():  # as servers require
        return False
    return _LOCAL.fullmatch(local) is not None and is_host(host)
