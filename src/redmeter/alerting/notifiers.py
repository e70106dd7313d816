"""Notifiers: send a notice to a webhook, Slack, PagerDuty, by mail, or to a command.

Each attempt carries the same key, so a receiver that recognizes keys gets every notice once:
PagerDuty, and our webhook's receivers, which also verify its signature with verify(). Elsewhere a
notice is repeated at most once for each time that an evaluator is killed while it sends.

    X-Redmeter-Signature: t=TIME,v1=HEX      HMAC-SHA256 with the secret, of TIME + "." + body
    Idempotency-Key: KEY
"""

import hashlib
import hmac
import json
import os
import smtplib
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from dataclasses import asdict
from email.message import EmailMessage
from http.client import HTTPException
from typing import Any

from redmeter.alerting.rules import Notifier
from redmeter.alerting.state import RESOLVED
from redmeter.alerting.store import Notice
from redmeter.alerting.values import url_mistake
from redmeter.errors import RedmeterError

#: Seconds that an attempt may take.
SEND_TIMEOUT = 10.0
#: Seconds by which the time in a signature may differ.
SIGNATURE_TOLERANCE = 300.0

SIGNATURE, IDEMPOTENCY = "X-Redmeter-Signature", "Idempotency-Key"
_PAGERDUTY = "https://events.pagerduty.com/v2/enqueue"
#: What PagerDuty calls severities; others are "warning".
_SEVERITIES = {"page": "critical"} | {name: name for name in ("critical", "error", "info")}


class NotDelivered(RedmeterError):
    """A notice was not delivered; the message has the reason."""


def send(notifier: Notifier, notice: Notice) -> None:
    """Deliver a notice.

    Raises:
        NotDelivered: the receiver is unreachable or refuses, or a setting is missing.
    """
    try:
        _SENDERS[notifier.type](notifier, notice)
    except NotDelivered:
        raise
    except urllib.error.HTTPError as error:
        raise NotDelivered(f"HTTP status {error.code} {error.reason}") from None
    except (OSError, HTTPException, smtplib.SMTPException, subprocess.SubprocessError) as error:
        reason = getattr(error, "reason", None) or error
        raise NotDelivered(f"{type(error).__name__}: {reason}") from None


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


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirected POST would arrive as a GET without its body."""

    def redirect_request(self, *_args: Any, **_kwargs: Any) -> None:
        return None


_opener = urllib.request.build_opener(_NoRedirects)


def _post(url: str, body: bytes, headers: dict[str, str]) -> None:
    if mistake := url_mistake(url):  # of an environment variable
        raise NotDelivered(f"the URL {mistake}")
    request = urllib.request.Request(url, body, headers, method="POST")  # noqa: S310 - checked
    request.add_header("Content-Type", "application/json")
    with _opener.open(request, timeout=SEND_TIMEOUT) as reply:
        reply.read(1)


def _secret(variable: str) -> str:
    value = os.environ.get(variable, "")
    if not value:
        raise NotDelivered(f"the environment variable {variable} is not set")
    return value


def _send_webhook(notifier: Notifier, notice: Notice) -> None:
    body = json.dumps(payload(notice)).encode()
    headers = {IDEMPOTENCY: notice.key}
    if "secret_env" in notifier.options:
        headers[SIGNATURE] = sign(body, _secret(notifier.options["secret_env"]), time.time())
    _post(notifier.options["url"], body, headers)


def _send_slack(notifier: Notifier, notice: Notice) -> None:
    options = notifier.options
    url = options.get("url") or _secret(options["url_env"])
    _post(url, json.dumps({"text": _line(notice)}).encode(), {})


def _send_pagerduty(notifier: Notifier, notice: Notice) -> None:
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
    _post(notifier.options.get("url", _PAGERDUTY), json.dumps(event).encode(), {})


def _send_mail(notifier: Notifier, notice: Notice) -> None:
    options = notifier.options
    message = EmailMessage()
    message["Subject"] = _line(notice).splitlines()[0][:200]
    message["From"], message["To"] = options["sender"], ", ".join(options["to"])
    digest = hashlib.sha256(notice.key.encode()).hexdigest()[:32]
    message["Message-ID"] = f"<{digest}@redmeter>"
    labels = "".join(f"{name}: {value}\n" for name, value in notice.labels.items())
    message.set_content(f"{_line(notice)}\n\n{notice.detail}\n{labels}")
    with smtplib.SMTP(options["host"], options.get("port", 25), timeout=SEND_TIMEOUT) as server:
        if options.get("tls", False):
            server.starttls(context=ssl.create_default_context())
        if "user" in options:
            server.login(options["user"], _secret(options.get("password_env", "")))
        server.send_message(message)


def _run_command(notifier: Notifier, notice: Notice) -> None:
    try:
        subprocess.run(
            notifier.options["command"],
            input=json.dumps(payload(notice)).encode(),
            capture_output=True,
            timeout=SEND_TIMEOUT,
            check=True,
        )
    except subprocess.CalledProcessError as error:
        lines = error.stderr.decode(errors="replace").strip().splitlines()
        raise NotDelivered(f"exit code {error.returncode}: {lines[-1] if lines else ''}") from None
    except subprocess.TimeoutExpired:
        raise NotDelivered(f"the command took more than {SEND_TIMEOUT:.0f} s") from None


def _line(notice: Notice) -> str:
    return f"[{notice.status}] {notice.severity}: {notice.message}"


_SENDERS = {
    "webhook": _send_webhook,
    "slack": _send_slack,
    "pagerduty": _send_pagerduty,
    "smtp": _send_mail,
    "command": _run_command,
}
