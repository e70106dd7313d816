"""The link: what servers say is understood, and each exchange gets its own replies, sent once."""

import contextlib
import itertools
import os
import re
import socket
import threading
import time
import traceback
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st
from redis import exceptions as client_errors

from redmeter.errors import (
    AccessDenied,
    InvalidSetting,
    StoreError,
    StoreRefused,
    StoreUnavailable,
)
from redmeter.store import open
from redmeter.store.servers import sockets
from redmeter.store.servers.connection import ServerLink
from redmeter.store.servers.replies import error_code, pairs, raised, scored, translate
from support.canned import Canned, client_of

SHA = "fa7d8d7e1af1e05c3e94eac37b6e0b5c7e8767ec"

#: How the errors of a script read: up to 6.2, from 7.0, from Valkey 9.
OLD = f"ERR Error running script (call to f_{SHA}): @user_script:1: "
NEW = f" script: {SHA}, on @user_script:1."
VALKEY = " script: on @user_script:1."
KEYS_DENIED = (
    "The user executing the script can't access at least one of the keys mentioned in the command "
    "arguments"
)

#: Errors as servers send them, by the code that is within. Collected from Redis 6.2, 7.0, 7.2,
#: 7.4 and 8.2 and Valkey 8.1 and 9.1; those of clusters from their sources.
SAID = {
    "NOSCRIPT": ["NOSCRIPT No matching script. Please use EVAL.", "NOSCRIPT No matching script."],
    "OOM": [
        "OOM command not allowed when used memory > 'maxmemory'.",
        f"{OLD}@user_script: 1: -OOM command not allowed when used memory > 'maxmemory'.",
        f"OOM command not allowed when used memory > 'maxmemory'.{NEW}",
        f"OOM command not allowed when used memory > 'maxmemory'.{VALKEY}",
    ],
    "READONLY": [
        "READONLY You can't write against a read only replica.",
        f"{OLD}@user_script: 1: -READONLY You can't write against a read only replica.",
        f"READONLY You can't write against a read only replica.{NEW}",
    ],
    "LOADING": [
        "LOADING Redis is loading the dataset in memory",
        "LOADING Valkey is loading the dataset in memory",
    ],
    "MISCONF": [
        "MISCONF Redis is configured to save RDB snapshots, but it is currently not able to",
        f"{OLD}@user_script: 1: -MISCONF Redis is configured to save RDB snapshots, but it is",
        "MISCONF Errors writing to the AOF file: No space left on device",
    ],
    "NOREPLICAS": [
        "NOREPLICAS Not enough good replicas to write.",
        f"{OLD}@user_script: 1: -NOREPLICAS Not enough good replicas to write.",
        f"NOREPLICAS Not enough good replicas to write.{NEW}",
    ],
    "MASTERDOWN": [
        "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."
    ],
    "BUSY": [
        "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
        "BUSY Valkey is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
    ],
    "WRONGTYPE": [
        "WRONGTYPE Operation against a key holding the wrong kind of value",
        f"{OLD}WRONGTYPE Operation against a key holding the wrong kind of value",
        f"WRONGTYPE Operation against a key holding the wrong kind of value{NEW}",
        f"WRONGTYPE Operation against a key holding the wrong kind of value{VALKEY}",
    ],
    "CLUSTERDOWN": ["CLUSTERDOWN The cluster is down", "CLUSTERDOWN Hash slot not served"],
    "TRYAGAIN": ["TRYAGAIN Multiple keys request during rehashing of slot"],
    "MOVED": ["MOVED 3999 127.0.0.1:6381"],
    "ASK": ["ASK 3999 127.0.0.1:6381"],
    "CROSSSLOT": ["CROSSSLOT Keys in request don't hash to the same slot"],
    "NOAUTH": [
        "NOAUTH Authentication required.",
        "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO",
    ],
    "WRONGPASS": [
        "WRONGPASS invalid username-password pair or user is disabled.",
        "ERR AUTH <password> called without any password configured for the default user.",
    ],
    "NOPERM": [
        "NOPERM this user has no permissions to run the 'hincrby' command or its subcommand",
        "NOPERM this user has no permissions to run the 'hincrby' command",
        "NOPERM this user has no permissions to access one of the keys used as arguments",
        "NOPERM User u has no permissions to run the 'hincrby' command",
        "NOPERM No permissions to access a key",
        f"{OLD}@user_script: 1: The user executing the script can't run this command or subcommand",
        f"{OLD}@user_script: 1: {KEYS_DENIED}",
        "@user_script: 1: The user executing the script can't run this command or subcommand",
        f"@user_script: 1: {KEYS_DENIED}",
        f"ERR The user executing the script can't run this command or subcommand{NEW}",
        f"ERR {KEYS_DENIED}{NEW}",
        f"ERR ACL failure in script: User u has no permissions to run the 'hincrby' command{NEW}",
        f"ERR ACL failure in script: No permissions to access a key{VALKEY}",
        "ERR ACL failure in script: No permissions to access a key",
    ],
    "ERR": [
        "ERR increment or decrement would overflow",
        f"{OLD}ERR hash value is not an integer",
        f"ERR hash value is not an integer{NEW}",
        f"ERR user_script:1: Script attempted to access nonexistent global variable 'nosuch'{NEW}",
        "ERR Script killed by user with SCRIPT KILL.",
        "ERR This instance has cluster support disabled",
        "ERR unknown command 'FOO', with args beginning with: 'a'",
        "BUSYGROUP Consumer Group name already exists",
        "BUSYKEY Target key name already exists.",
    ],
}
ERRORS = [(code, text) for code, texts in SAID.items() for text in texts]
DENIED = ("NOAUTH", "WRONGPASS", "NOPERM")


@pytest.fixture
def link(canned: Canned) -> Iterator[ServerLink]:
    """A link of ours to it, set up as for a URL."""
    store = open(f"redis://127.0.0.1:{canned.port}", timeout=5.0)
    assert store is not None
    assert isinstance(store.link, ServerLink), "there is one server"
    yield store.link
    store.close()


# What servers say


@pytest.mark.parametrize(("code", "text"), ERRORS)
def test_the_code_is_found_in_the_text(code: str, text: str) -> None:
    """At its beginning, within the error of a script, or where there is none but a sentence."""
    assert error_code(text) == code


@pytest.mark.parametrize(("code", "text"), ERRORS)
def test_a_servers_error_arrives_with_its_code(
    code: str, text: str, canned: Canned, link: ServerLink
) -> None:
    """Through the client, which takes the code off some texts and makes exceptions of them.

    Without what tells of our script.
    """
    canned.replies = [b"-" + text.encode() + b"\r\n"]
    try:
        (found,) = link.exchange([("HINCRBY", "a", "b", "1")])
    except StoreError as error:
        found = error
    assert isinstance(found, AccessDenied if code in DENIED else StoreRefused)
    assert found.code == code
    assert not re.search(rf"Error running script|@user_script|{SHA}|\(-", str(found))
    assert found.detail.removesuffix(NEW) in text


def test_an_error_is_a_reply_among_others(canned: Canned, link: ServerLink) -> None:
    """The commands after it were carried out too, and their replies are theirs."""
    canned.replies = [
        b":1\r\n",
        b"-WRONGTYPE no hash\r\n",
        b"*2\r\n$1\r\na\r\n$-1\r\n",
        b"$0\r\n\r\n",
    ]
    one, error, several, empty = link.exchange([("A",), ("B", "1"), ("C", b"\xff"), ("D", "点")])
    assert (one, several, empty) == (1, [b"a", None], b"")
    assert isinstance(error, StoreRefused)
    assert error.code == "WRONGTYPE"
    assert canned.heard == [[b"A"], [b"B", b"1"], [b"C", b"\xff"], [b"D", "点".encode()]]


#: Without what servers say instead of a code.
TEXTS = st.text(st.characters(categories=["Ll", "Zs"], include_characters=":-@."), max_size=20)
TEXTS = TEXTS.filter(lambda text: error_code(text) == "ERR")


@given(st.sampled_from([code for code in SAID if code != "ERR"]), TEXTS, TEXTS)
def test_a_code_is_found_as_a_word_of_its_own(code: str, before: str, after: str) -> None:
    """Wherever it stands, and not as a part of another word."""
    assert error_code(f"{before} {code} {after}") == code
    assert error_code(f"{before} {code}S{after}") == "ERR"
    assert error_code(f"{before} X{code} {after}") == "ERR"


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        (client_errors.ConnectionError("Connection refused"), StoreUnavailable, None),
        (client_errors.TimeoutError("Timeout reading from socket"), StoreUnavailable, None),
        (client_errors.MaxConnectionsError("Too many connections"), StoreUnavailable, None),
        (ConnectionResetError("reset"), StoreUnavailable, None),
        (TimeoutError(), StoreUnavailable, None),
        (OSError(), StoreUnavailable, None),
        (client_errors.BusyLoadingError("Redis is loading …"), StoreRefused, "LOADING"),
        (client_errors.ReadOnlyError("You can't write …"), StoreRefused, "READONLY"),
        (client_errors.NoScriptError("No matching script."), StoreRefused, "NOSCRIPT"),
        (client_errors.OutOfMemoryError("command not allowed"), StoreRefused, "OOM"),
        (client_errors.MasterDownError("Link with MASTER is down"), StoreRefused, "MASTERDOWN"),
        (client_errors.ClusterDownError("Hash slot not served"), StoreRefused, "CLUSTERDOWN"),
        (client_errors.TryAgainError("Multiple keys request"), StoreRefused, "TRYAGAIN"),
        (client_errors.ClusterCrossSlotError("Keys in request"), StoreRefused, "CROSSSLOT"),
        (client_errors.MovedError("3999 127.0.0.1:6381"), StoreRefused, "MOVED"),
        (client_errors.AskError("3999 127.0.0.1:6381"), StoreRefused, "ASK"),
        (client_errors.ResponseError("ERR something"), StoreRefused, "ERR"),
        (client_errors.ResponseError("WRONGTYPE Operation"), StoreRefused, "WRONGTYPE"),
        (client_errors.NoPermissionError("User u has no …"), AccessDenied, "NOPERM"),
        (client_errors.AuthenticationError("invalid password"), AccessDenied, "WRONGPASS"),
        (client_errors.AuthenticationError("Authentication required."), AccessDenied, "NOAUTH"),
        (client_errors.AuthorizationError("no"), AccessDenied, "NOAUTH"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_each_error_of_the_client_becomes_one_of_ours(
    error: Exception, kind: type[StoreError], code: str | None
) -> None:
    """No answer, an answer that says no, or no access; ours stay as they are."""
    found = translate(error, "redis://h/0")
    assert type(found) is kind
    assert getattr(found, "code", None) == code
    assert str(error) in str(found).replace(". Is", ".. Is")
    assert ("redis://h/0" in str(found)) is (kind is StoreUnavailable)
    assert translate(found, "elsewhere") is found


def test_a_password_that_a_server_repeats_goes_no_further(canned: Canned) -> None:
    """A server without AUTH answers with what it was sent: not in the message, nor behind it."""
    store = open(f"redis://user:s3cret@127.0.0.1:{canned.port}", timeout=5.0)
    assert store is not None
    text = b"-ERR unknown command `AUTH`, with args beginning with: `user`, `s3cret`, \r\n"
    canned.replies = [text] * 3
    with pytest.raises(StoreError) as caught:
        store.link.exchange([("PING",)])
    store.close()
    assert [b"AUTH", b"user", b"s3cret"] in canned.heard
    assert "unknown command `AUTH`" in str(caught.value)
    assert "s3cret" not in "".join(traceback.format_exception(caught.value))
    assert "s3cret" not in repr(vars(caught.value))


@pytest.mark.parametrize("word", [b"MOVED", b"ASK"])
def test_where_a_key_lies_instead_is_said(canned: Canned, link: ServerLink, word: bytes) -> None:
    """With what that means; the client cuts off the word that tells it."""
    canned.replies = [b"-%s 15045 127.0.0.1:18625\r\n" % word]
    (refused,) = link.exchange([("GET", "a")])
    assert isinstance(refused, StoreRefused)
    place = f"{word.decode()} 15045 127.0.0.1:18625"
    assert str(refused).startswith(
        f"the server refused: the key is on another node: {place} (it is a node of a cluster: "
        "write "
    )


# Exchanges


@pytest.mark.parametrize("owned", [True, False])
def test_a_command_is_sent_once_however_eager_the_client(canned: Canned, owned: bool) -> None:
    """A lost reply is an error that says something was sent; nothing is sent again."""
    client = client_of(canned)
    link = ServerLink(lambda: client, "canned", owned=owned)
    canned.replies = [b"+PONG\r\n", None]
    assert link.exchange([("PING",)]) == [b"PONG"]
    with pytest.raises(StoreUnavailable, match="canned") as caught:
        link.exchange([("INCR", "a")])
    assert caught.value.sent
    assert canned.heard == [[b"PING"], [b"INCR", b"a"]]
    client.close()


def test_nothing_was_sent_where_nobody_listens() -> None:
    """The error says so: what was to be written was certainly not."""
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        store = open(f"redis://u:p@127.0.0.1:{nobody.getsockname()[1]}", timeout=5.0)
        assert store is not None
        with pytest.raises(StoreUnavailable) as caught:
            store.link.exchange([("INCR", "a")])
        assert not caught.value.sent
        assert caught.value.location == store.location


@pytest.mark.parametrize("owned", [True, False])
def test_a_late_reply_is_not_taken_for_that_of_the_next_exchange(
    canned: Canned, owned: bool
) -> None:
    """After a timeout, or half an answer, the connection is given up."""
    late = threading.Event()

    def reply_late() -> bytes:
        late.wait(5)
        return b"+late\r\n"

    client = client_of(canned, socket_timeout=0.1)
    link = ServerLink(lambda: client, "canned", owned=owned)
    canned.replies = [reply_late, b"+own\r\n"]
    with pytest.raises(StoreUnavailable) as caught:
        link.exchange([("INCR", "a")])
    assert caught.value.sent
    late.set()
    assert link.exchange([("GET", "a")]) == [b"own"]
    canned.replies = [b"*2\r\n:1\r\n", b"+x\r\n", b"+own\r\n"]
    with pytest.raises(StoreUnavailable):
        link.exchange([("GET", "a")])
    canned.replies = [b"+own\r\n"]
    assert link.exchange([("GET", "a")]) == [b"own"]
    client.close()


class Trickling:
    """A server that answers anything, a byte at a time, and never comes to an end."""

    def __init__(self, first: bytes) -> None:
        self._first = first
        self._ended = threading.Event()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def close(self) -> None:
        """End."""
        self._ended.set()
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(5)

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                with contextlib.suppress(OSError), connection:
                    connection.sendall(self._first)
                    while not self._ended.wait(0.02):
                        connection.sendall(b"x")


@pytest.mark.parametrize("first", [b"+", b"+OK\r\n+OK\r\n+"], ids=["greeting", "answer"])
def test_an_answer_that_comes_byte_by_byte_ends_with_the_time_that_was_given(first: bytes) -> None:
    """Though each byte comes soon: while connecting, and in the answer, also to a later call."""
    server, done = Trickling(first), threading.Event()
    client = redis.Redis(port=server.port, protocol=2)
    link = ServerLink(lambda: client, "trickling", owned=False)

    def ask() -> None:
        for _ in range(2):
            with link.within(0.2), pytest.raises(StoreUnavailable):
                link.exchange([("GET", "a")])
        done.set()

    thread = threading.Thread(target=ask)
    thread.start()
    ended = done.wait(10)
    server.close()
    thread.join(5)
    assert ended


def test_replies_after_an_error_that_ended_an_exchange_are_not_the_next_ones(
    canned: Canned, link: ServerLink
) -> None:
    """The second reply of a refused pair may still be under way."""
    begun, end = threading.Event(), threading.Event()

    def reply_late() -> bytes:
        begun.set()
        end.wait(0.3)
        return b"+late\r\n"

    canned.replies = [b"-NOAUTH Authentication required.\r\n", reply_late, b"+own\r\n"]
    with pytest.raises(AccessDenied):
        link.exchange([("GET", "a"), ("GET", "b")])
    assert begun.wait(5)
    assert link.exchange([("GET", "a")]) == [b"own"]
    end.set()


def test_a_server_that_loads_its_data_puts_nothing_in_doubt(
    canned: Canned, link: ServerLink
) -> None:
    """Each command has its own reply: what was sent before or after may have been carried out.

    The next exchange connects again: another server may have taken its place.
    """
    canned.replies = [b":1\r\n", b"-LOADING x\r\n", b":2\r\n", b"+own\r\n"]
    one, loading, two = link.collect([("INCR", "a"), ("INCR", "b"), ("INCR", "a")])
    assert (one, two) == (1, 2)
    assert isinstance(loading, StoreRefused)
    assert (loading.code, loading.sent) == ("LOADING", False)
    assert link.exchange([("GET", "a")]) == [b"own"]
    assert canned.connections == 2


def test_a_time_that_was_given_once_is_not_that_of_later_exchanges(
    canned: Canned, link: ServerLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also long after it is over. The connections of those that have one are kept as well."""
    canned.replies = [b"+1\r\n", b"+2\r\n", b"+3\r\n"]
    with link.within(60.0):
        assert link.exchange([("PING",)]) == [b"1"]
    with monkeypatch.context() as patch:
        later = SimpleNamespace(monotonic=lambda: time.monotonic() + 100.0)
        patch.setattr(sockets, "time", later)
        assert link.exchange([("PING",)]) == [b"2"]
    with link.within(60.0):
        assert link.exchange([("PING",)]) == [b"3"]
    assert canned.connections == 2


def test_a_connection_is_kept_and_one_that_ended_is_noticed_beforehand(
    canned: Canned, link: ServerLink
) -> None:
    """A server that ended in between puts nothing in doubt."""
    canned.replies = [b"+1\r\n", b"+2\r\n", b"+3\r\n"]
    assert [link.exchange([("PING",)]), link.exchange([("PING",)])] == [[b"1"], [b"2"]]
    assert canned.connections == 1
    canned.drop()
    assert link.exchange([("PING",)]) == [b"3"]
    assert canned.connections == 2


def test_what_is_connected_for_a_time_takes_no_place_in_the_callers_pool(canned: Canned) -> None:
    """Which may have a limit, and more clients than that one after the other."""
    pool = redis.ConnectionPool(port=canned.port, max_connections=2, protocol=2)
    for _ in range(4):
        client = redis.Redis(connection_pool=pool)
        link = ServerLink(lambda found=client: found, "canned", owned=False)  # type: ignore[misc]
        canned.replies = [b"+1\r\n"]
        with link.within(60.0):
            assert link.exchange([("PING",)]) == [b"1"]
        link.close()
    canned.replies = [b"$1\r\n2\r\n"]
    assert client.get("a") == b"2"
    pool.disconnect()


def test_a_bound_socket_still_says_at_once_that_nothing_is_there() -> None:
    """As older versions of the client ask before they send."""
    one, other = socket.socketpair()
    with one, other:
        found = sockets.Bounded(one, time.monotonic() + 60.0)
        one.settimeout(0)
        with pytest.raises(BlockingIOError):
            found.recv_into(bytearray(1))
        one.settimeout(30.0)
        other.send(b"a")
        assert found.recv(1) == b"a"
        assert 30.0 < (one.gettimeout() or 0.0) <= 60.0


def test_a_fork_does_not_use_the_connections_of_its_parent(
    canned: Canned, link: ServerLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or both would read each other's replies from one socket."""
    canned.replies = [b"+1\r\n", b"+2\r\n", b"+3\r\n"]
    link.exchange([("PING",)])
    monkeypatch.setattr(os, "getpid", itertools.repeat(os.getpid() + 1).__next__)
    assert link.exchange([("PING",)]) == [b"2"]
    assert link.exchange([("PING",)]) == [b"3"]
    assert canned.connections == 2


def test_threads_do_not_wait_for_each_other(canned: Canned, link: ServerLink) -> None:
    """Each exchange has a connection of its own while it lasts."""
    both = threading.Barrier(2, timeout=5)

    def reply_together() -> bytes:
        both.wait()
        return b"+OK\r\n"

    canned.replies = [reply_together, reply_together]
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda: found.extend(link.exchange([("PING",)]))) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5)
    assert found == [b"OK", b"OK"]
    assert canned.connections == 2


def test_a_callers_client_is_left_open_and_ours_is_closed(canned: Canned) -> None:
    """Whoever opened it closes it; closing twice is harmless, and using it again opens another."""
    canned.replies = [b"+1\r\n", b"+2\r\n", b"+3\r\n", b"+4\r\n"]
    theirs = client_of(canned, single_connection_client=False)
    link = ServerLink(lambda: theirs, "canned", owned=False)
    link.exchange([("PING",)])
    link.close()
    link.exchange([("PING",)])
    assert canned.connections == 1
    theirs.close()
    made: list[redis.Redis] = []

    def connect() -> redis.Redis:
        made.append(client_of(canned))
        return made[-1]

    link = ServerLink(connect, "canned")
    assert made == []
    link.exchange([("PING",)])
    link.close()
    link.close()
    assert link.exchange([("PING",)]) == [b"4"]
    assert len(made) == 2
    link.close()


def test_a_callers_client_answers_in_bytes_whatever_its_settings(canned: Canned) -> None:
    """Decoding on, and another encoding."""
    with client_of(canned, decode_responses=True, encoding="latin-1") as client:
        link = ServerLink(lambda: client, "canned", owned=False)
        canned.replies = ["$3\r\n点\r\n".encode()]
        assert link.exchange([("GET", "点")]) == ["点".encode()]
        assert canned.heard == [[b"GET", "点".encode()]]


def test_an_option_that_no_connection_knows_is_a_wrong_setting() -> None:
    """And is named; nothing is connected to."""

    def connect() -> redis.Redis:
        client = redis.Redis.from_url("redis://127.0.0.1:1?nosuch=1")
        client.connection_pool.make_connection()
        return client

    with pytest.raises(InvalidSetting, match="url: has an unknown option: nosuch"):
        ServerLink(connect, "nowhere").exchange([("PING",)])


# Replies


@given(st.dictionaries(st.binary(), st.binary()))
def test_a_map_is_the_same_by_either_protocol(fields: dict[bytes, bytes]) -> None:
    """Flat, or a mapping."""
    flat = [text for pair in fields.items() for text in pair]
    assert pairs(flat) == pairs(fields) == list(fields.items())


def test_a_map_of_odd_length_is_no_map() -> None:
    """Rather than losing its last field."""
    with pytest.raises(ValueError, match="shorter"):
        pairs([b"a", b"1", b"b"])


@given(st.lists(st.tuples(st.binary(), st.floats(allow_nan=False))))
def test_scores_are_the_same_by_either_protocol(members: list[tuple[bytes, float]]) -> None:
    """Flat and as text, or two by two and as numbers."""
    flat = [part for member, score in members for part in (member, repr(score).encode())]
    assert scored(flat) == scored([list(pair) for pair in members]) == members


def test_a_reply_that_is_an_error_is_raised_and_any_other_returned() -> None:
    """None, zero and the empty text are replies."""
    for reply in (None, 0, b"", [], [StoreRefused("ERR", "within")]):
        assert raised(reply) is reply
    error = StoreRefused("OOM", "x")
    with pytest.raises(StoreRefused) as caught:
        raised(error)
    assert caught.value is error
