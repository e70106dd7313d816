"""The users of docs/stored-format.md: their rights are enough, and none of them is too much.

The lines are read from the page itself, so what is tested is what is copied from there.
"""

import contextlib
import functools
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase, translate
from pathlib import Path
from typing import Any

import httpx
import pytest

from dashboard.test_api import ASKED
from redmeter import AccessDenied, StoreError
from redmeter.health import doctor
from redmeter.store import Store
from support import rights
from support.commands import Home
from support.invoking import invoking
from support.monitoring import Command, monitored
from support.rights import USERS, Use, User
from support.servers import Server
from support.stores import opened_store
from support.waiting import eventually

pytestmark = pytest.mark.slow

PAGE = rights.page_uses(ASKED)
#: What each user is for.
USES: dict[str, tuple[Use, ...]] = {
    "writer": rights.WRITER,
    "reader": rights.READER,
    "page": PAGE,
    "cleaner": rights.CLEANER,
    "up": (*rights.KEEPER, *PAGE),
    "doctor": rights.DOCTOR,
    "alerts": rights.ALERTS,
}
#: Those who change nothing.
LOOKING = ("reader", "page", "doctor")
#: What is asked though it may be denied, since something is told without: the client's name for
#: itself, settings of the server, whether there is a store with another prefix, and that the status
#: is kept.
ASKED_ANYWAY = {"set", "client", "client|setinfo", "config", "config|get", "scan", "randomkey"}
ASKED_ANYWAY |= {"known:", "redmeter:bare:cleaned:"}


def renewed(server: Server, use: Use, admin: Any) -> None:
    """Empty the server, and prepare it for a use."""
    admin.flushall()
    admin.script_flush()
    use.prepare(server, admin)


def done(server: Server, use: Use, user: User) -> None:
    """Have a user do something. Raises: what is denied, in whichever form it shows."""
    with server.client() as admin:
        (user.bare() if use.bare else user).let_in(admin)
    use.run(server, user)


@pytest.fixture
def admin(any_server: Server) -> Iterator[Any]:
    """A client that may do everything."""
    with any_server.client(decode_responses=True) as client:
        yield client


def test_there_is_a_line_for_each_user() -> None:
    """And each is said what it is for."""
    assert list(USERS) == list(USES)
    text = rights.DOC.read_text(encoding="utf-8")
    assert re.findall(r"^- `metrics-(\w+)` is ", text, re.MULTILINE) == list(USES)


@pytest.mark.servers
@pytest.mark.parametrize("role", USES)
def test_the_rights_of_the_docs_are_enough(any_server: Server, admin: Any, role: str) -> None:
    """Each user can do what it is there for, and the server has denied nothing on the way."""
    for use in USES[role]:
        renewed(any_server, use, admin)
        admin.execute_command("ACL", "LOG", "RESET")
        done(any_server, use, USERS[role])
        assert {entry["object"] for entry in admin.acl_log()} <= ASKED_ANYWAY, use.name


def is_of(rule: str, denied: str) -> bool:
    """Whether it is this right that was missed: a command, of which 6.2 names a word, or a key."""
    if rule[0] == "+":
        return denied in (rule[1:], rule[1:].partition("|")[0])
    return fnmatchcase(denied, rule[1:])


def needless_when_run(server: Server, admin: Any, role: str, rules: Sequence[str]) -> Iterator[str]:
    """Do everything without each of these rules; yield those that are not missed."""
    user, last = USERS[role], None
    order = list(USES[role])
    for rule in rules:
        for use in list(order):
            if use.changes or last is None or last.changes:
                renewed(server, use, admin)
            last = use
            admin.execute_command("ACL", "LOG", "RESET")
            try:
                done(server, use, user.without(rule))
            except (StoreError, AssertionError):
                denied = [entry["object"] for entry in admin.acl_log()]
                assert any(is_of(rule, each) for each in denied), (rule, use.name, denied)
                order.remove(use)  # who missed this one is asked first for the next
                order.insert(0, use)
                break
        else:
            yield rule


def commands_of(server: Server, admin: Any, role: str) -> dict[bool, list[Command]]:
    """Return what a user sends when it does everything: with bare keys or not -> commands.

    Of those that differ in nothing that a rule is about, there is one.
    """
    found: dict[bool, dict[object, Command]] = {False: {}, True: {}}
    for use in USES[role]:
        renewed(server, use, admin)
        user = USERS[role].bare() if use.bare else USERS[role]
        fits = {key: re.compile(translate(key[1:])).match for key in user.keys}
        for command in monitored(server, functools.partial(done, server, use, USERS[role])):
            words = [word.decode("utf-8", "replace") for word in command]
            name = [word.lower() for word in words[:2] if word.isalpha()]
            keys = [key for key in user.keys if any(map(fits[key], words[1:]))]
            found[use.bare].setdefault((*name, *keys), command)
    return {bare: list(commands.values()) for bare, commands in found.items()}


def is_denied(admin: Any, user: User, command: Command) -> bool:
    """Whether the server says that a user may not do this."""
    return bool(admin.execute_command("ACL", "DRYRUN", f"metrics-{user.name}", *command) != "OK")


def needless_in_dry_run(admin: Any, user: User, sent: dict[bool, list[Command]]) -> Iterator[str]:
    """Yield the rules without which a user may send all the same."""
    allowed: dict[bool, list[Command]] = {}
    for bare, commands in sent.items():
        (user.bare() if bare else user).let_in(admin)
        allowed[bare] = [each for each in commands if not is_denied(admin, user, each)]
    for rule in user.rules:
        for bare, commands in allowed.items():
            if bare and rule[0] == "~":
                continue
            less = user.without(rule)
            (less.bare() if bare else less).let_in(admin)
            if any(is_denied(admin, user, each) for each in commands):
                break
        else:
            yield rule


@pytest.mark.parametrize("role", USES)
def test_each_right_that_is_taken_away_is_missed(
    any_server: Server, admin: Any, role: str, caplog: pytest.LogCaptureFixture
) -> None:
    """So there is none too much.

    Servers that have `ACL DRYRUN` are asked about each command that the user sends; there one rule
    is tried for real. On Redis 6.2 all are.
    """
    caplog.set_level("CRITICAL")
    rules = USERS[role].rules
    if not any_server.name.startswith("redis-6"):
        sent = commands_of(any_server, admin, role)
        assert list(needless_in_dry_run(admin, USERS[role], sent)) == []
        rules = rules[-1:]
    assert list(needless_when_run(any_server, admin, role, rules)) == []


# --- What they may not ---------------------------------------------------------------------


def may_not(store: Store, *command: str) -> bool:
    """Whether a command is denied, by itself or within a script."""
    (reply,) = store.ask([command])
    return isinstance(reply, AccessDenied)


#: One for each way to change something.
WRITES: tuple[tuple[str, ...], ...] = (
    *(("SET", "redmeter:meta:", "x"), ("DEL", "redmeter:meta:"), ("UNLINK", "redmeter:meta:")),
    *(("HSET", "redmeter:meta:", "format", "9"), ("HINCRBY", "redmeter:total:", "hits", "1")),
    *(("HDEL", "redmeter:total:", "hits"), ("ZADD", "redmeter:known:", "0", "60:x")),
    *(("ZREM", "redmeter:known:", "60:hits"), ("LPUSH", "redmeter:recent:shop:info", "x")),
    *(("EXPIRE", "redmeter:total:", "1"), ("RENAME", "redmeter:total:", "redmeter:marks:")),
)


@pytest.mark.parametrize("role", LOOKING)
def test_who_only_looks_cannot_write(any_server: Server, admin: Any, role: str) -> None:
    """Neither by a command nor by a script, which the page may call; nothing has changed."""
    rights.fill(any_server)
    USERS[role].let_in(admin)
    before = dumped(any_server)
    store = USERS[role].store(any_server)
    for command in WRITES:
        assert may_not(store, *command), command
        name, *arguments = command
        for call in ("call", "pcall"):
            script = f"return redis.{call}('{name}', unpack(ARGV))"
            assert may_not(store, "EVAL", script, "0", *arguments), command
            script = f"return redis.{call}('{name}', KEYS[1], unpack(ARGV))"
            assert may_not(store, "EVAL", script, "1", *arguments), command
    store.close()
    assert dumped(any_server) == before
    writing = set(admin.execute_command("ACL", "CAT", "write"))
    assert writing & {rule[1:] for rule in USERS[role].commands} == set()


def dumped(server: Server) -> dict[bytes, bytes]:
    """Return all that a server holds."""
    with server.client() as client:
        return {key: client.dump(key) for key in sorted(client.keys())}


#: Commands of administrators, and such as tell what else there is.
ADMINISTRATION: tuple[tuple[str, ...], ...] = (
    *(("KEYS", "*"), ("FLUSHALL",), ("CONFIG", "GET", "*"), ("CONFIG", "SET", "maxmemory", "1")),
    *(("MONITOR",), ("ACL", "LIST"), ("DEBUG", "OBJECT", "x"), ("SHUTDOWN",), ("SCRIPT", "FLUSH")),
)


@pytest.mark.parametrize("role", USES)
def test_nobody_reaches_what_is_not_redmeters(any_server: Server, admin: Any, role: str) -> None:
    """No key of another program, not by a script either; and no command of an administrator."""
    admin.set("secret", "x")
    admin.hset("redmeterly:total:", "x", "1")
    USERS[role].let_in(admin)
    store = USERS[role].store(any_server)
    for command in (("GET", "secret"), ("HGETALL", "redmeterly:total:"), ("HGETALL", "secret")):
        assert may_not(store, *command)
        script = "return redis.call(unpack(ARGV))"
        assert may_not(store, "EVAL", script, "0", *command)
        assert may_not(
            store, "EVAL", "return redis.call(ARGV[1], KEYS[1])", "1", *reversed(command)
        )
    for other in ADMINISTRATION:
        assert may_not(store, *other), other
    store.close()


@pytest.mark.parametrize("role", ["writer", "cleaner"])
def test_who_writes_cannot_read_messages(any_server: Server, admin: Any, role: str) -> None:
    """Texts that were logged, and the names of keys."""
    rights.fill(any_server)
    USERS[role].let_in(admin)
    store = USERS[role].store(any_server)
    assert may_not(store, "LRANGE", "redmeter:recent:shop:info", "0", "-1")
    assert may_not(store, "LINDEX", "redmeter:recent:shop:info", "0")
    assert may_not(store, "SORT", "redmeter:recent:shop:info", "ALPHA")
    assert may_not(store, "DUMP", "redmeter:recent:shop:info")
    assert may_not(store, "SCAN", "0")
    store.close()


def test_a_cleaner_cannot_make_batches_look_applied(any_server: Server, admin: Any) -> None:
    """Nor forget that they were: it does not reach watermarks, and nobody but a writer does."""
    key = f"redmeter:batch:{rights.ADA}"
    admin.set(key, "7")
    for role in sorted(USES.keys() - {"writer"}):
        USERS[role].let_in(admin)
        store = USERS[role].store(any_server)
        for command in (("UNLINK", key), ("SET", key, "9"), ("GET", key), ("EXPIRE", key, "1")):
            assert may_not(store, *command), (role, command)
        store.close()
    assert admin.get(key) == "7"


# --- What is said beside the lines ---------------------------------------------------------


@pytest.mark.parametrize("role", LOOKING)
def test_keys_can_be_given_for_reading_alone(any_server: Server, admin: Any, role: str) -> None:
    """From Redis 7 and on Valkey, with what is said there of the page's script."""
    if any_server.name.startswith("redis-6"):
        pytest.skip("Redis 6.2 does not know %R~")
    user = USERS[role]
    keys = tuple(f"%R{key}" for key in user.keys)
    commands = tuple("(+eval ~redmeter:*)" if c == "+eval" else c for c in user.commands)
    for use in USES[role]:
        if not use.bare:
            renewed(any_server, use, admin)
            done(any_server, use, user._replace(keys=keys, commands=commands))
    store = user.store(any_server)
    admin.execute_command("ACL", "SETUSER", f"metrics-{role}", "+hset")
    assert may_not(store, "HSET", "redmeter:total:", "hits", "1")
    store.close()


@pytest.mark.parametrize("role", USES)
def test_another_database_needs_one_command_more(any_server: Server, admin: Any, role: str) -> None:
    """To choose it."""
    for more, allowed in (((), False), (("+select",), True)):
        user = USERS[role]._replace(commands=USERS[role].commands + more)
        user.let_in(admin)
        with opened_store(user.url(any_server).removesuffix("0") + "1") as store:
            if allowed:
                store.read()
            else:
                with pytest.raises(AccessDenied):
                    store.read()


def test_a_pass_of_the_cleaner_needs_less(any_server: Server, admin: Any) -> None:
    """What the docs say may be left out of it."""
    said = re.search(r"For passes alone omit (.*?)\.\n", rights.DOC.read_text(), re.DOTALL)
    assert said
    user = USERS["cleaner"]
    for word in re.findall(r"`(.*?)`", said[1]):
        rules = [
            rule for rule in user.rules if rule in (word, f"~redmeter:{word}", f"~redmeter:{word}*")
        ]
        assert len(rules) == 1, word
        user = user.without(rules[0])
    (use,) = rights.KEEPER
    renewed(any_server, use, admin)
    done(any_server, use, user)
    assert set(user.commands) == set(USERS["up"].commands) & set(USERS["cleaner"].commands)


def test_the_doctor_says_more_where_it_may_ask_for_settings(any_server: Server, admin: Any) -> None:
    """As much as to somebody who may do everything."""
    rights.fill(any_server)
    user = USERS["doctor"]
    more = "+config" if any_server.name.startswith("redis-6") else "+config|get"
    found = []
    for commands in (user.commands, (*user.commands, more), ("+@all",)):
        given = user._replace(commands=commands)
        given.let_in(admin)
        store = given.store(any_server)
        found.append([(f.topic, f.level) for f in doctor.examine(store).findings])
        store.close()
    assert found[0] != found[1] == found[2]


# --- The command ---------------------------------------------------------------------------


#: What each user calls.
COMMANDS = {
    "reader": (
        *("names", "series hits -p 1m", "top http_requests --by status -p 1m", "logs shop"),
        *("summary cart_value -p 1m", "forecast hits -p 1s", "logs", "mark --list", "verdict"),
    ),
    "writer": ("mark v2", "retention 60=60", "replay access.log"),
    "cleaner": ("mark --remove v1", "clean --forget hits", "clean --forget-logger shop", "clean"),
    "doctor": ("doctor",),
    "alerts": ("alerts", "alerts history", "alerts silence x --file alerts.toml"),
}


@pytest.mark.parametrize("role", COMMANDS)
def test_each_command_works_with_the_rights_of_its_user(
    any_server: Server,
    admin: Any,
    role: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As it is called."""
    rights.fill(any_server)
    USERS[role].let_in(admin)
    monkeypatch.chdir(tmp_path)
    line = '- - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1\n'
    (tmp_path / "access.log").write_text(line)
    (tmp_path / "alerts.toml").write_text('[[alert]]\nname = "x"\nwhen = "verdict"\n')
    with invoking() as redmeter:
        for command in COMMANDS[role]:
            done = redmeter(*command.split(), REDMETER_URL=USERS[role].url(any_server))
            # A verdict on a new mark: too little data.
            assert done.code == (3 if command == "verdict" else 0), (command, done)
            assert USERS[role].password not in done.out + done.err


@pytest.mark.slow
def test_up_works_with_its_rights(any_server: Server, admin: Any, tmp_path: Path) -> None:
    """The page answers, and a pass of the cleaner was made."""
    rights.fill(any_server)
    admin.delete("redmeter:cleaned:")
    user = USERS["up"]
    user.let_in(admin)
    with contextlib.closing(Home(tmp_path, user.url(any_server))) as home:
        started = home.run("up", "--detach", "--port", "0")
        assert started.code == 0, started
        try:
            eventually(lambda: admin.hexists("redmeter:cleaned:", "redmeter:"), 10)
            address = re.search(r"^page: (\S+)", started.out, re.MULTILINE)
            assert address
            for path in ("api/overview", "api/doctor"):
                answer = httpx.get(address[1] + path, trust_env=False)
                assert answer.json()["now"] > 0
        finally:
            stopped = home.run("stop")
        assert stopped.code == 0
        log = next(home.state.glob("up-*.log")).read_text()
        assert user.password not in started.out + started.err + log
