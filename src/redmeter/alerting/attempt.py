"""One attempt to deliver a notice, in a process of its own: a request, a mail or a command.

Problem: no client's timeout covers a whole attempt. Sockets have one for each read, so a receiver
that sends a byte every three seconds holds a client for hours; and nothing ends the resolution of a
name, not even a thread's or a task's timeout.

Idea: a process can be killed. `notifiers.py` starts this program and ends it at its deadline. In
case that process is killed or stopped itself, a timer of the kernel ends this one half a second
later, also while a command runs: execution does not reset it. After its deadline, an attempt does
not send, even if it has been stopped in between.

    python -P attempt.py SIZE < an order, JSON of SIZE bytes, and behind it the text to send

The exit code is 0 if the notice is delivered. Otherwise the last line of standard error has the
reason. Only the standard library is imported, each part where it is needed, for a short start.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

#: Longest reason, characters.
_LONGEST = 1000
#: Exit code if a command cannot be started, as that of a shell.
_NO_COMMAND = 127


def _body(order: dict[str, Any]) -> bytes:
    body = sys.stdin.buffer.read()
    if len(body) != order["size"]:
        raise EOFError("the evaluator has ended")
    return body


def _post(order: dict[str, Any]) -> None:
    from urllib.request import HTTPRedirectHandler, Request, build_opener

    class NoRedirects(HTTPRedirectHandler):
        """A redirected POST would arrive as a GET without its body."""

        def redirect_request(self, *_args: Any, **_kwargs: Any) -> None:
            return None

    request = Request(order["url"], _body(order), order["headers"], method="POST")  # noqa: S310 - checked
    with build_opener(NoRedirects).open(request) as reply:
        reply.read(1)


def _mail(order: dict[str, Any]) -> None:
    import smtplib
    import ssl
    from email.message import EmailMessage

    message = EmailMessage()
    for name, value in order["headers"].items():
        message[name] = value
    message.set_content(_body(order).decode())
    with smtplib.SMTP(order["host"], order["port"]) as server:
        if order["tls"]:
            server.starttls(context=ssl.create_default_context())
        if order["user"]:
            server.login(order["user"], order["password"])
        server.send_message(message)


def _command(order: dict[str, Any]) -> None:
    """Become the command, which reads the rest of standard input."""
    command = order["command"]
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and so would the command
    try:
        os.execvp(command[0], command)  # noqa: S606 - the operator's command, without a shell
    except (OSError, ValueError) as error:
        sys.stderr.write(f"{type(error).__name__}: {error}: {command[0]!r:.100}\n")
        sys.exit(_NO_COMMAND)


_WAYS: dict[str, Callable[[dict[str, Any]], None]] = {
    "post": _post,
    "mail": _mail,
    "command": _command,
}


def _order(size: int) -> dict[str, Any]:
    """Read an order from standard input, and nothing behind it."""
    text = b""
    while len(text) < size and (part := os.read(0, size - len(text))):
        text += part
    order: dict[str, Any] = json.loads(text)
    return order


def _reason(error: Exception) -> str:
    status = getattr(error, "code", None)
    reason = getattr(error, "reason", None) or error
    text = (
        f"{type(error).__name__}: {reason}" if status is None else f"HTTP status {status} {reason}"
    )
    return " ".join(text.split())[:_LONGEST]


def _main() -> None:
    """Carry out the order that standard input has."""
    order = _order(int(sys.argv[1]))
    left = order["until"] - time.monotonic()
    if left <= 0:
        sys.exit("it was stopped for too long before it began")
    signal.setitimer(signal.ITIMER_REAL, left)
    try:
        _WAYS[order["way"]](order)
    except Exception as error:  # noqa: BLE001 - each is a reason
        sys.exit(_reason(error))


if __name__ == "__main__":
    _main()
