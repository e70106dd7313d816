"""Notifiers: send a notice to a webhook, Slack, PagerDuty, by mail, or to a command.

Each attempt carries the same key, so a receiver that recognizes keys gets every notice once:
PagerDuty, and our webhook's receivers, which also verify its signature with verify(). Elsewhere a
notice is repeated at most once for each time that an evaluator is killed while it sends it.

An attempt runs in a process of its own, which is killed at its deadline: see attempt.py.

    X-Redmeter-Signature: t=TIME,v1=HEX      HMAC-SHA256 with the secret, of TIME + "." + body
    Idempotency-Key: KEY
"""

import contextlib
import hashlib
import hmac
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from redmeter.alerting.rules import Notifier
from redmeter.alerting.state import RESOLVED
from redmeter.alerting.store import Notice
from redmeter.alerting.values import url_mistake
from redmeter.analysis.text.secrets import MASK, mask
from redmeter.analysis.text.texts import clean_text
from redmeter.errors import RedmeterError

#: Seconds that an attempt may take, from its start to its end.
SEND_TIMEOUT = 10.0
#: Seconds after that until an attempt ends that is not killed.
ATTEMPT_GRACE = 0.5
#: Seconds between two looks at an attempt.
ATTEMPT_PAUSE = 0.02
#: Seconds by which the time in a signature may differ.
SIGNATURE_TOLERANCE = 300.0

SIGNATURE, IDEMPOTENCY = "X-Redmeter-Signature", "Idempotency-Key"
_PAGERDUTY = "https://events.pagerduty.com/v2/enqueue"
#: What PagerDuty calls severities; others are "warning".
_SEVERITIES = {"page": "critical"} | {name: name for name in ("critical", "error", "info")}

#: The program that makes an attempt.
_PROGRAM = str(Path(__file__).with_name("attempt.py"))
#: Bytes that are read from a pipe or written to it at once, and those of standard error's end.
_CHUNK, _TAIL = 65536, 8192
#: Longest reason, characters; the shortest secret, and the shortest path of a URL, that are masked
#: wherever they occur.
_LONGEST, _SHORTEST, _SHORTEST_PATH = 300, 4, 12


class NotDelivered(RedmeterError):
    """A notice was not delivered; the message has the reason on one line, with secrets masked."""

    def __init__(self, reason: str) -> None:
        super().__init__(shown_reason(reason))


def shown_reason(text: str) -> str:
    """Return a text of a receiver or an error on one line, cleaned, masked and truncated."""
    return mask(clean_text(" ".join(text.split()), _LONGEST))


class _Order(NamedTuple):
    """The order of an attempt."""

    #: The way to send, and its settings, for `attempt.py`.
    settings: dict[str, Any]
    #: The text to send.
    body: bytes


def send(notifier: Notifier, notice: Notice) -> None:
    """Deliver a notice, and wait for that.

    Raises:
        NotDelivered: the receiver is unreachable or refuses, or a setting is missing.
    """
    with contextlib.closing(begin_attempt(notifier, notice, SEND_TIMEOUT)) as attempt:
        for _ in attempt:
            time.sleep(ATTEMPT_PAUSE)


def begin_attempt(
    notifier: Notifier, notice: Notice, seconds: float
) -> Generator[None, None, None]:
    """Deliver a notice in a process of its own, and yield until it has ended.

    A generator: its close() ends the process. At its deadline the process is killed with all those
    of its group. Those that a command has left behind when it ended are not.

    Args:
        notifier: where the notice goes.
        notice: the notice.
        seconds: how long it may take.

    Raises:
        NotDelivered: the receiver is unreachable or refuses, or a setting is missing.
    """
    until = time.monotonic() + seconds
    try:
        order = _ORDERS[notifier.type](notifier, notice)
        limits = {"until": until + ATTEMPT_GRACE, "size": len(order.body)}
        settings = json.dumps(order.settings | limits).encode()
        process = subprocess.Popen(
            [sys.executable, "-P", _PROGRAM, str(len(settings))],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:  # ValueError: a secret that is not UTF-8
        raise NotDelivered(_without_secrets(notifier, f"{type(error).__name__}: {error}")) from None
    ended = _Watched(process, settings + order.body)
    try:
        while not ended.look() and time.monotonic() < until:
            yield
    finally:
        ended.kill()
    if ended.killed or process.returncode == -signal.SIGALRM:
        raise NotDelivered(f"took more than {seconds:.3g} s")
    if process.returncode:
        code, parts = process.returncode, [ended.last_line]
        if notifier.type == "command" or code < 0:
            parts = [f"exit code {code}" if code > 0 else f"ended by signal {-code}", *parts]
        raise NotDelivered(_without_secrets(notifier, ": ".join(filter(None, parts))))


class _Watched:
    """A process that is fed and read without waiting for it."""

    def __init__(self, process: "subprocess.Popen[bytes]", given: bytes) -> None:
        self._process = process
        self._given = memoryview(given)
        self._tail = b""
        self.killed = False
        assert process.stdin is not None
        assert process.stderr is not None
        self._stdin, self._stderr = process.stdin, process.stderr
        for pipe in (self._stdin, self._stderr):
            os.set_blocking(pipe.fileno(), False)

    def look(self) -> bool:
        """Write and read without waiting; return whether the process has ended."""
        if not self._stdin.closed:
            with contextlib.suppress(BlockingIOError):
                try:
                    self._given = self._given[os.write(self._stdin.fileno(), self._given) :]
                except BrokenPipeError:  # a command that does not read it
                    self._given = self._given[:0]
            if not self._given:
                self._stdin.close()
        over = self._process.poll() is not None  # before the read: its last line is in the pipe
        with contextlib.suppress(BlockingIOError):
            self._tail = (self._tail + os.read(self._stderr.fileno(), _CHUNK))[-_TAIL:]
        return over

    def kill(self) -> None:
        """Kill it with its group if it has not ended, and close the pipes."""
        if self._process.poll() is None:
            self.killed = True
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        for pipe in (self._stdin, self._stderr):
            pipe.close()

    @property
    def last_line(self) -> str:
        lines = self._tail.decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""


def _without_secrets(notifier: Notifier, text: str) -> str:
    """Return a text without the URL and the secrets of a notifier."""
    options = notifier.options.items()
    secrets = [os.environ.get(value, "") for key, value in options if key.endswith("_env")]
    secrets += [value for key, value in options if key == "url"]
    for secret in filter(None, map(str.strip, secrets)):
        text = text.replace(secret, MASK) if len(secret) >= _SHORTEST else text
        path = secret.partition("://")[2].partition("/")[2]
        text = text.replace(path, MASK) if len(path) >= _SHORTEST_PATH else text
    return text


def payload(notice: Notice) -> dict[str, Any]:
    """Return a notice as the JSON object that webhooks and commands receive."""
    fields = asdict(notice)
    for name in ("number", "notifier", "attempts", "due", "error"):
        del fields[name]
    return fields


def sign(body: bytes, secret: str, now: float) -> str:
    """Return the value of the header SIGNATURE."""
    stamp = str(int(now))
    return f"t={stamp},v1={_digest(stamp, body, secret)}"


def verify(body: bytes, header: str, secret: str, *, now: float | None = None) -> bool:
    """Return whether a webhook's body was signed with a secret, lately.

    Args:
        body: the bytes of the request's body.
        header: the value of `X-Redmeter-Signature`.
        now: Unix seconds; default: this machine's clock.
    """
    fields = dict(part.partition("=")[::2] for part in header.split(","))
    stamp, given = fields.get("t", ""), fields.get("v1", "")
    if not stamp.isdecimal() or len(stamp) > 12:
        return False
    if abs((time.time() if now is None else now) - int(stamp)) > SIGNATURE_TOLERANCE:
        return False
    return hmac.compare_digest(_digest(stamp, body, secret), given)


def _digest(stamp: str, body: bytes, secret: str) -> str:
    return hmac.new(secret.encode(), stamp.encode() + b"." + body, hashlib.sha256).hexdigest()


def _post(url: str, body: bytes, headers: dict[str, str]) -> _Order:
    if mistake := url_mistake(url):  # of an environment variable
        raise NotDelivered(f"the URL {mistake}")
    headers = {"Content-Type": "application/json", **headers}
    return _Order({"way": "post", "url": url, "headers": headers}, body)


def _secret(variable: str) -> str:
    value = os.environ.get(variable, "")
    if not value:
        raise NotDelivered(f"the environment variable {variable} is not set")
    return value


def _webhook(notifier: Notifier, notice: Notice) -> _Order:
    body = json.dumps(payload(notice)).encode()
    # A header has ASCII only: a label's value may be in any script.
    headers = {IDEMPOTENCY: notice.key.encode("ascii", "backslashreplace").decode()}
    if "secret_env" in notifier.options:
        headers[SIGNATURE] = sign(body, _secret(notifier.options["secret_env"]), time.time())
    return _post(notifier.options["url"], body, headers)


def _slack(notifier: Notifier, notice: Notice) -> _Order:
    options = notifier.options
    url = options.get("url") or _secret(options["url_env"])
    return _post(url, json.dumps({"text": _line(notice)}).encode(), {})


def _pagerduty(notifier: Notifier, notice: Notice) -> _Order:
    event = {
        "routing_key": _secret(notifier.options["key_env"]),
        "event_action": "resolve" if notice.status == RESOLVED else "trigger",
        "dedup_key": notice.incident,
        "payload": {
            "summary": _line(notice)[:1024],
            "source": socket.gethostname(),
            "severity": _SEVERITIES.get(notice.severity, "warning"),
            "custom_details": payload(notice),
        },
    }
    return _post(notifier.options.get("url", _PAGERDUTY), json.dumps(event).encode(), {})


def _smtp(notifier: Notifier, notice: Notice) -> _Order:
    options = notifier.options
    digest = hashlib.sha256(notice.key.encode()).hexdigest()[:32]
    headers = {
        "Subject": _line(notice).splitlines()[0][:200],
        "From": options["sender"],
        "To": ", ".join(options["to"]),
        "Message-ID": f"<{digest}@redmeter>",
    }
    settings = {
        "way": "mail",
        "headers": headers,
        "host": options["host"],
        "port": options.get("port", 25),
        "tls": options.get("tls", False),
        "user": options.get("user", ""),
        "password": _secret(options.get("password_env", "")) if "user" in options else "",
    }
    labels = "".join(f"{name}: {value}\n" for name, value in notice.labels.items())
    return _Order(settings, f"{_line(notice)}\n\n{notice.detail}\n{labels}".encode())


def _command(notifier: Notifier, notice: Notice) -> _Order:
    settings = {"way": "command", "command": notifier.options["command"]}
    return _Order(settings, json.dumps(payload(notice)).encode())


def _line(notice: Notice) -> str:
    return f"[{notice.status}] {notice.severity}: {notice.message}"


_ORDERS = {
    "webhook": _webhook,
    "slack": _slack,
    "pagerduty": _pagerduty,
    "smtp": _smtp,
    "command": _command,
}
