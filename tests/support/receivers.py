"""Receivers of notices that misbehave: a server whose answer the path of a request names."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

#: Seconds between two bytes of a receiver that drips.
DRIP = 3.0


def _status(line: str, *headers: str) -> bytes:
    return "\r\n".join([f"HTTP/1.1 {line}", *headers, "Content-Length: 0", "", ""]).encode()


#: Path -> the whole answer.
ANSWERS = {
    "ok": _status("200 OK"),
    "500": _status("500 token=s3cr3t-of-the-receiver"),
    "429": _status("429 Slow down", "Retry-After: 120"),
    "302": _status("302 Found", "Location: /ok"),
    "307": _status("307 Elsewhere", "Location: /ok"),
    "308": _status("308 Elsewhere", "Location: /ok"),
    "garbage": b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
    "badstatus": b"HTTP/1.1 abc\r\n\r\n",
    "binary": bytes(range(256)) * 8,
    "close": b"",
    "longline": b"HTTP/1.1 200 OK\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
    "manyheaders": b"HTTP/1.1 200 OK\r\n" + b"X: a\r\n" * 200 + b"\r\n",
    "badchunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
}
#: Other paths: the server answers never, or with a byte every DRIP seconds.
HANGS, DRIPS = "hang", "drip"


class Misbehaving:
    """A server of webhooks, and of mail that hangs or drips.

    Attributes:
        requests: the paths of requests and their bodies, in the order of arrival.
    """

    def __init__(self) -> None:
        self.requests: list[tuple[str, bytes]] = []
        self._over = threading.Event()
        self._server = socket.create_server(("127.0.0.1", 0))
        self._threads: list[threading.Thread] = []

    @property
    def port(self) -> int:
        """The port on 127.0.0.1."""
        return int(self._server.getsockname()[1])

    def url(self, path: str) -> str:
        """Return the URL that gets an answer of ANSWERS, HANGS or DRIPS."""
        return f"http://127.0.0.1:{self.port}/{path}"

    def serve(self) -> None:
        """Serve until closed."""
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._answer, args=(connection,))
            self._threads.append(thread)
            thread.start()

    def close(self) -> None:
        """End all connections."""
        self._over.set()
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for thread in self._threads:
            thread.join()

    def _answer(self, connection: socket.socket) -> None:
        connection.settimeout(0.2)
        with connection, suppress(OSError):
            text = self._request(connection)
            path = text.split(b" ")[1].decode()[1:] if text.count(b" ") > 1 else HANGS
            self.requests.append((path, text.partition(b"\r\n\r\n")[2]))
            if path == DRIPS:
                for byte in ANSWERS["ok"]:
                    connection.sendall(bytes([byte]))
                    if self._over.wait(DRIP):
                        break
            elif path == HANGS:
                self._over.wait()
            else:
                connection.sendall(ANSWERS[path])

    def _request(self, connection: socket.socket) -> bytes:
        text, size = b"", -1
        while not self._over.is_set() and (size < 0 or len(text.partition(b"\r\n\r\n")[2]) < size):
            with suppress(TimeoutError):
                part = connection.recv(65536)
                if not part:
                    break
                text += part
            head, ended, _ = text.lower().partition(b"\r\n\r\n")
            if ended:
                size = int(head.partition(b"content-length:")[2].split()[0])
        return text


@contextmanager
def misbehaving() -> Iterator[Misbehaving]:
    """Run a server of receivers that misbehave."""
    server = Misbehaving()
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        yield server
    finally:
        server.close()
        thread.join()


#: Code for the `sitecustomize` of a process: a resolver that never answers for one host. It waits
#: in a system call that no timeout of a client covers, as that of the C library does.
SILENT_RESOLVER = """
import socket

_resolve = socket.getaddrinfo

def getaddrinfo(host, *args, **kwargs):
    if host == "silent.example":
        ends = socket.socketpair()
        ends[0].recv(1)
    return _resolve(host, *args, **kwargs)

socket.getaddrinfo = getaddrinfo
"""
