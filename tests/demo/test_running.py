"""The demo as a whole: a shop that answers, figures that are stored, and nothing left behind."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import httpx
import pytest

from redmeter import InvalidSetting, Meter, MissingExtra
from redmeter.cli import demo as demo_command
from redmeter.demo.running import Demo, DemoFailed, check_demo_prefix, check_needs, remove
from support.commands import Home, Running
from support.invoking import invoking
from support.servers import Server
from support.waiting import eventually

#: Of the past, an hour is enough for most tests.
SHORT = "import redmeter.demo.past as past; past.REACH = 3600"


def opened(child: Running) -> int:
    """Return the port of the shop, once it is open."""
    line = child.out(0)
    found = re.fullmatch(r"the shop is open: http://127\.0\.0\.1:(\d+)\n", line)
    assert found, line
    return int(found[1])


def page_of(child: Running) -> str:
    """Return the address of the page that shows it, which is the line after that."""
    line = child.out(1)
    found = re.fullmatch(r"its page: (http://127\.0\.0\.1:\d+/)\n", line)
    assert found, line
    return found[1]


def ask(port: int, method: str, path: str, body: str | None = None) -> int:
    """Ask for a page, as a visitor whom nobody else is; return the status."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(method, path, body, {"Cookie": "visitor=test", "Connection": "close"})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


def nothing_is_left(home: Home) -> None:
    """Check that no process and no file is left."""
    eventually(lambda: not home.processes(), 10.0, f"no process is left: {home.processes()}")
    assert list((home.root / "tmp").iterdir()) == []


@pytest.mark.slow
def test_a_shop_that_does_not_start_is_quoted(home: Home) -> None:
    """The last lines of what it said, as lines."""
    (home.root / "broken").mkdir()
    (home.root / "broken" / "sqlalchemy.py").write_text("raise ImportError('not this one')\n")
    path = f"{home.root / 'broken'}:{home.env['PYTHONPATH']}"
    done = home.start(
        "demo", code=f"{SHORT}; import os; os.environ['PYTHONPATH'] = {path!r}"
    ).finish()
    assert (done.code, done.out) == (2, "")
    lines = done.err.splitlines()
    assert "ImportError: not this one" in lines
    assert any(line.startswith("error: a process of the shop has ended: ") for line in lines)
    nothing_is_left(home)


@pytest.mark.slow
def test_the_shop_answers_and_ctrl_c_ends_all_of_it(home: Home, server: Server) -> None:
    """Visitors come, pages answer, all figures are there, and then nothing is left."""
    with server.client() as client:
        client.set("mine", "stays")
    child = home.start("demo", "--minutes", "5")
    port = opened(child)
    assert len(home.processes()) >= 5  # the demo, the server with two workers, the job
    assert ask(port, "GET", "/") == 200
    assert ask(port, "GET", "/search?q=assam") == 200
    assert ask(port, "GET", "/products/3") == 200
    assert ask(port, "GET", "/products/99999") == 404
    assert ask(port, "POST", "/checkout", "") == 409
    assert ask(port, "POST", "/cart", "product=3&pieces=2") == 303
    for odd in ("", "product", "product=x", "product=3&pieces=-1", f"product={9**30}", "a=b=c"):
        assert ask(port, "POST", "/cart", odd) == 400
    assert ask(port, "GET", "/cart") == 200
    assert ask(port, "POST", "/checkout", "") in (303, 402, 500)
    assert ask(port, "GET", "/admin/report") == 200
    shown = httpx.get(f"{page_of(child)}api/overview", timeout=10)
    assert shown.json()["store"]["prefix"] == "demo:"
    with Meter(server.url, prefix="demo:") as meter:
        wanted = {
            'searches{found="yes"}',
            'http_requests{method="POST",route="/checkout",status="4xx"}',
            'http_requests{method="GET",route="/admin/report",status="2xx"}',
        }
        before = {name: meter.total(name) for name in wanted}
        assert all(before.values())

        def seen() -> bool:
            """Whether what happens now is stored."""
            statements = meter.top(
                "db_query_seconds", by="statement", precision=60, order="total", limit=20
            )
            told = {row.key for row in statements}
            loggers = {each.logger for each in meter.loggers()}
            sizes = meter.gauge_series(
                "process_memory_bytes", precision=60, labels={"instance": "2"}
            )
            return (
                {"SELECT order_lines WHERE product_id", "SELECT products WHERE id"} <= told
                and "shop" in loggers
                and any(sizes.values)
            )

        eventually(seen, 15.0, "what happens now is stored")
        assert {mark.label for mark in meter.marks()} >= {"shop 2.3.1", "shop 2.3.0"}
        assert meter.summary("cart_value", precision=3600).count > 1000
        hits = meter.total("hits")
        eventually(lambda: meter.total("hits") > hits, 10.0, "visitors come")
        for words, _ in demo_command._NEXT:
            if "--failing" not in words:  # perhaps nothing failed yet
                options = [*words.split(), "--prefix", "demo:", "--url", server.url]
                assert home.invoke(*options).code == 0, words
    done = child.finish(signal.SIGINT)
    assert done.code == 0
    assert "Traceback" not in done.err
    assert done.err.endswith("interrupted; the data stay until the next demo\n")
    for words, _ in demo_command._NEXT:
        assert f"redmeter {words} --prefix demo:" in done.out
    nothing_is_left(home)
    with server.client() as client:
        assert client.get("mine") == b"stays"
        assert not list(client.scan_iter("redmeter:*"))
        reports = [json.loads(report) for report in client.hvals("demo:reports:")]
        assert len(reports) >= 3
        assert sum(report["dropped"] for report in reports) == 0
        assert sum(report["troubles"].get("web", 0) for report in reports) == 0


@pytest.mark.nightly
def test_it_ends_by_itself_with_a_deploy_in_the_middle(lone_home: Home) -> None:
    """On an embedded server, which ends with it, as it was started by it; the figures stay."""
    home = lone_home
    done = home.start("demo", "--minutes", "0.12", "--seed", "3", code=SHORT).finish()
    assert done.code == 0, done
    assert "  shop 2.4.0 is deployed\n" in done.err
    assert done.err.endswith("closed; the data stay until the next demo\n")
    nothing_is_left(home)
    with Meter(f"embedded://{home.data}", prefix="demo:") as meter:
        labels = {mark.label for mark in meter.marks()}
        assert labels == {"shop 2.2.9", "shop 2.3.0", "shop 2.3.1", "shop 2.4.0"}
    done = home.run("demo", "--remove")
    assert re.fullmatch(r"removed: [0-9,]+ keys\n", done.out)
    assert home.run("demo", "--remove").out == "removed: 0 keys\n"
    home.run("stop")
    nothing_is_left(home)


@pytest.mark.slow
def test_what_it_started_ends_with_it_even_where_it_is_killed(home: Home) -> None:
    """Each process sees that the one that started it is gone.

    The next demo removes what the killed one has left. Where a process of its own dies, it ends
    with an error, not as a shop that nobody can enter.
    """
    child = home.start("demo", "--minutes", "5", code=SHORT)
    opened(child)
    child.child.send_signal(signal.SIGKILL)
    child.child.wait()
    eventually(lambda: not home.processes(), 15.0, "all processes have ended")
    assert list((home.root / "tmp").iterdir()) != []
    child = home.start("demo", "--minutes", "5", code=SHORT)
    opened(child)
    job = next(p for p, line in home.processes().items() if line.endswith("redmeter.demo.job"))
    os.kill(job, signal.SIGKILL)
    done = child.finish()
    assert done.code == 2
    assert "error: a process of the shop has ended: " in done.err
    nothing_is_left(home)


@pytest.mark.nightly
def test_a_second_demo_does_not_remove_what_the_first_one_stores(
    home: Home, server: Server
) -> None:
    """Under another prefix it may run beside it."""
    first = home.start("demo", "--minutes", "5", code=SHORT)
    opened(first)
    with Meter(server.url, prefix="demo:") as meter:
        before = meter.total("hits")
        second = home.run("demo", "--minutes", "5")
        assert second.code == 2
        assert f"a demo with the prefix 'demo:' is already running on {server.url}; " in second.err
        assert "--prefix demo2:" in second.err
        assert meter.total("hits") >= before > 0
    other = home.start("demo", "--minutes", "5", "--prefix", "demo2:", code=SHORT)
    opened(other)
    for child in (other, first):
        assert child.finish(signal.SIGINT).code == 0
    nothing_is_left(home)


def test_demos_of_two_homes_do_not_disturb_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a URL each has an embedded server of its own; in the same one there is one demo."""
    monkeypatch.delenv("REDMETER_URL", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "ada"))
    first = Demo(None, "demo:", seconds=60)
    with first:
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "bob"))
        with Demo(None, "demo:", seconds=60):
            pass
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "ada"))
        location = f"embedded://{tmp_path}/ada/redmeter/default"
        for url in (None, location):
            with pytest.raises(DemoFailed) as refused, Demo(url, "demo:", seconds=60):
                pass
            assert str(refused.value) == (
                f"a demo with the prefix 'demo:' is already running on {location}; choose "
                "another prefix, e.g. --prefix demo2:"
            )


def test_what_is_missing_is_named_with_the_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    """As what is to be typed."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name != "psutil" or None)
    with pytest.raises(
        MissingExtra, match=r'^the demo needs psutil: pip install "redmeter\[demo\]"$'
    ):
        check_needs()


@pytest.mark.parametrize("prefix", ["redmeter:", "", "mydemo:", "demo*", "demo[a]", "demo{a}:"])
def test_a_prefix_that_is_not_the_demos_is_refused(prefix: str, server: Server) -> None:
    """All that it holds is removed by the next start."""
    with server.client() as client:
        client.set("redmeter:count:60:hits", "1")
        with pytest.raises(InvalidSetting):
            check_demo_prefix(prefix)
        with pytest.raises(InvalidSetting):
            remove(server.url, prefix)
        assert client.exists("redmeter:count:60:hits")


def test_removing_takes_what_is_the_demos_and_nothing_else(server: Server) -> None:
    """However much it is."""
    with server.client() as client:
        client.mset({f"demo:{number}": "x" for number in range(3000)})
        client.mset({"demonstration": "x", "redmeter:x": "x", "demo": "x"})
        assert remove(server.url, "demo:") == 3000
        assert sorted(client.keys()) == [b"demo", b"demonstration", b"redmeter:x"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--minutes", "0"], "--minutes 0: give more than 0, and a day at most"),
        (["--minutes", "nan"], "--minutes nan: give more"),
        (["--prefix", "redmeter:"], "the demo's own begins with demo"),
        (["--url", "off"], "switched off"),
        (["--url", "redis://127.0.0.1:1"], "127.0.0.1:1"),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_started(
    arguments: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the exit code that it has everywhere."""

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("nothing is started")

    monkeypatch.setattr(subprocess, "Popen", fail)
    before = signal.getsignal(signal.SIGTERM)
    with invoking() as run:
        done = run("demo", *arguments)
    signal.signal(signal.SIGTERM, before)
    assert done.code == (3 if "127" in said else 2), done
    assert said in done.err.replace("\n", " ")


def test_a_port_that_is_taken_is_said_before_anything_is_started() -> None:
    """Somebody else's page is not taken for the shop."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(DemoFailed, match=f"port {port} cannot be used: Address already in use"):
            Demo("off", "demo:", seconds=1, port=port)


def test_no_password_is_shown_again(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A URL is repeated in what to type next where it holds none."""
    monkeypatch.delenv("REDMETER_URL", raising=False)
    demo_command._print_addresses("http://x", "http://y", "redis://user:secret@host", "demo:")
    assert "secret" not in capsys.readouterr().out
    demo_command._print_addresses("http://x", "http://y", "redis://host/3", "demo:")
    assert "--prefix demo: --url redis://host/3" in capsys.readouterr().out
