"""Certificates for tests, made by the program `openssl` in a folder of the test's own.

An `Authority` is a CA. Nobody knows it but who is given its file.
"""

import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

_CONFIG = """
[ca]
default_ca = me
[me]
new_certs_dir = .
database = index.txt
serial = serial
certificate = ca.crt
private_key = ca.key
default_md = sha256
policy = any
copy_extensions = copy
unique_subject = no
x509_extensions = leaf
[any]
commonName = supplied
[leaf]
basicConstraints = critical,CA:FALSE
keyUsage = critical,digitalSignature
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
[root]
basicConstraints = critical,CA:TRUE
keyUsage = critical,keyCertSign,cRLSign
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
[req]
distinguished_name = name
[name]
"""
#: How the tool writes moments: long past, past, and far away.
_BEGAN, _ENDED, _FAR = "20200101000000Z", "20200201000000Z", "20460101000000Z"
_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256")

#: Whether any can be made here.
POSSIBLE = shutil.which("openssl") is not None


class Certificate(NamedTuple):
    """The files of a certificate and its key, as PEM."""

    file: Path
    key: Path


class Authority:
    """A CA.

    Args:
        folder: where its files lie; made here.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir()
        (folder / "index.txt").touch()
        (folder / "serial").write_text("01\n")
        (folder / "ca.cnf").write_text(_CONFIG)
        #: What whoever trusts it is given.
        self.file = folder / "ca.crt"
        made = ("-config", "ca.cnf", "-extensions", "root", "-subj", "/CN=ca")
        self._run("req", "-x509", *_KEY, "-nodes", "-keyout", "ca.key", "-out", "ca.crt", *made)

    def issue(
        self, name: str, *, names: str = "IP:127.0.0.1", expired: bool = False, password: str = ""
    ) -> Certificate:
        """Make a certificate.

        Args:
            name: of its files.
            names: what it is for, "IP:127.0.0.1,DNS:localhost".
            expired: it was good years ago.
            password: with which its key is encrypted; "": it is not.
        """
        locked = ("-passout", f"pass:{password}") if password else ("-nodes",)
        wanted = ("-subj", f"/CN={name}", "-addext", f"subjectAltName={names}")
        files = ("-keyout", f"{name}.key", "-out", f"{name}.csr")
        self._run("req", *_KEY, *locked, *files, *wanted)
        life = ("-startdate", _BEGAN, "-enddate", _ENDED if expired else _FAR)
        files = ("-in", f"{name}.csr", "-out", f"{name}.crt")
        self._run("ca", "-batch", "-notext", "-config", "ca.cnf", *files, *life)
        return Certificate(self._folder / f"{name}.crt", self._folder / f"{name}.key")

    def _run(self, *words: str) -> None:
        subprocess.run(
            ["openssl", *words],
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
            timeout=30.0,
        )
