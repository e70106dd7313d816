"""Notifiers, each with a real receiver on loopback."""

import json
import socket
import socketserver
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from redmeter.alerting.notifiers import (
    IDEMPOTENCY,
    SIGNATURE,
    NotDelivered,
    payload,
    send,
    sign,
    verify,
)
from redmeter.alerting.rules import Notifier
from redmeter.alerting.store import Notice
from support.alerts import NOTICE

Request = tuple[dict[str, str], bytes]


@pytest.fixture
def web() -> Iterator[tuple[str, list[Request], list[int]]]:
    """A receiver of webhooks: its URL, the requests, and the statuses to answer with."""
    requests: list[Request] = []
    statuses: list[int] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            requests.append((dict(self.headers), body))
            self.send_response(statuses.pop(0) if statuses else 200)
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/", requests, statuses
        server.shutdown()
        thread.join()


def test_a_webhook_is_signed_and_carries_its_key(
    web: tuple[str, list[Request], list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The receiver verifies it; any other body, secret or time is refused."""
    url, requests, _ = web
    monkeypatch.setenv("HOOK_SECRET", "s3cret")
    send(Notifier("ops", "webhook", {"url": url, "secret_env": "HOOK_SECRET"}), NOTICE)
    headers, body = requests[0]
    assert headers[IDEMPOTENCY] == NOTICE.key
    assert json.loads(body) == payload(NOTICE)
    assert json.loads(body)["incident"] == NOTICE.incident
    header = headers[SIGNATURE]
    assert verify(body, header, "s3cret")
    assert not verify(body + b" ", header, "s3cret")
    assert not verify(body, header, "other")


def test_a_signature_is_of_its_time() -> None:
    """One that was recorded is refused later, and so is what is no signature."""
    header = sign(b"{}", "s", 1_700_000_000)
    assert verify(b"{}", header, "s", now=1_700_000_200)
    assert not verify(b"{}", header, "s", now=1_700_000_400)
    for text in ("", "t=,v1=", "v1=00", "t=9" * 9, header.replace("v1=", "v2="), "t=\u0663,v1=x"):
        assert not verify(b"{}", text, "s", now=1_700_000_000)


@pytest.mark.parametrize("status", [302, 400, 503])
def test_a_receiver_that_refuses_did_not_receive(
    status: int, web: tuple[str, list[Request], list[int]]
) -> None:
    """Redirects included: the body would not arrive."""
    url, requests, statuses = web
    statuses.append(status)
    with pytest.raises(NotDelivered, match=f"HTTP status {status}"):
        send(Notifier("ops", "webhook", {"url": url}), NOTICE)
    assert len(requests) == 1


def test_an_unreachable_receiver_and_a_missing_secret_are_named() -> None:
    """So that the operator can fix it."""
    with pytest.raises(NotDelivered, match="refused"):
        send(Notifier("ops", "webhook", {"url": "http://127.0.0.1:1/"}), NOTICE)
    with pytest.raises(NotDelivered, match="variable REDMETER_NO_SUCH is not set"):
        send(Notifier("ops", "slack", {"url_env": "REDMETER_NO_SUCH"}), NOTICE)


def test_a_receiver_that_does_not_speak_http_did_not_receive() -> None:
    """The evaluator goes on."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"220 mail.example ESMTP\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        with pytest.raises(NotDelivered, match="BadStatusLine: 220 mail"):
            send(Notifier("ops", "webhook", {"url": url}), NOTICE)
        thread.join()


@pytest.mark.parametrize("url", ["https://exa mple.com", "file:///etc/passwd", "http://h:99999"])
def test_a_url_of_the_environment_is_checked(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one in the file is; only when a notice is sent is it known."""
    monkeypatch.setenv("SLACK_URL", url)
    with pytest.raises(NotDelivered, match=r"the URL (has|must begin)"):
        send(Notifier("ops", "slack", {"url_env": "SLACK_URL"}), NOTICE)


def test_pagerduty_and_slack_get_their_own_forms(
    web: tuple[str, list[Request], list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """PagerDuty resolves the incident that it triggered: both have its key."""
    url, requests, _ = web
    monkeypatch.setenv("PAGER_KEY", "k")
    monkeypatch.setenv("SLACK_URL", url)
    pager = Notifier("ops", "pagerduty", {"key_env": "PAGER_KEY", "url": url})
    send(pager, NOTICE)
    send(pager, Notice(**{**payload(NOTICE), "number": 8, "notifier": "ops", "status": "resolved"}))
    send(Notifier("ops", "slack", {"url_env": "SLACK_URL"}), NOTICE)
    first, second, text = (json.loads(body) for _, body in requests)
    assert (first["event_action"], second["event_action"]) == ("trigger", "resolve")
    assert first["dedup_key"] == second["dedup_key"] == NOTICE.incident
    assert first["payload"]["severity"] == "critical"
    assert text == {"text": "[firing] page: the queue is long"}


def test_mail_is_sent() -> None:
    """By SMTP, with the same Message-ID on every attempt."""
    mails: list[bytes] = []

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(b"220 here\r\n")
            while line := self.rfile.readline():
                verb = line[:4].upper()
                if verb == b"DATA":
                    self.wfile.write(b"354 go on\r\n")
                    mail = b""
                    while (line := self.rfile.readline()) != b".\r\n":
                        mail += line
                    mails.append(mail)
                self.wfile.write(b"221 bye\r\n" if verb == b"QUIT" else b"250 ok\r\n")
                if verb == b"QUIT":
                    return

    with socketserver.TCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            options = {
                "host": "127.0.0.1",
                "port": server.server_address[1],
                "to": ("a@b.example",),
            }
            notifier = Notifier("ops", "smtp", {**options, "sender": "redmeter@b.example"})
            send(notifier, NOTICE)
            send(notifier, NOTICE)
        finally:
            server.shutdown()
            thread.join()
    ids = [line for mail in mails for line in mail.splitlines() if line.startswith(b"Message-ID")]
    assert len(ids) == 2
    assert ids[0] == ids[1]
    assert b"Subject: [firing] page: the queue is long" in mails[0]


def test_a_command_gets_json_and_its_failure_is_told(tmp_path: Path) -> None:
    """On standard input; an exit code other than 0 is a failure, with the last line of stderr."""
    out = tmp_path / "out"
    run: Callable[[str], Notifier] = lambda code: Notifier(  # noqa: E731
        "ops", "command", {"command": (sys.executable, "-c", code)}
    )
    send(run(f"import sys; open({str(out)!r}, 'w').write(sys.stdin.read())"), NOTICE)
    assert json.loads(out.read_text()) == payload(NOTICE)
    with pytest.raises(NotDelivered, match="exit code 3: no line"):
        send(run("import sys; print('no line', file=sys.stderr); sys.exit(3)"), NOTICE)
    with pytest.raises(NotDelivered, match="FileNotFoundError"):
        send(Notifier("ops", "command", {"command": ("/no/such/program",)}), NOTICE)
