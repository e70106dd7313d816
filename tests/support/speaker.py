"""A server that speaks TLS, and the certificates that it may show."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

from support.binaries import Unavailable
from support.certificates import Authority, Certificate
from support.fleet import missing
from support.servers import Server, free_port

#: The password of the key that is encrypted.
KEYWORD = "hidden-keyword"


class Papers(NamedTuple):
    """Certificates, by what is right or wrong about them."""

    folder: Path
    ca: Path
    other_ca: Path
    #: By what is right or wrong about them.
    good: Certificate
    expired: Certificate
    renamed: Certificate
    locked: Certificate
    #: Of the other CA.
    foreign: Certificate


def papers_in(folder: Path) -> Papers:
    """Make them."""
    ca, other = Authority(folder / "ca"), Authority(folder / "other")
    return Papers(
        folder,
        ca.file,
        other.file,
        ca.issue("good"),
        ca.issue("expired", expired=True),
        ca.issue("renamed", names="DNS:other.example"),
        ca.issue("locked", password=KEYWORD),
        other.issue("foreign"),
    )


def tls_settings(papers: Papers, port: int) -> dict[str, str | int]:
    """Return what makes a server speak TLS at a port."""
    return {
        "tls-port": port,
        "tls-cert-file": str(papers.good.file),
        "tls-key-file": str(papers.good.key),
        "tls-ca-cert-file": str(papers.ca),
        "tls-auth-clients": "no",
    }


class Speaker:
    """A server that speaks TLS at one port and not at another."""

    def __init__(self, name: str, papers: Papers) -> None:
        self.papers = papers
        self.port = free_port()
        self.server = Server(name, config=tls_settings(papers, self.port))

    def show(self, certificate: Certificate) -> None:
        """Have it show another certificate from now on."""
        with self.server.client() as admin:
            admin.execute_command(
                *("CONFIG", "SET", "tls-cert-file", str(certificate.file)),
                *("tls-key-file", str(certificate.key)),
            )

    def set(self, **settings: str) -> None:
        """Change settings."""
        with self.server.client() as admin:
            for name, value in settings.items():
                admin.config_set(name.replace("_", "-"), value)

    def url(
        self,
        *,
        ca: Path | None = None,
        port: int = 0,
        scheme: str = "rediss",
        options: Mapping[str, object] | None = None,
    ) -> str:
        """Return its address.

        Args:
            ca: the file of a CA that is known.
            port: another one than that for TLS.
            options: of the URL.
        """
        given = dict(options or {}) | ({"ssl_ca_certs": ca} if ca else {})
        query = urlencode(given)
        return f"{scheme}://127.0.0.1:{port or self.port}/0" + (f"?{query}" if query else "")

    @property
    def good(self) -> str:
        """The address with all that is needed."""
        return self.url(ca=self.papers.ca)


def speaker_of(name: str, papers: Papers) -> Speaker:
    """Make one, or end the test where there is no such server."""
    try:
        return Speaker(name, papers)
    except Unavailable as error:
        missing(error)
