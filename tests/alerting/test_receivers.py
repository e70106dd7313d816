"""Receivers that misbehave: an error of their own notices, and of nothing else."""

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from redmeter import Meter
from redmeter.alerting.notifiers import NotDelivered, begin_attempt, send
from redmeter.alerting.rules import Notifier
from redmeter.alerting.store import AlertStore, Notice
from support.alerts import NOTICE, RULES, rise
from support.commands import Home
from support.receivers import SILENT_RESOLVER, Misbehaving, misbehaving
from support.servers import Server
from support.waiting import eventually

#: Secrets in the settings of receivers, and in their answers.
SECRETS = ("s3cr3t-of-the-receiver", "s3cr3t-of-the-url", "hunter2")

PYTHON = json.dumps(sys.executable)


def command(code: str) -> str:
    """Return the settings of a command that runs Python."""
    return f'type = "command"\ncommand = [{PYTHON}, "-c", {json.dumps(code)}]'


def webhook(path: str) -> str:
    """Return the settings of a webhook of the server that misbehaves."""
    return f'type = "webhook"\nurl = "http://127.0.0.1:PORT/{path}"'


def variable(name: str) -> str:
    """Return the settings of a webhook whose URL is in a variable."""
    return f'type = "slack"\nurl_env = "{name}"'


MAIL = 'type = "smtp"\nsender = "a@b.example"\nto = ["c@d.example"]\n'
SLOW = "took more than 10 s"

#: Receiver -> its settings, and a part of the error of its notice.
MISBEHAVIOR = {
    "fails": (webhook("500"), "HTTP status 500 token=***"),
    "limits": (webhook("429"), "HTTP status 429"),
    "redirects": (webhook("302"), "HTTP status 302"),
    "redirects-307": (webhook("307"), "HTTP status 307"),
    "redirects-308": (webhook("308"), "HTTP status 308"),
    "garbage": (webhook("garbage"), "BadStatusLine: SSH-2.0"),
    "bad-status": (webhook("badstatus"), "BadStatusLine: HTTP/1.1 abc"),
    "binary": (webhook("binary"), "BadStatusLine"),
    "closes": (webhook("close"), "RemoteDisconnected"),
    "long-line": (webhook("longline"), "LineTooLong"),
    "many-headers": (webhook("manyheaders"), "got more than 100 headers"),
    "bad-chunk": (webhook("badchunk"), "IncompleteRead"),
    "hangs": (webhook("hang"), SLOW),
    "drips": (webhook("drip"), SLOW),
    "unresolved": ('type = "webhook"\nurl = "http://silent.example/s3cr3t-of-the-url"', SLOW),
    "refuses": (
        'type = "webhook"\nurl = "http://127.0.0.1:1/s3cr3t-of-the-url"',
        "Connection refused",
    ),
    "space": (variable("SPACE_URL"), "the URL has a space"),
    "umlaut": (variable("UMLAUT_URL"), "the URL has a space or another character"),
    "user": (variable("USER_URL"), "the URL has a user or password"),
    "missing": (variable("NO_URL"), "the environment variable NO_URL is not set"),
    "mail-hangs": (f'{MAIL}host = "127.0.0.1"\nport = PORT', SLOW),
    "mail-unresolved": (f'{MAIL}host = "silent.example"', SLOW),
    "command-hangs": (command("import time; time.sleep(99)"), SLOW),
    "command-ignores": (
        command("import os, signal, time; signal.alarm(0); os.fork(); time.sleep(99)"),
        SLOW,
    ),
    "command-fails": (
        command("import sys; sys.exit('cannot log in: password=hunter2')"),
        "exit code 1: cannot log in: password=***",
    ),
    "command-dies": (
        command("import os; os.kill(os.getpid(), 11)"),
        "ended by signal 11",
    ),
    "command-floods": (
        command("import os\nwhile True: os.write(2, b'x' * 65536)"),
        SLOW,
    ),
    "no-command": ('type = "command"\ncommand = ["/no/such/program"]', "FileNotFoundError"),
}
#: Receivers that get their notices meanwhile. One leaves a process behind, which holds its pipes.
GOOD = {
    "ok-webhook": webhook("ok"),
    "ok-command": command("import sys; open('received', 'w').write(sys.stdin.read())"),
    "ok-background": command("import os, time; os.fork() or time.sleep(6)"),
    "ok-closes-stdin": command("import os; os.close(0)"),
}


@pytest.fixture
def receivers() -> Iterator[Misbehaving]:
    """A server of receivers that misbehave."""
    with misbehaving() as server:
        yield server


@pytest.fixture
def home(server: Server, tmp_path: Path) -> Iterator[Home]:
    """A home whose processes have a resolver that never answers for one host."""
    home = Home(tmp_path, server.url)
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(SILENT_RESOLVER)
    home.env["PYTHONPATH"] += f"{os.pathsep}{folder}"
    yield home
    home.close()


@pytest.mark.slow
def test_a_receiver_that_misbehaves_is_an_error_of_its_own_notices(
    home: Home, receivers: Misbehaving, meter: Meter, alerts: AlertStore, tmp_path: Path
) -> None:
    """Each has an error; the good ones get theirs at once; the evaluator goes on, and ends."""
    every = {name: settings for name, (settings, _) in MISBEHAVIOR.items()} | GOOD
    tables = "".join(f"[notify.{name}]\n{settings}\n" for name, settings in every.items())
    rules = RULES[: RULES.index("[notify")].replace('["ops", "log"]', json.dumps(list(every)))
    file = tmp_path / "alerts.toml"
    file.write_text((rules + tables).replace("PORT", str(receivers.port)))
    rise(meter)
    running = home.start(
        *("alerts", "run", "--file", str(file), "--interval", "3"),
        SPACE_URL="http://127.0.0.1/s3cr3t-of-the-url and",
        UMLAUT_URL="http://b\u00fccher.example/s3cr3t-of-the-url",
        USER_URL="http://bob:hunter2@127.0.0.1/",
    )

    def waiting() -> dict[str, Notice]:
        assert running.child.poll() is None
        return {notice.notifier: notice for notice in alerts.snapshot().notices}

    eventually(lambda: waiting().keys() & every.keys(), 30.0, "the alert fires")
    eventually(lambda: not waiting().keys() & GOOD.keys(), 60.0, "good receivers got theirs")
    assert not any(waiting()[name].error for name in ("hangs", "drips", "unresolved"))
    assert ("ok", json.loads((home.work / "received").read_text())["name"]) == ("ok", "queue")
    assert [path for path, _ in receivers.requests].count("ok") == 1
    eventually(lambda: all(each.error for each in waiting().values()), 90.0, "all have failed")
    assert waiting().keys() == MISBEHAVIOR.keys()
    for name, (_, error) in MISBEHAVIOR.items():
        assert error in waiting()[name].error, name
    shown = home.invoke("alerts").out + home.invoke("alerts", "--json").out
    hanging = [path for path, _ in receivers.requests].count("hang")
    eventually(
        lambda: [path for path, _ in receivers.requests].count("hang") > hanging,
        90.0,
        "it is tried again",
    )
    begun = time.monotonic()
    running.child.send_signal(signal.SIGTERM)
    assert running.child.wait(20.0) == 0
    took = time.monotonic() - begun
    assert took < 2.0, "the end waited for an attempt that hangs"
    log = running.child.stderr
    assert log is not None
    shown += log.read()
    assert "Traceback" not in shown
    assert [secret for secret in SECRETS if secret in shown] == []


def ended(attempt: Iterator[None]) -> None:
    """Wait for the end of an attempt."""
    eventually(lambda: next(attempt, attempt) is attempt)


def attempted(notifier: Notifier, seconds: float = 10.0) -> str:
    """Deliver the notice; return why that failed."""
    with pytest.raises(NotDelivered) as failed:
        ended(begin_attempt(notifier, NOTICE, seconds))
    return str(failed.value)


MAIL_SETTINGS = {"host": "127.0.0.1", "port": 1, "sender": "a@b.example", "to": ("c@d.example",)}


@pytest.mark.parametrize(
    ("kind", "options", "error"),
    [
        ("webhook", {"url": "http://127.0.0.1/a b"}, "the URL has a space"),
        ("webhook", {"url": "http://b\u00fccher.example/"}, "the URL has a space or another"),
        ("webhook", {"url": "http://a:b@127.0.0.1/"}, "the URL has a user or password"),
        ("webhook", {"url": "http://127.0.0.1:1/", "secret_env": "LATIN"}, "UnicodeEncodeError"),
        ("smtp", MAIL_SETTINGS | {"sender": "a@b.example\nBcc: x@y"}, "ValueError: Header values"),
        ("smtp", MAIL_SETTINGS | {"to": ("a\r\nb",)}, "ValueError: Header values"),
        ("command", {"command": ("true", "a\0b")}, "ValueError: embedded null byte"),
        ("command", {"command": ("",)}, "ValueError: execv()"),
        ("command", {"command": ("/etc",)}, "PermissionError"),
    ],
)
def test_a_setting_that_cannot_be_used_is_an_error_of_the_notice(
    kind: str, options: dict[str, object], error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though a file with it is refused: that is not the only way to make a notifier."""
    monkeypatch.setenv("LATIN", os.fsdecode(b"\xe4"))
    assert error in attempted(Notifier("ops", kind, options))


def test_the_key_of_any_label_fits_into_a_header(receivers: Misbehaving) -> None:
    """In any script; the body has it as it is."""
    name = 'queue{shop="\u7f8e\u5473 \U0001f35c"}'
    notice = replace(NOTICE, name=name, key=f"redmeter:{name}:1:3:ops")
    send(Notifier("ops", "webhook", {"url": receivers.url("ok")}), notice)
    assert json.loads(receivers.requests[0][1])["name"] == name


def test_secrets_of_settings_and_answers_are_masked(
    receivers: Misbehaving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in messages; the notifier's own secrets wherever they occur."""
    monkeypatch.setenv("HOOK_SECRET", "correct horse")
    url = "http://127.0.0.1:1/T123/s3cr3t-of-the-url"
    fails = Notifier("ops", "webhook", {"url": receivers.url("500")})
    assert attempted(fails) == "HTTP status 500 token=***"
    for text, shown in (
        (f"cannot post to {url}", "exit code 1: cannot post to ***"),
        ("no such path: T123/s3cr3t-of-the-url", "exit code 1: no such path: ***"),
        ("signed by correct horse", "exit code 1: signed by ***"),
        ("redis://bob:hunter2@db/0 refused", "exit code 1: redis://bob:***@db/0 refused"),
        ("\x1b[31mred\x1b[0m", "exit code 1: red"),
    ):
        command = (sys.executable, "-c", f"import sys; sys.exit({text!r})")
        options = {"command": command, "url": url, "secret_env": "HOOK_SECRET"}
        assert attempted(Notifier("ops", "command", options)) == shown
    command = (sys.executable, "-c", "import sys; sys.exit('x' * 9000)")
    assert len(attempted(Notifier("ops", "command", {"command": command}))) <= 300


def test_an_attempt_that_was_stopped_beyond_its_deadline_does_not_send(
    receivers: Misbehaving, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At any point: a timer of the kernel ends it before it goes on."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os, pathlib, signal, socket\n"
        "connect = socket.create_connection\n"
        "def stop(*args, **kwargs):\n"
        f"    pathlib.Path({str(tmp_path / 'pid')!r}).write_text(str(os.getpid()))\n"
        "    os.kill(os.getpid(), signal.SIGSTOP)\n"
        "    return connect(*args, **kwargs)\n"
        "socket.create_connection = stop\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    attempt = begin_attempt(Notifier("ops", "webhook", {"url": receivers.url("ok")}), NOTICE, 1.0)
    begun = time.monotonic()
    next(attempt)
    eventually((tmp_path / "pid").exists, 30.0, "it is about to send")
    pid = int(eventually((tmp_path / "pid").read_text))
    eventually(lambda: time.monotonic() > begun + 2.0, 30.0, "its deadline is over")
    os.kill(pid, signal.SIGCONT)
    state = Path(f"/proc/{pid}/stat")  # the end of its own accord, not by this process
    eventually(lambda: state.read_text().split(") ")[1][0] == "Z", 30.0, "it has ended")
    with pytest.raises(NotDelivered, match="took more than 1 s"):
        ended(attempt)
    assert receivers.requests == []


def test_the_group_of_a_command_is_killed_at_its_deadline_and_not_when_it_ended(
    tmp_path: Path,
) -> None:
    """A process that it left behind goes on, and is not waited for."""
    code = "import os, sys, time; os.fork() or time.sleep({0}) or open({1!r}, 'w'); {2}"
    for seconds, rest, failed in ((0.5, "", False), (1.0, "time.sleep(99)", True)):
        left = tmp_path / rest[:4] / "left"
        left.parent.mkdir(exist_ok=True)
        line = code.format(seconds, str(left), f"os.getpid() != os.getpgrp() or {rest or 0}")
        notifier = Notifier("ops", "command", {"command": (sys.executable, "-c", line)})
        if failed:
            assert attempted(notifier, 0.5) == "took more than 0.5 s"
            over = time.monotonic() + 1.5
            eventually(lambda over=over: time.monotonic() > over, 10.0)  # type: ignore[misc]
            assert not left.exists()
        else:
            send(notifier, NOTICE)
            assert not left.exists()
            eventually(left.exists, 30.0, "the process that was left behind has ended")
