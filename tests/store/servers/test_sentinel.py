"""Sentinels: they say where the master is and which replicas may be read, and are asked again."""

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest
from redis.sentinel import Sentinel as TheirSentinels

from redmeter import AccessDenied, StoreUnavailable
from redmeter.store.servers import sentinel as sentinels
from support.certificates import POSSIBLE
from support.rights import SENTINEL_USER
from support.sentinels import SERVICE, Sentinel, Watched
from support.servers import free_port
from support.speaker import papers_in, speaker_of
from support.stores import OpenMeter, opened_store, total_on
from support.waiting import eventually

SECRET = "hidden-password"
#: What sentinels announce a new master on.
CHANNELS = ("+promoted-slave", "+switch-master")


# --- Where the master is -------------------------------------------------------------------


def test_what_is_counted_is_stored_at_the_master(group: Watched, open_meter: OpenMeter) -> None:
    """And read from there."""
    meter = open_meter(group.url)
    meter.count("hits", 3)
    assert (meter.total("hits"), total_on(group.master)) == (3, 3)


def test_what_is_written_at_once_is_waited_for_so_behind_sentinels(
    group: Watched, waits: list[bool], open_meter: OpenMeter
) -> None:
    """At the master; what is read is not."""
    meter = open_meter(group.url)
    meter.count("hits")
    waits.clear()
    meter.count("hits")
    assert len(waits) == 1
    assert (meter.total("hits"), len(waits)) == (2, 1)


def test_sentinels_that_do_not_answer_are_passed_over(group: Watched) -> None:
    """One that is not there, and a server that is none; the third one is asked, at once."""
    hosts = f"127.0.0.1:{free_port()},127.0.0.1:{group.master.port}"
    with opened_store(group.url.replace("://", f"://{hosts},")) as store:
        assert store.link.exchange([("PING",)]) == [b"PONG"]


def test_another_database_and_the_masters_own_password_are_those_of_the_url(
    group: Watched, open_meter: OpenMeter
) -> None:
    """The sentinels are asked without them."""
    with group.master.client() as admin:
        admin.execute_command("ACL", "SETUSER", "app", "on", f">{SECRET}", "~*", "+@all")
    try:
        meter = open_meter(group.url.replace("://", f"://app:{SECRET}@")[:-1] + "2")
        meter.count("hits")
        assert SECRET not in repr(meter)
        with group.master.client(db=2) as client:
            assert client.hget("redmeter:total:", "hits") == b"1"
    finally:
        with group.master.client() as admin:
            admin.execute_command("ACL", "DELUSER", "app")


def test_a_name_that_no_sentinel_knows_is_told_with_those_that_they_know(
    group: Watched, open_meter: OpenMeter
) -> None:
    """It is at the end of the URL."""
    meter = open_meter(group.url.replace(SERVICE, "other"), timeout=0.2)
    with pytest.raises(StoreUnavailable, match="no service named 'other', only 'figures'") as told:
        meter.count("hits")
    assert not told.value.sent
    assert "/NAME" in str(told.value)


def test_where_no_sentinel_answers_each_is_told_with_its_reason(
    group: Watched, open_meter: OpenMeter
) -> None:
    """Within the timeout, and without the password."""
    port = free_port()
    url = f"redis+sentinel://u:{SECRET}@127.0.0.1:{port}/figures?sentinel_password={SECRET}"
    with pytest.raises(StoreUnavailable, match=f"127.0.0.1:{port}: Error 111") as told:
        open_meter(url).total("hits")
    assert SECRET not in str(told.value)
    with pytest.raises(StoreUnavailable, match="is no sentinel"):
        open_meter(f"redis+sentinel://127.0.0.1:{group.master.port}/figures").total("hits")


# --- It moves ------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_master_that_was_demoted_is_left_and_all_is_stored_once(
    group: Watched, open_meter: OpenMeter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it answers is READONLY; nobody had said anything else before."""
    monkeypatch.setattr(sentinels, "LOOK_SECONDS", 3600.0)
    meter = open_meter(group.url, sync=False)
    meter.count("hits", 5)
    assert meter.flush()
    before = group.master
    now = group.fail_over()
    with before.client() as client:
        client.execute_command("REPLICAOF", "127.0.0.1", str(now.port))
        group.forget_commands()
        for _ in range(3):
            meter.count("hits")
        assert meter.flush(10)
        errors: Any = client.info("errorstats")
    assert "errorstat_READONLY" in errors
    told = meter.recorder_health()
    assert (told.stored, told.uncertain, told.losses) == (8, 0, ())
    assert (total_on(now), meter.total("hits")) == (8, 8)


@pytest.mark.slow
def test_a_master_that_goes_on_after_a_failover_is_left_within_moments(
    group: Watched, open_meter: OpenMeter
) -> None:
    """Though it answers as before: the sentinels, asked again, name another one."""
    meter = open_meter(group.url)
    meter.count("hits")
    group.wait_for_replicas()
    for sentinel in group.sentinels:
        sentinel.haste({"publish-period": 5000})  # they would tell the old one after four of these
    before = group.master
    try:
        now = group.fail_over()

        def arrived() -> bool:
            meter.count("hits")
            return total_on(now) > 1

        eventually(arrived, 10, "what is counted arrives at the new master")
        assert meter.total("hits") == total_on(now)
        with before.client() as client:
            old: Any = client.info("replication")
        assert old["role"] == "master"
    finally:
        with before.client() as client:
            client.execute_command("REPLICAOF", "127.0.0.1", str(group.master.port))


@pytest.mark.slow
def test_without_sentinels_one_goes_on_with_the_master_that_they_named(
    group: Watched, open_meter: OpenMeter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the connection that there is, and with another one where it gave no answer."""
    monkeypatch.setattr(sentinels, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(sentinels, "LATER_SECONDS", 0.0)
    meter = open_meter(group.url, timeout=0.5)
    meter.count("hits")
    master = group.master
    for sentinel in group.sentinels[:2]:
        sentinel.kill()
    group.sentinels[2].pause()
    meter.count("hits")
    master.pause()
    with pytest.raises(StoreUnavailable):
        meter.total("hits")
    master.resume()
    meter.count("hits")
    assert meter.total("hits") == 3
    group.heal()
    meter.count("hits")
    assert total_on(group.master) == 4


@pytest.mark.slow
def test_a_sentinel_client_of_the_callers_finds_the_new_master(
    group: Watched, open_meter: OpenMeter
) -> None:
    """By its own pool, which asks when a connection breaks."""
    hosts = [("127.0.0.1", sentinel.port) for sentinel in group.sentinels]
    make: Any = TheirSentinels  # has no types
    theirs = make(hosts, socket_timeout=1.0)
    client = theirs.master_for(SERVICE)
    meter = open_meter(client=client)
    meter.count("hits")
    assert SERVICE in repr(meter)
    group.wait_for_replicas()
    before = group.master
    before.kill()
    now = group.moved_from(before)
    meter.count("hits")
    assert (total_on(now), meter.total("hits")) == (2, 2)
    client.close()
    for each in theirs.sentinels:
        each.close()


# --- Who may ask, and TLS ------------------------------------------------------------------


@pytest.fixture
def lone() -> Iterator[Watched]:
    """A master and a sentinel, to be changed at will."""
    with Watched(replicas=0, sentinels=1) as made:
        yield made


def test_a_sentinels_own_user_needs_what_the_docs_say(
    lone: Watched, open_meter: OpenMeter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of it; without a password, or without a command, it is told what is missing.

    Announcements are heard by those who may subscribe; others do without.
    """
    monkeypatch.setattr(sentinels, "LOOK_SECONDS", 0.0)
    (sentinel,) = lone.sentinels
    with sentinel.client() as admin:
        name = "metrics-sentinel"
        admin.execute_command("ACL", "SETUSER", name, "on", f">{SECRET}", *SENTINEL_USER.rules)
        admin.execute_command("ACL", "SETUSER", "default", "off")
        who = f"?sentinel_username={name}&sentinel_password={SECRET}"
        for read_from in ("primary", "replica"):
            meter = open_meter(lone.url + who, read_from=read_from)
            meter.count("hits")
            assert meter.total("hits") > 0
        hears = ("+subscribe", *(f"&{channel}" for channel in CHANNELS))
        for rules, channels in ((("resetchannels",), 0), (hears, len(CHANNELS))):
            admin.execute_command("ACL", "SETUSER", name, *rules)
            meter = open_meter(lone.url + who)
            for _ in range(3):
                meter.count("hits")
            assert sum(int(each["sub"]) for each in admin.client_list()) == channels
            meter.close()
        for asked, text in (("", "Authentication"), (who[:-1], "WRONGPASS|invalid username")):
            with pytest.raises(AccessDenied, match="sentinel_password") as denied:
                open_meter(lone.url + asked).count("hits")
            assert SECRET[:-1] not in str(denied.value)
            denied.match(text)
        for rule in SENTINEL_USER.commands:
            made = ("ACL", "SETUSER", name, "reset", "on", f">{SECRET}")
            admin.execute_command(*made, *SENTINEL_USER.without(rule).rules)
            with pytest.raises(AccessDenied, match="sentinel_username"):
                open_meter(lone.url + who, read_from="replica").total("hits")
        admin.execute_command("ACL", "SETUSER", "default", "on")


@pytest.mark.slow
@pytest.mark.skipif(not POSSIBLE, reason="there is no openssl to make certificates")
def test_by_tls_sentinels_and_master_are_verified(
    tmp_path_factory: pytest.TempPathFactory, open_meter: OpenMeter
) -> None:
    """With a CA of their own, that has to be known."""
    papers = papers_in(tmp_path_factory.mktemp("papers"))
    speaker = speaker_of("redis-7.2", papers)
    port = free_port()
    lines = (
        *(f"tls-port {port}", "tls-replication yes", "tls-auth-clients no"),
        *(f"tls-cert-file {papers.good.file}", f"tls-key-file {papers.good.key}"),
        f"tls-ca-cert-file {papers.ca}",
    )
    with speaker.server, Sentinel("redis-7.2", speaker.port, lines=lines):
        url = f"rediss+sentinel://127.0.0.1:{port}/{SERVICE}"
        meter = open_meter(f"{url}?ssl_ca_certs={papers.ca}")
        meter.count("hits")
        assert total_on(speaker.server) == 1
        known = f"{url}?ssl_ca_certs={papers.ca}"
        for wrong, fix in (
            (url, "set ssl_ca_certs to its file"),
            (url.replace("rediss", "redis"), "If it wants TLS: rediss"),
        ):
            with pytest.raises(StoreUnavailable, match=fix):
                open_meter(wrong, timeout=1.0).count("hits")
        speaker.show(papers.renamed)
        with pytest.raises(StoreUnavailable, match="a name that the server's certificate is for"):
            open_meter(known, timeout=5.0).count("hits")


@pytest.mark.slow
@pytest.mark.skipif(not POSSIBLE, reason="there is no openssl to make certificates")
@pytest.mark.parametrize("picky", ["sentinel", "master"])
def test_by_tls_a_certificate_of_ours_that_has_expired_is_named(
    tmp_path_factory: pytest.TempPathFactory, open_meter: OpenMeter, picky: str
) -> None:
    """Whether the sentinel or the master refuses it."""
    papers = papers_in(tmp_path_factory.mktemp("papers"))
    speaker = speaker_of("redis-7.2", papers)
    port = free_port()
    lines = (
        *(f"tls-port {port}", "tls-replication yes"),
        f"tls-auth-clients {'yes' if picky == 'sentinel' else 'no'}",
        *(f"tls-cert-file {papers.good.file}", f"tls-key-file {papers.good.key}"),
        f"tls-ca-cert-file {papers.ca}",
    )
    with speaker.server, Sentinel("redis-7.2", speaker.port, lines=lines):
        speaker.set(tls_auth_clients="yes" if picky == "master" else "no")
        for ours, said in ((papers.good, ""), (papers.expired, "ssl_certfile has expired")):
            url = f"rediss+sentinel://127.0.0.1:{port}/{SERVICE}?ssl_ca_certs={papers.ca}"
            url += f"&ssl_certfile={ours.file}&ssl_keyfile={ours.key}"
            meter = open_meter(url, timeout=2.0)
            with pytest.raises(StoreUnavailable, match=said) if said else nullcontext():
                meter.count("hits")
        assert total_on(speaker.server) == 1


def test_nothing_is_connected_to_before_the_first_use() -> None:
    """Nor is a name looked up."""
    url = "redis+sentinel://no.such.host.invalid/figures"
    with opened_store(url, read_from="replica") as store:
        assert store.location == "redis+sentinel://no.such.host.invalid:26379/figures/0"
