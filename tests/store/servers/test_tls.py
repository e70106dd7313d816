"""Over TLS: what is verified, how it is switched off, and what is said where it fails.

On real servers that speak TLS, with certificates made here. The Valkey of the other tests was
built without it.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis
from redis.connection import URL_QUERY_ARGUMENT_PARSERS

from redmeter import InvalidSetting, Meter, RedmeterError, StoreUnavailable
from redmeter.dashboard import Dashboard, app
from redmeter.health import doctor
from redmeter.maintenance import cleaning
from redmeter.store.servers import urls
from support.asking import asking
from support.certificates import POSSIBLE
from support.commands import Home
from support.speaker import KEYWORD, Papers, Speaker, papers_in, speaker_of
from support.stores import opened_store
from support.waiting import eventually

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not POSSIBLE, reason="there is no openssl to make certificates"),
]

#: Those that can be had with TLS compiled in.
SPEAKERS = (
    "redis-7.2",
    *(pytest.param(name, marks=pytest.mark.nightly) for name in ("redis-7.0", "redis-7.4")),
)
TIMEOUT = 1.0
SECRET = "hidden-password"


@pytest.fixture(scope="session")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Papers:
    """Made once."""
    return papers_in(tmp_path_factory.mktemp("papers"))


@pytest.fixture(scope="module", params=SPEAKERS)
def any_started(request: pytest.FixtureRequest, papers: Papers) -> Iterator[Speaker]:
    """One of each, for all tests of this file."""
    yield from started(request.param, papers)


@pytest.fixture(scope="module")
def one_started(papers: Papers) -> Iterator[Speaker]:
    """One that comes out of a wheel."""
    yield from started("redis-7.2", papers)


def started(name: str, papers: Papers) -> Iterator[Speaker]:
    """Start a server, and end it."""
    speaker = speaker_of(name, papers)
    with speaker.server:
        speaker.server.start()
        yield speaker


@pytest.fixture
def any_speaker(any_started: Speaker) -> Speaker:
    """As new."""
    return renewed(any_started)


@pytest.fixture
def speaker(one_started: Speaker) -> Speaker:
    """As new."""
    return renewed(one_started)


def renewed(speaker: Speaker) -> Speaker:
    """Empty it, and have it show what is right."""
    if not speaker.server.running:
        speaker.server.start()
    speaker.show(speaker.papers.good)
    speaker.set(tls_auth_clients="no", tls_protocols="TLSv1.2 TLSv1.3")
    with speaker.server.client() as admin:
        admin.flushall()
    return speaker


def read(url: str) -> Exception | None:
    """Ask the store; return what went wrong."""
    with opened_store(url, timeout=TIMEOUT) as store:
        try:
            store.read()
        except RedmeterError as error:
            return error
    return None


# --- What works ----------------------------------------------------------------------------


def test_everything_works_over_tls(any_speaker: Speaker, tmp_path: Path) -> None:
    """Recorder, reader, cleaner, doctor, page and command, with the file of the CA alone."""
    url = any_speaker.good
    with Meter(url) as meter:
        meter.count("hits", 3)
        meter.observe("took", 0.5)
        meter.log("shop", "paid %s", 12)
        assert meter.flush()
        assert (meter.recorder_health().stored, meter.recorder_health().troubles) == (5, {})
        assert meter.total("hits") == 3
        assert meter.summary("took", precision=60).count == 1
        dashboard = Dashboard(meter, access="open")
        with asking(dashboard) as client:
            for path in ("/api/overview", "/api/doctor", "/api/top?name=hits"):
                assert client.get(path).status_code == 200
        dashboard.close()
    with opened_store(url) as store:
        assert cleaning.clean(store).complete
        assert doctor.examine(store).location == f"rediss://127.0.0.1:{any_speaker.port}/0"
    home = Home(tmp_path, url)
    try:
        assert home.invoke("series", "hits", "-p", "1m").code == 0
        assert home.invoke("doctor").code == 0
    finally:
        home.close()


def test_a_connection_by_tls_is_used_again(speaker: Speaker) -> None:
    """What a server sends of itself after the handshake is not taken for its end."""
    with opened_store(speaker.good) as store, speaker.server.client() as admin:
        before = admin.info("stats")["total_connections_received"]
        for _ in range(20):
            store.read()
        assert admin.info("stats")["total_connections_received"] == before + 1


def test_a_server_may_want_a_certificate_of_ours(speaker: Speaker, papers: Papers) -> None:
    """Its files are named in the URL; a key may be encrypted."""
    speaker.set(tls_auth_clients="yes")
    files: dict[str, object] = {"ssl_certfile": papers.good.file, "ssl_keyfile": papers.good.key}
    assert read(speaker.url(ca=papers.ca, options=files)) is None
    files = {"ssl_certfile": papers.locked.file, "ssl_keyfile": papers.locked.key}
    assert read(speaker.url(ca=papers.ca, options=files | {"ssl_password": KEYWORD})) is None
    error = read(speaker.url(ca=papers.ca))
    assert isinstance(error, StoreUnavailable)
    assert "may want a certificate of yours: ssl_certfile" in str(error)


def test_a_key_may_be_in_the_file_of_the_certificate(speaker: Speaker, papers: Papers) -> None:
    """Then ssl_keyfile is not needed."""
    speaker.set(tls_auth_clients="yes")
    both = papers.folder / "both.pem"
    both.write_bytes(papers.good.file.read_bytes() + papers.good.key.read_bytes())
    assert read(speaker.url(ca=papers.ca, options={"ssl_certfile": both})) is None


@pytest.mark.parametrize("certificate", ["good", "expired", "renamed"])
def test_verifying_is_switched_off_by_one_option_alone(
    speaker: Speaker, papers: Papers, certificate: str
) -> None:
    """Whatever the server shows; without the host's name by another, which leaves the rest."""
    speaker.show(getattr(papers, certificate))
    assert read(speaker.url(options={"ssl_cert_reqs": "none"})) is None
    named = read(speaker.url(ca=papers.ca, options={"ssl_check_hostname": "no"}))
    assert (named is None) == (certificate != "expired")
    assert isinstance(read(speaker.url(options={"ssl_check_hostname": "no"})), StoreUnavailable)
    assert isinstance(read(speaker.url(options={"ssl_cert_reqs": "optional"})), StoreUnavailable)


def test_all_is_verified_where_the_url_does_not_say_otherwise() -> None:
    """Set by us, whatever the client's own defaults are; and only over TLS."""
    options = urls.verified(urls.parse_target("rediss://h").options)
    assert (options["ssl_cert_reqs"], options["ssl_check_hostname"]) == ("required", True)
    assert not any(
        name.startswith("ssl") for name in urls.verified(urls.parse_target("redis://h").options)
    )
    connection: Any = redis.ConnectionPool(**options).make_connection()
    assert (connection.cert_reqs, connection.check_hostname) == (2, True)


# --- What does not -------------------------------------------------------------------------

#: What is wrong -> the certificate that is shown, the CA that is known, and what mends it.
WRONG = {
    "nobody knows the CA": ("good", None, "set ssl_ca_certs to its file"),
    "another CA": ("good", "other_ca", "set ssl_ca_certs to its file"),
    "expired": ("expired", "ca", "a new certificate, or the clock of this machine is wrong"),
    "another host": ("renamed", "ca", "a name that the server's certificate is for"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_cannot_be_verified_is_an_error_that_names_what_mends_it(
    any_speaker: Speaker, papers: Papers, wrong: str
) -> None:
    """And nothing was sent."""
    shown, known, fix = WRONG[wrong]
    any_speaker.show(getattr(papers, shown))
    error = read(any_speaker.url(ca=getattr(papers, known) if known else None))
    assert isinstance(error, StoreUnavailable)
    assert (error.sent, error.location) == (False, f"rediss://127.0.0.1:{any_speaker.port}/0")
    assert "certificate verify failed" in str(error)
    assert fix in str(error)


#: What is wrong about a certificate of ours -> what is said.
REFUSED = {
    "expired": "alert certificate expired.* renew it",
    "foreign": "alert unknown ca.* does not know the CA of the certificate in ssl_certfile",
}


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
@pytest.mark.parametrize("wrong", REFUSED)
def test_a_certificate_of_ours_that_is_refused_is_told_from_one_that_lacks(
    any_speaker: Speaker, papers: Papers, wrong: str, version: str
) -> None:
    """Each time: by TLS 1.3 it is refused while we already send."""
    any_speaker.set(tls_auth_clients="yes", tls_protocols=version)
    ours = getattr(papers, wrong)
    files: dict[str, object] = {"ssl_certfile": ours.file, "ssl_keyfile": ours.key}
    for _ in range(5):
        error = read(any_speaker.url(ca=papers.ca, options=files))
        assert isinstance(error, StoreUnavailable)
        assert re.search(REFUSED[wrong], str(error)), error
        assert not error.sent
        lacking = read(any_speaker.url(ca=papers.ca))
        assert isinstance(lacking, StoreUnavailable)
        assert lacking.fix.startswith("the server may want a certificate of yours")
        assert "alert" in lacking.reason


def test_with_a_client_of_ones_own_the_certificate_is_named_too(
    speaker: Speaker, papers: Papers
) -> None:
    """Its connections are its own, so that the reason may be lost."""
    speaker.set(tls_auth_clients="yes")
    with (
        redis.Redis(
            port=speaker.port,
            host="127.0.0.1",
            ssl=True,
            ssl_ca_certs=str(papers.ca),
            ssl_certfile=str(papers.expired.file),
            ssl_keyfile=str(papers.expired.key),
        ) as client,
        Meter(client=client) as meter,
        pytest.raises(StoreUnavailable, match=r"ssl_certfile.* expired"),
    ):
        meter.total("hits")


@pytest.mark.skipif(
    "ssl_min_version" not in URL_QUERY_ARGUMENT_PARSERS, reason="redis-py reads no ssl_min_version"
)
def test_a_version_of_tls_that_is_too_low_is_told(any_speaker: Speaker, papers: Papers) -> None:
    """On either side."""
    any_speaker.set(tls_protocols="TLSv1.2")
    error = read(any_speaker.url(ca=papers.ca, options={"ssl_min_version": 772}))
    assert isinstance(error, StoreUnavailable)
    assert "No version of TLS is allowed on both sides" in str(error)
    assert read(any_speaker.url(ca=papers.ca, options={"ssl_min_version": 771})) is None


def test_who_speaks_tls_to_a_plain_port_is_told(any_speaker: Speaker) -> None:
    """The server waits for more, and says nothing."""
    error = read(any_speaker.url(port=any_speaker.server.port))
    assert isinstance(error, StoreUnavailable)
    assert str(error).endswith("does it speak TLS at this port? If not: redis://")


def test_who_speaks_plainly_to_a_port_for_tls_is_told(any_speaker: Speaker) -> None:
    """The server breaks off."""
    error = read(any_speaker.url(scheme="redis"))
    assert isinstance(error, StoreUnavailable)
    assert str(error).endswith("If it wants TLS: rediss://")


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        (
            "[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1006)",
            "no TLS is spoken there",
        ),
        ("[SSL] record layer failure (_ssl.c:1006)", "no TLS is spoken there"),
        (
            "[SSL: TLSV13_ALERT_CERTIFICATE_REQUIRED] tlsv13 alert certificate required",
            "certificate of yours",
        ),
        (
            "[SSL: SSL/TLS_ALERT_CERTIFICATE_EXPIRED] ssl/tls alert certificate expired",
            "the certificate in ssl_certfile has expired",
        ),
        ("ssl/tls alert bad certificate (_ssl.c:2580)", "refuses the certificate in ssl_certfile"),
        ("[SSL: UNSUPPORTED_PROTOCOL] unsupported protocol", "no version of TLS"),
        ("[SSL: NO_PROTOCOLS_AVAILABLE] no protocols available", "no version of TLS"),
        ("EOF occurred in violation of protocol (_ssl.c:2427)", "if they do, it may have expired"),
        ("certificate verify failed: certificate is not yet valid", "the clock of this machine"),
        (
            "certificate verify failed: Hostname mismatch, certificate is not valid for 'h'.",
            "a name that",
        ),
        ("certificate verify failed: Missing Authority Key Identifier", "have to keep RFC 5280"),
        ("certificate verify failed: unsuitable certificate purpose", "another certificate"),
    ],
)
def test_other_versions_of_python_and_openssl_say_it_in_other_words(text: str, fix: str) -> None:
    """Which are known too."""
    assert fix in urls.advice("rediss://h:6379/0", text)


@pytest.mark.parametrize("text", ["Connection reset by peer", "Connection closed by server."])
def test_a_connection_that_breaks_off_may_have_lacked_a_certificate(text: str) -> None:
    """Or anything else: it is asked, not said."""
    assert "It may want a certificate of yours" in urls.advice("rediss://h:6379/0", text)
    assert "If it wants TLS: rediss://" in urls.advice("redis://h:6379/0", text)


@pytest.mark.parametrize("kind", ["cluster", "sentinel"])
def test_the_url_that_may_be_right_is_of_the_same_kind(kind: str) -> None:
    """Of a cluster, or of sentinels: the location of a node says which."""
    secure = f"127.0.0.1:7000 (a node of rediss+{kind}://h:1)"
    silent = urls.advice(secure, "Timeout connecting to server")
    assert silent.endswith(f"If not: redis+{kind}://")
    assert f": redis+{kind}:// in place of rediss+{kind}://, or" in urls.advice(
        secure, "[SSL: WRONG_VERSION_NUMBER] wrong version number"
    )
    broken = urls.advice(f"redis+{kind}://h:1", "Connection reset by peer")
    assert broken.endswith(f"If it wants TLS: rediss+{kind}://")


def test_other_trouble_is_none_of_tls() -> None:
    """A refused connection is no more than that, and a socket has no TLS."""
    assert (
        urls.advice("rediss://h:6379/0", "Error 111 connecting to h:6379. Connection refused.")
        == ""
    )
    assert urls.advice("unix:///s", "Connection reset by peer") == ""


#: Options -> what is said.
UNUSABLE = {
    "ssl_ca_certs=/no/where": r"ssl_ca_certs: '/no/where' cannot be read: No such file",
    "ssl_ca_path=/no/where": r"ssl_ca_path: '/no/where' cannot be read: No such file",
    "ssl_ca_certs={good.key}": r"ssl_ca_…: no certificates of a CA",
    "ssl_ca_data=nonsense": r"ssl_ca_…: no certificates of a CA",
    "ssl_keyfile={good.key}": r"ssl_keyfile needs ssl_certfile",
    "ssl_certfile={good.file}": r"ssl_certfile: '.*good.crt' holds no key: .* as ssl_keyfile",
    "ssl_certfile={ca}&ssl_keyfile={good.file}": r"no certificate and the key that belongs to it",
    "ssl_certfile={good.file}&ssl_keyfile={renamed.key}": r"\(key values mismatch\)",
    "ssl_certfile={locked.file}&ssl_keyfile={locked.key}": r"encrypted key is ssl_password",
    "ssl_certfile={locked.file}&ssl_keyfile={locked.key}&ssl_password=no": r"is ssl_password",
    "ssl_ciphers=nonsense": r"ssl_ciphers: OpenSSL knows no such ciphers",
    "ssl_cert_reqs=maybe": r"ssl_cert_reqs is one of required, optional, none",
    "ssl_cert_reqs=None": r"ssl_cert_reqs is one of required, optional, none",
}


if "ssl_min_version" in URL_QUERY_ARGUMENT_PARSERS:  # else the client would take it for text
    UNUSABLE |= {
        "ssl_min_version=5": r"ssl_min_version is a number: 771 for TLS 1.2, 772 for 1.3",
        "ssl_min_version=99999999999": r"ssl_min_version is a number",
    }


@pytest.mark.parametrize("options", UNUSABLE)
def test_files_that_cannot_be_used_are_named_before_anything_is_sent(
    options: str, papers: Papers
) -> None:
    """Also where OpenSSL would ask for a password, at a terminal that nobody watches."""
    url = f"rediss://app:{SECRET}@127.0.0.1:1/0?" + options.format(**papers._asdict())
    error = read(url)
    assert isinstance(error, InvalidSetting)
    assert re.search(UNUSABLE[options], str(error))
    assert SECRET not in str(error)


# --- The page ------------------------------------------------------------------------------


def test_a_certificate_that_expires_under_the_page_is_named(
    speaker: Speaker, papers: Papers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By each of its answers, by the command and in the log, until there is a new one."""
    monkeypatch.setattr(app, "KEEP", 0.01)
    url = speaker.good.replace("://", f"://default:{SECRET}@")
    with speaker.server.client() as admin:
        admin.execute_command("ACL", "SETUSER", "default", f">{SECRET}", "nopass")
    paths = ("/api/overview", "/api/doctor", "/api/series?name=hits", "/api/messages", "/api/top")

    def statuses(client: httpx.Client) -> set[int]:
        return {client.get(path).status_code for path in paths}

    dashboard = Dashboard(url, access="open")
    home = Home(tmp_path, url)
    try:
        with asking(dashboard) as client:
            assert statuses(client) == {200}
            speaker.show(papers.expired)
            with speaker.server.client() as admin:
                admin.execute_command("CLIENT", "KILL", "TYPE", "normal")
            eventually(lambda: statuses(client) == {503}, 10.0)
            for path in paths:
                answer = client.get(path)
                error = answer.json()["error"]
                place = f"the store at rediss://127.0.0.1:{speaker.port}/0 does not answer: "
                assert error["code"] == "store-unavailable"
                assert error["message"].startswith(place)
                assert "certificate has expired" in error["message"]
                assert error["fix"].startswith("the server needs a new certificate, or the clock")
                assert SECRET not in answer.text
            for command in ("names", "doctor"):
                done = home.invoke(command)
                assert done.code == 3
                assert "certificate has expired" in done.err
                assert "The server needs a new certificate" in done.err
                assert SECRET not in done.err
            speaker.show(papers.good)
            eventually(lambda: statuses(client) == {200}, 10.0)
    finally:
        dashboard.close()
        home.close()


# --- The recorder --------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", ["expired", "renamed"])
def test_a_recorder_counts_what_is_wrong_and_loses_nothing(
    speaker: Speaker, papers: Papers, wrong: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It goes on by itself once the server shows another certificate."""
    speaker.show(getattr(papers, wrong))
    with Meter(speaker.good, timeout=TIMEOUT) as meter:
        meter.count("hits", 7)
        eventually(lambda: meter.recorder_health().troubles, 10.0, "it has failed")
        assert not meter.flush(timeout=0.1)
        told = meter.recorder_health()
        assert (told.stored, told.buffered) == (0, 7)
        assert sum(told.troubles.values()) >= 1
        for said in (told.last_trouble, caplog.text):
            assert "certificate verify failed" in said
            assert str(WRONG["expired" if wrong == "expired" else "another host"][2]) in said
        speaker.show(papers.good)
        meter.count("hits", 5)
        eventually(lambda: meter.flush(timeout=2.0), 10.0)
        told = meter.recorder_health()
        assert (told.stored, told.buffered, told.dropped, told.uncertain) == (12, 0, 0, 0)
        assert meter.total("hits") == 12


@pytest.mark.parametrize("scheme", [pytest.param("redis", marks=pytest.mark.nightly), "rediss"])
def test_a_recorder_goes_on_once_the_server_speaks_as_it_does(papers: Papers, scheme: str) -> None:
    """TLS where it does not, and the other way round; at the same port."""
    speaker = speaker_of("redis-7.2", papers)
    with speaker.server as server:
        server.start()
        ports = {"redis": server.port, "rediss": speaker.port}
        ca = papers.ca if scheme == "rediss" else None
        at = ports["redis" if scheme == "rediss" else "rediss"]
        with Meter(speaker.url(scheme=scheme, port=at, ca=ca), timeout=TIMEOUT) as meter:
            meter.count("hits", 7)
            eventually(lambda: meter.recorder_health().troubles, 10.0, "it has failed")
            assert not meter.flush(timeout=0.1)
            told = meter.recorder_health()
            assert (told.stored, told.buffered, told.uncertain) == (0, 7, 0)
            assert "TLS" in told.last_trouble
            plain, secure = (0, at) if scheme == "rediss" else (at, 0)
            server.config += ["--port", str(plain), "--tls-port", str(secure)]
            server.restart()
            meter.count("hits", 5)
            eventually(lambda: meter.flush(timeout=2.0), 10.0)
            told = meter.recorder_health()
            assert (told.stored, told.dropped, told.uncertain) == (12, 0, 0)
            assert meter.total("hits") == 12


def test_a_file_that_comes_late_loses_nothing(speaker: Speaker, papers: Papers) -> None:
    """As where a secret is mounted after the process has started."""
    late = papers.folder / "late.crt"
    late.unlink(missing_ok=True)
    with Meter(speaker.url(ca=late), timeout=TIMEOUT) as meter:
        meter.count("hits", 7)
        eventually(lambda: meter.recorder_health().troubles, 10.0, "it has failed")
        assert not meter.flush(timeout=0.1)
        told = meter.recorder_health()
        assert (told.stored, told.buffered) == (0, 7)
        assert "cannot be read: No such file" in told.last_trouble
        late.write_bytes(papers.ca.read_bytes())
        eventually(lambda: meter.flush(timeout=2.0), 10.0)
        assert (meter.total("hits"), meter.recorder_health().uncertain) == (7, 0)


# --- What is not said ----------------------------------------------------------------------


@pytest.mark.parametrize("shown", ["good", "expired", "renamed"])
def test_no_password_and_no_key_is_in_an_error(
    speaker: Speaker, papers: Papers, shown: str, tmp_path: Path
) -> None:
    """Neither of the library nor of the page nor of the command."""
    speaker.show(getattr(papers, shown))
    files = {"ssl_certfile": papers.locked.file, "ssl_keyfile": papers.locked.key}
    options: dict[str, object] = {**files, "ssl_password": KEYWORD}
    # Of a user that is not there: with the right certificate the server denies it.
    url = speaker.url(ca=papers.ca, options=options).replace("://", f"://app:{SECRET}@")
    secrets = [SECRET, KEYWORD, *papers.locked.key.read_text().splitlines()[1:-1]]
    said = [str(read(url))]
    dashboard = Dashboard(url, access="open")
    with asking(dashboard) as client:
        answer = client.get("/api/overview")
        assert answer.status_code == 503
        said.append(answer.text)
    dashboard.close()
    home = Home(tmp_path, url)
    try:
        done = home.invoke("names")
        assert done.code == 3
        said += [done.out, done.err]
    finally:
        home.close()
    assert not [secret for secret in secrets for text in said if secret in text]
    assert any("certificate" in text or "access denied" in text for text in said)
