"""demo: a small web shop with visitors, to try Redmeter on."""

import shlex
import signal
from typing import Annotated

import typer

from redmeter.cli import output
from redmeter.cli.app import USAGE, Url, again, called, command, fail
from redmeter.demo.running import PREFIX, Demo, DemoFailed, remove

#: Commands to try, and what each shows.
_NEXT = (
    ("series hits -p 1h", "five days of requests"),
    ("top http_requests --by route -p 1h", "the busiest routes"),
    ("top http_request_seconds --by route --order p95", "the slowest routes"),
    ("top http_request_db_ratio --by route --order mean", "those that wait for the database"),
    ("top db_query_seconds --by statement --order total", "the statements that take most time"),
    ("top http_requests --by route --failing status=5xx", "where requests fail"),
    ("logs", "new and spiking log patterns"),
    ("summary cart_value -p 1h", "the value of carts"),
    ("top revenue_cents --by category -p 1h", "revenue by category"),
    ("doctor", "the health of the store"),
)


@command(name="demo", epilog="Examples: redmeter demo · redmeter demo --minutes 2")
def demo(
    minutes: Annotated[
        float, typer.Option("--minutes", "-m", help="How long the shop has visitors.")
    ] = 10.0,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port of the shop; 0: any free port.")
    ] = 0,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the random numbers.")] = 1,
    forget: Annotated[
        bool, typer.Option("--remove", help="Remove the data of an earlier demo, and exit.")
    ] = False,
    url: Url = None,
    prefix: Annotated[
        str, typer.Option("--prefix", help="Prefix of every key; starts with demo.")
    ] = PREFIX,
) -> None:
    """Run a small tea shop with simulated visitors, to look around.

    The shop is a real application with two workers, a background job and a database. Its visitors
    and its bank are simulated, and so are the metrics of the past five days. Halfway through there
    is a deploy: can you find its effect? The command prints the address of the dashboard.

    The data has its own prefix, and the next start removes it. Ctrl-C ends all processes.
    """
    if not 0 < minutes <= 24 * 60:
        fail(f"--minutes {minutes:g}: give more than 0, and a day at most", USAGE)
    if forget:
        output.line(f"removed: {output.many(remove(url, prefix), 'key')}")
        return
    interrupted = True
    try:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        with Demo(url, prefix, seconds=60 * minutes, port=port, seed=seed) as shop:
            output.note("storing the metrics of the past five days …")
            hits = shop.prepare()
            output.note(f"{hits:,} requests stored; the shop opens …")
            address = shop.open()
            _print_addresses(address, shop.page(), url, prefix)
            shop.run(output.note)
        interrupted = False
    except KeyboardInterrupt:
        pass
    except DemoFailed as error:
        fail(str(error), USAGE, lines=True)
    output.note(f"{'interrupted' if interrupted else 'closed'}; the data stay until the next demo")


def _print_addresses(address: str, page: str, url: str | None, prefix: str) -> None:
    output.line(f"the shop is open: {address}")
    output.line(f"its page: {page}")
    options = f" --prefix {shlex.quote(prefix)}{again(url)}"
    lines = [f"{called()} {words}{options}" for words, _ in _NEXT]
    width = max(map(len, lines))
    output.line("or in another terminal:")
    for line, (_, why) in zip(lines, _NEXT, strict=True):
        output.line(f"  {line:{width}}  # {why}")
