"""up, stop: processes that start once, end wholly, and survive each other."""

import base64
import contextlib
import http.client
import json
import logging
import os
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis

from redmeter.cli import output
from redmeter.store import embedded
from redmeter.store.embedded import files
from support.commands import Done, Home
from support.servers import Server
from support.waiting import eventually

Run = Any

#: Makes the cleaner of a foreground `up` run every second.
HASTY = "import redmeter.maintenance.cleaning as c\nc.PASS_INTERVAL = 0.1\n"


def ups(home: Home) -> list[int]:
    """Return the pids of the processes of `up`."""
    return [pid for pid, line in home.processes().items() if " redmeter up" in line]


def kill_up(home: Home, pid: int) -> None:
    """Kill the only process of `up`, and wait until its lock is free.

    The kernel takes the command line of a process that is ending first, and its locks later.
    """
    (lock,) = home.of_up("lock")
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not ups(home) and not files.is_locked(lock))


def state(home: Home) -> dict[str, Any]:
    """Return what the only process of `up` has written."""
    (file,) = home.of_up("lock")
    said: dict[str, Any] = json.loads(file.read_text())
    return said


def asked(address: str, **headers: str) -> Any:
    """Return what the page answers, JSON."""
    answer = httpx.get(address, headers=headers, timeout=10)
    return answer.raise_for_status().json()


#: The log of the checkout that `make up` says to try.
SAMPLE_LOG = Path(__file__).parents[1] / "data" / "access.log"


def hints_of(done: Done) -> list[str]:
    """Return the commands that `up` says to try."""
    lines = done.out.partition("try:")[2].splitlines()
    return [line.strip() for line in lines]


def server_of(home: Home) -> embedded.Info:
    """Return the embedded server of a home."""
    info = embedded.running(home.data)
    assert info is not None
    return info


@pytest.mark.slow
def test_up_detached_answers_and_stop_leaves_nothing(lone_home: Home) -> None:
    """It returns when all answers and prints what to do next; a second stop finds nothing."""
    home = lone_home
    done = home.run("up", "--detach")
    assert done.code == 0
    first, page, *_ = done.out.splitlines()
    assert first == f"redmeter is up: embedded://{home.data}"
    address = state(home)["page"]
    assert page == f"page: {address}"
    assert asked(f"{address}api/doctor")["location"] == f"embedded://{home.data}"
    assert done.err.startswith("log: ")
    (pid,) = ups(home)
    location = f"embedded://{home.data}"
    assert state(home) == {"pid": pid, "ready": 1, "location": location, "page": address}
    server = server_of(home)
    assert len(home.processes()) == 3  # up, the server and its supervisor
    again = home.invoke("up", "--detach")
    assert again == Done(0, done.out.replace("is up:", f"is already running (pid {pid}):"), "")
    assert home.invoke("up") == again
    assert (ups(home), server_of(home)) == ([pid], server)
    # What it says to try works as it stands; with data it does not say it again.
    for hint in hints_of(done):
        assert home.invoke(*shlex.split(hint)[1:]).code == 0
    assert hints_of(home.invoke("up")) == hints_of(done)
    assert home.invoke("replay", str(SAMPLE_LOG), "--shift-to-now").code == 0
    assert hints_of(home.invoke("up")) == []
    done = home.invoke("stop")
    said = f"stopped: redmeter up (pid {pid}), the embedded server in {home.data}\n"
    assert done == Done(0, said, "")
    assert home.processes() == {}
    assert home.invoke("stop") == Done(0, "nothing was running\n", "")
    assert "hits\tcounter\t60\n" in home.invoke("names").out  # the data stay


@pytest.mark.slow
def test_what_to_do_next_can_be_typed_where_the_command_is_on_no_path(home: Home) -> None:
    """Every line names the program by its path: up in either form, and replay."""
    program = home.work / ".venv" / "bin" / "redmeter"
    program.parent.mkdir(parents=True)
    code = "from redmeter.cli import main; main()"
    program.write_text(f"#!{sys.executable} -P\n{code}\n")
    program.chmod(0o755)
    shutil.copy(SAMPLE_LOG, home.work / "access.log")
    home.env["PATH"] = "/usr/bin:/bin"

    def run(words: str) -> Done:
        done = subprocess.run(
            ["sh", "-c", words], cwd=home.work, env=home.env, capture_output=True, text=True
        )
        return Done(done.returncode, done.stdout, done.stderr)

    done = run(".venv/bin/redmeter up --detach --sample-log access.log")
    hints = hints_of(done)
    assert hints == [
        ".venv/bin/redmeter replay access.log --shift-to-now",
        ".venv/bin/redmeter series hits -p 1h",
        ".venv/bin/redmeter doctor",
    ]
    assert done.err.endswith(" · .venv/bin/redmeter stop ends it\n")
    assert hints_of(run(".venv/bin/redmeter up --sample-log access.log")) == hints
    done = run(hints[0])
    assert done.err.splitlines() == [
        "next: .venv/bin/redmeter series hits -p 1h",
        "      .venv/bin/redmeter top http_requests --by route -p 1d",
    ]


@pytest.mark.slow
def test_what_to_do_next_is_about_the_store_that_was_named(lone_home: Home, server: Server) -> None:
    """In each form of up; typed as they stand, they find it and start no other."""
    options = f" --url {server.url} --prefix a:"
    for words in ("up --detach", "up"):  # the second says that it runs already
        done = lone_home.invoke(*f"{words} --no-page{options}".split())
        hints = hints_of(done)
        assert hints == [f"redmeter doctor{options}", "redmeter replay --help"]
        if words == "up --detach":
            assert done.err.endswith(f" · redmeter stop --url {server.url} ends it\n")
    first = shlex.split(hints[0])[1:]
    assert lone_home.invoke(*first).out.startswith(f"{server.url}  prefix a:\n")
    assert lone_home.invoke("stop", "--url", server.url).out.startswith("stopped: ")
    assert not lone_home.data.exists()


@pytest.mark.slow
def test_many_that_start_at_once_are_one(lone_home: Home) -> None:
    """All say that it is up; one process and one server run."""
    home = lone_home
    children = [home.start("up", "--detach", "--no-page") for _ in range(3)]
    said = [child.finish() for child in children]
    assert [done.code for done in said] == [0] * 3, said
    assert sum(done.out.startswith("redmeter is up: ") for done in said) == 1
    assert sum(done.out.startswith("redmeter is already running (pid ") for done in said) == 2
    eventually(lambda: len(ups(home)) == 1)
    assert home.invoke("stop").out.startswith("stopped: redmeter up (pid ")
    assert home.processes() == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    "how", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.nightly)]
)
def test_up_in_the_foreground_ends_cleanly(lone_home: Home, how: signal.Signals) -> None:
    """Ctrl-C and SIGTERM: exit code 0, a word about the server that goes on, no traceback."""
    child = lone_home.start("up")
    assert child.out(0) == f"redmeter is up: embedded://{lone_home.data}\n"
    with redis.Redis(unix_socket_path=str(server_of(lone_home).socket)) as client:
        eventually(lambda: client.hget("redmeter:cleaned:", "redmeter:"))  # it rests now
    done = child.finish(how)
    assert done.code == 0
    assert done.err == (
        "cleaning every minute; Ctrl-C ends it\nended; redmeter stop ends the embedded server too\n"
    )
    done = lone_home.invoke("stop")
    assert done.out == f"stopped: the embedded server in {lone_home.data}\n"
    assert lone_home.processes() == {}


@pytest.mark.slow
def test_up_survives_the_death_of_its_server(lone_home: Home) -> None:
    """After kill -9 its cleaner restarts the server; all counts are there; stop works."""
    home = lone_home
    child = home.start("up", code=HASTY)
    child.out(0)
    server = server_of(home)
    os.kill(server.pid, signal.SIGKILL)
    eventually(lambda: (now := embedded.running(home.data)) and now.pid != server.pid, 15)
    assert child.child.poll() is None
    done = home.invoke("stop")
    assert done.out.startswith(f"stopped: redmeter up (pid {child.pid}), the embedded server")
    done = child.finish()
    assert (done.code, "Traceback" in done.err) == (0, False)
    assert home.processes() == {}


@pytest.mark.slow
def test_a_killed_up_is_no_obstacle(lone_home: Home) -> None:
    """Its file is stale then: the next one takes its place, and the server is the same."""
    home = lone_home
    home.invoke("up", "--detach", "--no-page")
    (pid,) = ups(home)
    server = server_of(home)
    kill_up(home, pid)
    done = home.invoke("up", "--detach", "--no-page")
    assert done.out.startswith("redmeter is up: ")
    assert ups(home) != [pid]
    assert server_of(home) == server


@pytest.mark.slow
def test_stop_signals_nobody_whom_a_stale_file_names(home: Home, server: Server) -> None:
    """The pid in it may be another program's by now."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as innocent:
        home.invoke("up", "--detach", "--no-page")
        (file,) = home.of_up("lock")
        said = json.loads(file.read_text())
        kill_up(home, said["pid"])
        file.write_text(json.dumps(said | {"pid": innocent.pid}))
        assert home.invoke("stop") == Done(0, "nothing was running\n", "")
        assert innocent.poll() is None
        innocent.communicate(b"\n")


@pytest.mark.slow
def test_up_with_a_url_starts_no_server(home: Home, server: Server) -> None:
    """It cleans on the server that the URL names; stop ends that, and leaves the server alone."""
    done = home.invoke("up", "-d", "--no-page")
    assert done.out.startswith(f"redmeter is up: {server.url}\n")
    assert len(home.processes()) == 1
    assert not home.data.exists()
    with server.client() as client:
        eventually(lambda: client.hget("redmeter:cleaned:", "redmeter:"))
    assert home.invoke("stop").out.startswith("stopped: redmeter up (pid ")
    assert home.processes() == {}
    assert server.running


@pytest.mark.slow
def test_stop_ends_every_prefix_of_its_store_and_no_other_store(home: Home, server: Server) -> None:
    """Else the cleaner of another prefix would restart the embedded server."""
    other = server.url.removesuffix("/0") + "/1"
    for options in ([], ["--prefix", "a:"], ["--url", other]):
        home.invoke("up", "-d", "--no-page", *options)
    assert len(ups(home)) == 3
    assert home.invoke("stop").out.count("redmeter up (pid ") == 2
    assert len(ups(home)) == 1
    assert home.invoke("stop", "--url", other).out.count("redmeter up (pid ") == 1


@pytest.mark.slow
def test_stop_finds_what_was_started_in_another_environment(
    lone_home: Home, tmp_path: Path
) -> None:
    """By a service, say, whose home is another one: it needs the data alone, and no home at all."""
    url = f"embedded://{lone_home.data}"
    assert lone_home.invoke("up", "-d", "--no-page").code == 0
    (tmp_path / "file").write_text("")
    other = {name: str(tmp_path / "file") for name in ("HOME", "XDG_STATE_HOME", "XDG_DATA_HOME")}
    done = lone_home.invoke("stop", "--url", url, **other)
    assert done.out.startswith("stopped: redmeter up (pid ")
    assert "the embedded server in" in done.out
    assert lone_home.processes() == {}


@pytest.mark.slow
@pytest.mark.parametrize("option", [(), ("--detach",)])
def test_up_without_a_server_fails_quickly(
    home: Home, server: Server, option: tuple[str, ...]
) -> None:
    """Exit code 3, the same clear error either way, and no process is left."""
    with server.client() as client:
        client.execute_command("ACL", "SETUSER", "ada", "on", ">hidden-right", "~*", "+@all")
    words = ["up", *option, "--no-page", "--url"]
    words.append(server.url.replace("://", "://ada:hidden-wrong@"))
    run = home.invoke if option else home.run  # the lock is held until the process ends
    done = run(*words)
    assert (done.code, done.out) == (3, "")
    assert "check user and password in the URL" in done.err
    server.kill()
    done = run(*words)  # which has less time than `up` has patience
    assert (done.code, done.out) == (3, "")
    assert done.err.startswith(f"error: no answer from {server.url}")
    assert "Is the server running, and the URL right?" in done.err
    assert "hidden" not in done.err + "".join(log.read_text() for log in home.of_up("log"))
    assert home.processes() == {}


@pytest.mark.slow
@pytest.mark.parametrize("option", [(), ("--detach",)])
def test_a_port_that_is_taken_is_exit_code_2(home: Home, option: tuple[str, ...]) -> None:
    """Where it was asked for; else the next one is taken. Detached too: the store is well."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = home.invoke("up", *option, "--port", str(port))
    assert (done.code, done.out) == (2, "")
    assert f"--port: 127.0.0.1, port {port}: Address already in use" in done.err
    assert home.processes() == {}


@pytest.mark.slow
def test_up_that_is_interrupted_takes_with_it_what_it_started(home: Home) -> None:
    """Ctrl-C before all answers: the process that should have stayed is ended too."""
    with socket.socket() as silent:  # takes connections and says nothing, so nothing gets ready
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        silent.settimeout(20.0)
        url = f"redis://127.0.0.1:{silent.getsockname()[1]}"
        child = home.start("up", "--no-page", "--detach", "--url", url)
        eventually(lambda: len(home.processes()) == 2, 20.0, "both processes run")
        with silent.accept()[0]:  # from now on the second one waits
            done = child.finish(signal.SIGINT)
        assert (done.code, done.out, done.err) == (130, "", "error: interrupted\n")
        assert home.processes() == {}


@pytest.mark.slow
def test_what_is_quoted_of_a_log_stays_lines(lone_home: Home) -> None:
    """Why the embedded server does not start, by `up` and by what asks it."""
    assert lone_home.invoke("mark", "first").code == 0
    embedded.stop(lone_home.data)
    (file,) = (lone_home.data / "appendonlydir").glob("*.incr.aof")
    file.write_bytes(b"rubbish\r\n" + file.read_bytes())
    up = ["up", "--no-page"]
    for run, words in (
        (lone_home.invoke, ["names"]),
        (lone_home.run, up),  # the lock is held until the process ends
        (lone_home.invoke, [*up, "--detach"]),
    ):
        done = run(*words)
        first, *quoted = done.err.splitlines()
        assert (done.code, done.out) == (3, "")
        assert first.startswith("error: ")
        assert first.endswith("Its log:")
        assert quoted
        assert all(line.startswith("  ") for line in quoted)
        assert "\\n" not in done.err


@pytest.mark.slow
def test_a_password_is_in_no_list_of_processes_and_in_no_file(home: Home, server: Server) -> None:
    """The detached process gets it by its environment; log and state name the place alone."""
    with server.client() as client:
        client.execute_command("ACL", "SETUSER", "ada", "on", ">hidden-secret", "~*", "+@all")
    url = server.url.replace("://", "://ada:hidden-secret@")
    done = home.invoke("up", "-d", "--url", url)
    assert done.code == 0
    (line,) = home.processes().values()
    files = [file for file in home.state.iterdir() if file.is_file()]
    assert len(files) == 2
    texts = [file.read_text() for file in files]
    assert "hidden" not in "".join([done.out, done.err, line, *texts])
    assert server.url in texts[0] and server.url in texts[1]  # noqa: PT018  one statement
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE(home.state.stat().st_mode) == 0o700
    assert home.invoke("stop", "--url", server.url).out.startswith("stopped: ")


@pytest.mark.slow
def test_up_tells_its_log_of_trouble_and_goes_on(home: Home, server: Server) -> None:
    """A server that is away for a while is no end of the cleaner."""
    child = home.start("up", code=HASTY, REDMETER_TIMEOUT="0.1")
    child.err(0)
    server.kill()
    assert (
        " UTC warning: redmeter could not clean, and tries again in a minute: no answer from "
        in child.err(1)
    )
    server.start()
    with server.client() as client:
        eventually(lambda: client.hget("redmeter:cleaned:", "redmeter:"), 15)
    assert home.invoke("stop").code == 0


@pytest.mark.slow
def test_what_lies_in_the_working_directory_is_not_run(home: Home) -> None:
    """A file of the user's called redis.py is no part of the program."""
    for name in ("redis", "redmeter", "typing"):
        (home.work / f"{name}.py").write_text("raise SystemExit('the wrong module')\n")
    done = home.run("up", "--detach")
    assert done.out.startswith("redmeter is up: ")
    assert done.code == 0


def test_a_state_directory_that_cannot_be_made_is_named(redmeter: Run, tmp_path: Path) -> None:
    """Exit code 2, and which variable names another one."""
    (tmp_path / "file").write_text("")
    for words in (["up"], ["up", "--detach"]):
        done = redmeter(*words, XDG_STATE_HOME=str(tmp_path / "file"))
        assert (done.code, done.out) == (2, "")
        assert done.err.startswith(f"error: XDG_STATE_HOME: {tmp_path}/file/redmeter cannot be")
        assert "name a directory that you may write to" in done.err
    done = redmeter("stop", XDG_STATE_HOME=str(tmp_path / "file"))
    assert (done.code, done.out) == (0, "nothing was running\n")


@pytest.mark.parametrize("option", [(), ("--detach",)])
def test_an_embedded_directory_that_cannot_be_made_is_named(
    redmeter: Run, option: tuple[str, ...]
) -> None:
    """Exit code 3, in the words of the embedded server."""
    done = redmeter("up", *option, "--url", "embedded:///proc/nope/x")
    assert (done.code, done.out) == (3, "")
    assert done.err.startswith("error: embedded server in /proc/nope/x: ")
    assert "name another one with REDMETER_URL=embedded://PATH" in done.err


# --- The page ------------------------------------------------------------------------------


def test_no_page_is_served_where_none_is_wanted(home: Home) -> None:
    """The cleaner runs alone, as where nothing may listen."""
    done = home.invoke("up", "-d", "--no-page")
    assert "page:" not in done.out
    assert state(home)["page"] == ""
    assert home.invoke("stop").code == 0


@pytest.mark.slow
def test_beyond_loopback_a_token_is_made_up_and_printed_once(home: Home) -> None:
    """It opens the page; neither the log, nor a file, nor the list of processes has it."""
    done = home.invoke("up", "--detach", "--host", "0.0.0.0", "--port", "0")
    (line,) = [line for line in done.out.splitlines() if line.startswith("page: ")]
    address, _, token = line.removeprefix("page: ").partition("?token=")
    assert len(token) >= 32
    assert state(home)["page"] == address
    local = f"http://127.0.0.1:{address.rpartition(':')[2]}api/marks"
    with pytest.raises(httpx.HTTPStatusError, match="401"):
        asked(local)
    assert asked(local, Authorization=f"Bearer {token}")["marks"] == []
    again = home.invoke("up")
    assert address in again.out
    texts = [file.read_text() for file in home.state.iterdir() if file.is_file()]
    assert token not in "".join([again.out, again.err, *texts, *home.processes().values()])
    assert home.invoke("stop").code == 0


@pytest.mark.slow
def test_credentials_come_from_files_and_the_environment(home: Home, tmp_path: Path) -> None:
    """Then nothing is made up, and nothing is printed."""
    (tmp_path / "token").write_text("a-token-of-mine\n")
    done = home.invoke("up", "-d", "--token-file", str(tmp_path / "token"))
    assert "a-token-of-mine" not in done.out
    address = state(home)["page"]
    assert asked(f"{address}api/marks", Authorization="Bearer a-token-of-mine")["marks"] == []
    assert home.invoke("stop").code == 0
    home.invoke("up", "-d", REDMETER_USERS="ada:correct-horse")
    right = "Basic " + base64.b64encode(b"ada:correct-horse").decode()
    assert asked(f"{state(home)['page']}api/marks", Authorization=right)["marks"] == []
    assert home.invoke("stop").code == 0


@pytest.mark.slow
def test_a_second_up_says_that_its_options_do_not_hold(home: Home, tmp_path: Path) -> None:
    """Where credentials are among them it fails: who gave them would take the page for locked."""
    assert home.invoke("up", "-d", "--port", "0").code == 0
    for detached in ([], ["-d"]):
        again = home.invoke("up", *detached, "--host", "0.0.0.0", "--allow-host", "x.example")
        assert again.code == 0
        assert "without --host 0.0.0.0 --allow-host x.example: " in " ".join(again.err.split())
        assert "stop first" in " ".join(again.err.split())
        (tmp_path / "secret").write_text("ada:correct-horse\n")
        env = {"REDMETER_TOKEN": "a-token-of-mine"}
        for done in (
            home.invoke("up", *detached, "--users-file", str(tmp_path / "secret")),
            home.invoke("up", *detached, "--token-file", str(tmp_path / "secret")),
            home.invoke("up", *detached, **env),
        ):
            assert done.code == 2
            assert "the running process does not use these credentials" in " ".join(
                done.err.split()
            )
            assert "correct-horse" not in done.err
            assert "a-token" not in done.err
    assert home.invoke("stop").code == 0


@pytest.mark.slow
def test_strangers_can_neither_shut_the_page_out_nor_fill_the_disk(home: Home) -> None:
    """Without a word of credentials: more connections than files, and none ends."""
    script = "ulimit -n 128; redmeter up --detach --port 0"
    assert home.shell(script).code == 0
    address = state(home)["page"]
    port = int(address.rpartition(":")[2].strip("/"))
    (log,) = home.of_up("log")
    sockets = []
    try:
        for _ in range(200):
            one = socket.create_connection(("127.0.0.1", port), timeout=10)
            sockets.append(one)
            with contextlib.suppress(OSError):  # closed already
                one.sendall(b"GET / HTT")
        assert asked(f"{address}healthz") == {"status": "ok"}
        assert asked(f"{address}api/marks")["marks"] == []
        time.sleep(3)  # as long as it would write
        assert log.stat().st_size < 100_000
        assert asked(f"{address}api/marks?since=1")["marks"] == []
    finally:
        for one in sockets:
            one.close()
    assert home.invoke("stop").code == 0


@pytest.mark.slow
def test_a_log_is_begun_anew_while_it_runs(home: Home) -> None:
    """However much is written; how large it is, is looked at every tenth of a second here."""
    (home.root / "hasty").mkdir()
    hasty = "import redmeter.cli.up as up\nup.LOG_SECONDS = 0.1\n"
    (home.root / "hasty" / "sitecustomize.py").write_text(hasty)
    home.env["PYTHONPATH"] = f"{home.root / 'hasty'}:{home.env['PYTHONPATH']}"
    assert home.invoke("up", "--detach", "--no-page").code == 0
    (log,) = home.of_up("log")
    with log.open("ab") as file:
        file.write(b"x" * 2_000_000)
    eventually(lambda: log.stat().st_size < 1_000_000, 20.0)
    assert home.invoke("stop").code == 0


@pytest.mark.slow
def test_the_page_ends_within_a_moment_though_it_is_watched(home: Home) -> None:
    """Ctrl-C does not wait for connections that browsers keep."""
    child = home.start("up")
    child.out(0)
    address = child.out(1).removeprefix("page: ").split()[0]
    host, port = address.removeprefix("http://").rstrip("/").split(":")
    connections = [http.client.HTTPConnection(host, int(port), timeout=10) for _ in range(5)]
    for connection in connections:
        connection.request("GET", "/api/marks")
        assert connection.getresponse().read()
    done = child.finish(signal.SIGINT)
    assert (done.code, "Traceback" in done.err) == (0, False)
    for connection in connections:
        connection.close()


@pytest.mark.slow
def test_a_cleaner_that_may_not_ends_the_page_too(home: Home, server: Server) -> None:
    """Else a page would run on with nobody cleaning: exit code 3, and why."""
    with server.client() as client:
        client.execute_command("ACL", "SETUSER", "ada", "on", ">a", "~*", "+@all", "-evalsha")
        client.zadd("redmeter:known:", {"60:hits": 0})
    child = home.start("up", "--url", server.url.replace("://", "://ada:a@"))
    done = child.finish(None)
    assert done.code == 3
    assert "access denied" in done.err


def test_a_fault_of_ours_is_told_with_its_place(capsys: pytest.CaptureFixture[str]) -> None:
    """In the log of `up`, line by line."""
    try:
        raise LookupError("odd")
    except LookupError:
        record = logging.LogRecord(
            "redmeter", logging.ERROR, "x", 1, "the page failed", (), sys.exc_info()
        )
    output._Notes().emit(record)
    first, *lines = capsys.readouterr().err.splitlines()
    assert first.endswith(" UTC error: the page failed")
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-1] == "LookupError: odd"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--host", "192.0.2.77"], "error: --host: 192.0.2.77, ports 7380 to "),
        (["--allow-host", "http://x"], "error: allowed_hosts: 'http://x' is no host name"),
        (["--token-file", "nothing"], "error: --token-file: nothing cannot be read: No such"),
        (["--port", "70000"], "error: --port: give 65535 or less"),
    ],
)
def test_a_page_that_cannot_be_is_said_before_anything_runs(
    redmeter: Run, words: list[str], said: str
) -> None:
    """Exit code 2, and which option it is."""
    done = redmeter("up", *words)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
