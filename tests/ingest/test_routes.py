"""Routes: paths folded into few label values that do no harm."""

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redmeter.ingest.routes import ROUTE_BYTES, Routes, fold

UUID = "550e8400-e29b-41d4-a716-446655440000"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"

#: Pieces that meet the rules of folding, also in unhappy combinations.
PIECES = [
    "/", "//", ".", "-", "_", ";", "%", "%2", "%25", "%2F", "%3B", "%7B", "%C3%A9", "%E9", "{", "}",
    "{id}", "{token}", "{hex}", "{x}", "…", "é", "e\u0301", "\u037e", "\u202e", "\udcff", "\x00",
    "点击", "12", "2015", "/2015/05", "/17", "2015-05-17", "Mar", "deadbeef1", "abc",
    "a1b2c3d4e5f6", "Z9y8X7w6V5u4T3s2R1q0", "ada@example.org", "@", UUID, ".html", " ", "+",
    "?", "#",
]  # fmt: skip
paths = st.lists(st.sampled_from(PIECES) | st.text(st.characters(), max_size=4), max_size=40).map(
    lambda pieces: "/" + "".join(pieces)
)


@pytest.mark.parametrize(
    ("path", "route"),
    [
        ("/", "/"),
        ("/users/4711/orders/9", "/users/{id}/orders/{id}"),
        ("/blog/181.html", "/blog/{id}.html"),
        (f"/cart/{UUID}/items", "/cart/{uuid}/items"),
        (f"/cart/{UUID.upper()}", "/cart/{uuid}"),
        ("/static/app.3f2a9c1b7d.js", "/static/app.{hex}.js"),
        ("/commit/9fceb02d0ae598e95dc970b74767f19372d61af8", "/commit/{hex}"),
        ("/blog/2015/05/17/tea", "/blog/{date}/tea"),
        ("/blog/2015/5/", "/blog/{date}/"),
        ("/blog/2007/Mar", "/blog/{date}"),
        ("/report-2015-05-17.pdf", "/report-{date}.pdf"),
        ("/u/ada@example.org", "/u/{token}"),
        ("/u/ada%40example.org/edit", "/u/{token}/edit"),
        ("/npm/react@18.2.0", "/npm/react@18.2.0"),
        ("/reset/Z9y8X7w6V5u4T3s2R1q0", "/reset/{token}"),
        (f"/verify/{JWT}", "/verify/{token}.{token}.{token}"),
        ("/invite/aB3-dE5_fG7-hI9_jK1-lM2", "/invite/{token}"),
        ("/images/web/2009/banner.png", "/images/web/{id}/banner.png"),
        ("/files/logstash-1.3.2-monolithic.jar", "/files/logstash-1.3.2-monolithic.jar"),
        ("/ec2-reserved-vs-ondemand.html", "/ec2-reserved-vs-ondemand.html"),
        ("/tags/barcamprochester3", "/tags/barcamprochester3"),
        ("/facade/deadbeef", "/facade/deadbeef"),
        ("/v1/a_b-c.d~e", "/v1/a_b-c.d~e"),
        ("//favicon.ico", "/favicon.ico"),
        ("/a///b//", "/a/b/"),
        ("/a?password=secret", "/a"),
        ("/a#secret", "/a"),
        ("/a;jsessionid=secret/b;c", "/a/b"),
        ("/a b", "/a%20b"),
        ("/a%20b", "/a%20b"),
        ("/a%2fb", "/a%2Fb"),
        ("/a%3Fb%23c%3Bd", "/a%3Fb%23c%3Bd"),
        ("/100%", "/100%25"),
        ("/100%25", "/100%25"),
        ("/%2541", "/%2541"),
        ("/%7Eada", "/~ada"),
        ("/%E7%82%B9%E5%87%BB", "/点击"),
        ("/点击", "/点击"),
        ("/the\u0301", "/th\u00e9"),
        ("/%E9", "/\ufffd"),
        ("/\udce9", "/\ufffd"),
        ("/a%00b\x1b[31m", "/a\ufffdb\ufffd[31m"),
        ("/%0d%0a\u2028", "/\ufffd\ufffd\ufffd"),
        ("/\u202etxt.exe", "/\ufffdtxt.exe"),
        ("/{secret}/{id}s", "/%7Bsecret%7D/{id}s"),
        ("/%7Bid%7D", "/%7Bid%7D"),
        ("/{{id}}", "/%7B{id}%7D"),
        ("/deadbeef1…", "/deadbeef1…"),  # cut off: what it was cannot be known
        ("/Z9y8X7w6V5u4T3s2R1q0…", "/Z9y8X7w6V5u4T3s2R1q0…"),
        ("/aB3-dE5_fG7-hI9_jK1-lM2…", "/aB3-dE5_fG7-hI9_jK1-lM2…"),
        ("*", "*"),
        ("(invalid)", "(invalid)"),
        ("", "(invalid)"),
        ("users/1", "(invalid)"),
    ],
)
def test_a_path_is_folded_into_its_route(path: str, route: str) -> None:
    """What differs from request to request becomes the name of its kind; names stay."""
    assert fold(path) == route


@given(paths | st.text(st.characters()))
def test_folding_twice_is_folding_once(path: str) -> None:
    """A route is its own route, so it can be folded again anywhere."""
    assert fold(fold(path)) == fold(path)


@given(paths | st.text(st.characters()))
def test_a_route_is_always_a_valid_label_value(path: str) -> None:
    """Visible characters only, valid UTF-8, bounded, in one normal form."""
    route = fold(path)
    assert route.isprintable()
    assert " " not in route
    assert len(route.encode()) <= ROUTE_BYTES
    assert unicodedata.is_normalized("NFC", route)
    assert route.startswith("/") or route in ("*", "(invalid)")
    assert "//" not in route


@given(st.integers(0, 10**30), st.uuids())
def test_ids_do_not_make_routes(number: int, uuid: object) -> None:
    """However many there are, they are one route."""
    assert fold(f"/a/{number}/b/{uuid}") == "/a/{id}/b/{uuid}"


@given(st.text("ab/é点%41{}", min_size=121, max_size=400))
def test_a_long_route_is_cut_visibly_between_characters(text: str) -> None:
    """The cut shows as … and splits neither a character nor an escape nor a placeholder."""
    route = fold("/" + "long-name" * 14 + text)
    assert route.endswith("…")
    assert ROUTE_BYTES - 8 <= len(route.encode()) <= ROUTE_BYTES
    assert "\ufffd" not in route


def test_a_cut_never_splits_an_escape_or_a_placeholder() -> None:
    """They are left out whole."""
    for length in range(100, 125):
        for unit in ("%20", "/{id}"):
            route = fold("/" + "-" * length + unit * 20)
            assert route.replace(unit.strip("/"), "").strip("/-") == "…"


@pytest.mark.parametrize(
    "piece", ["a", "1", "a1", "/", "/1", "-", "%", "@", "a@", ".", "{id}", "é"]
)
def test_a_path_of_a_megabyte_costs_what_a_short_one_does(piece: str) -> None:
    """Only its beginning is read, and no rule goes back and forth over it."""

    def cost(length: int) -> float:
        path = "/" + piece * (length // len(piece))
        times = []
        for _ in range(5):
            began = time.process_time()
            fold(path)
            times.append(time.process_time() - began)
        return min(times)

    assert cost(1_000_000) < 20 * cost(5_000)


def test_routes_beyond_the_limit_are_other() -> None:
    """The first ones keep their names, each later one is counted as overflow."""
    routes = Routes(limit=2)
    assert [routes.route(p) for p in ("/a/1", "/b", "/c", "/a/2", "/c", "/d", "/b")] == [
        "/a/{id}", "/b", "(other)", "/a/{id}", "(other)", "(other)", "/b",
    ]  # fmt: skip
    assert routes.overflowed == 3


def test_a_limit_of_nothing_makes_everything_other() -> None:
    """Zero is a limit like any other; less is a mistake."""
    routes = Routes(limit=0)
    assert routes.route("/") == "(other)"
    assert routes.overflowed == 1
    with pytest.raises(ValueError, match="limit is -1"):
        Routes(limit=-1)


def test_no_path_can_pretend_to_be_other() -> None:
    """Only the overflow is (other)."""
    routes = Routes()
    assert routes.route("(other)") == "(invalid)"
    assert routes.overflowed == 0


def test_a_flood_of_paths_keeps_the_memory_bounded() -> None:
    """The cache forgets, the routes do not, and the count stays right."""
    routes = Routes(limit=10)
    for number in range(20_000):
        routes.route(f"/flood{number}")
    assert routes.route("/flood9") == "/flood9"
    assert routes.overflowed == 19_990
    assert len(routes._cache) <= 4096
    routes.route("/" + "x" * 100_000)
    assert max(map(len, routes._cache)) <= 512
