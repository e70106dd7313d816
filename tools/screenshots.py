#!/usr/bin/env python3
"""Take pictures of the page's main views: tools/screenshots.py [FOLDER] [ADDRESS].

They go to FOLDER, by default .cache/screenshots. Without the address of a page, it serves one:
the demo's past in a store of its own, which is removed afterwards. `make pictures` takes those of
the docs: tools/pictures.py
"""

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[1]
sys.path += [str(ROOT / "src"), str(ROOT / "tests")]

from redmeter import Meter  # noqa: E402
from redmeter import store as stores  # noqa: E402
from redmeter.alerting.evaluator import Evaluator  # noqa: E402
from redmeter.alerting.rules_file import parse_rules  # noqa: E402
from redmeter.demo import past  # noqa: E402
from redmeter.store import embedded  # noqa: E402
from support import chromium  # noqa: E402
from support.stores import opened_store  # noqa: E402

#: Name -> query, width, theme.
VIEWS = {
    "overview": ("?range=60", 1280, "light"),
    "overview-dark": ("?range=3600", 1280, "dark"),
    "overview-narrow": ("?range=60", 360, "light"),
    "series": ("?view=series&name=hits&range=3600", 1280, "light"),
    "percentiles": ("?view=series&name=http_request_seconds&range=60", 1280, "dark"),
    "routes": ("?view=routes&range=3600", 1280, "light"),
    "messages": ("?view=messages", 1280, "light"),
    "metrics": ("?view=metrics&range=60", 1280, "dark"),
    "alerts": ("?view=alerts", 1280, "dark"),
    "health": ("?view=health", 1280, "light"),
    "route": ("?view=route&name=/checkout&range=60", 1280, "light"),
    "database-dark": ("?view=database&range=60", 1280, "dark"),
    "jobs-narrow": ("?view=jobs&range=60", 390, "light"),
    "task": ("?view=task&name=shop.confirm_order&range=60", 1280, "light"),
}
#: Those of the README and the docs.
README = {
    "overview": ("?range=60", 1280, "light"),
    "overview-dark": ("?range=60", 1280, "dark"),
    "explain": ("?range=60&since={since}&until={until}&explain=hits", 1280, "light"),
    "deploy": ("?range=60&mark={mark}", 1280, "light"),
    "exceptions": ("?view=exceptions", 1280, "light"),
    "route": ("?view=route&name=/checkout&range=60", 1280, "light"),
    "database": ("?view=database&range=60", 1280, "light"),
    "jobs": ("?view=jobs&range=60", 1280, "light"),
    "alerts": ("?view=alerts", 1280, "light"),
    "narrow": ("?range=60", 390, "light"),
}
#: Alerts, some of which fire over the demo's past.
ALERTS = """
[[alert]]
name = "checkout-slow"
when = "threshold"
metric = 'http_request_seconds{route="/checkout"}'
value = "p95"
above = 0.2
severity = "page"
notify = ["ops"]
[[alert]]
name = "route-errors"
when = "ratio"
metric = 'http_requests{status="5xx"}'
of = "http_requests"
by = "route"
window = "1h"
above = 0.005
notify = ["ops"]
[[alert]]
name = "error-budget"
when = "burn"
metric = "hits_failed"
of = "hits"
objective = 0.995
notify = ["ops"]
[[alert]]
name = "traffic"
when = "expected"
metric = "hits"
for = "10m"
[[alert]]
name = "payment-errors"
when = "new_pattern"
logger = "shop.payment"
[[maintenance]]
alerts = ["traffic"]
days = ["sat"]
from = "23:00"
to = "01:00"
[notify.ops]
type = "command"
command = ["true"]
"""

#: The keys of the demo.
PREFIX = "demo:"
#: When the deploy of the pictures was, Unix seconds: filling the store takes minutes.
DEPLOYED = int(time.time()) // 60 * 60 - 2_400


def charge(error: Exception) -> None:
    """Raise an error where an application would, in a file of its own."""
    code = compile("def charge(error):\n    raise error\n", "/srv/shop/payment.py", "exec")
    space: dict[str, Any] = {}
    exec(code, space)  # noqa: S102
    space["charge"](error)


@contextmanager
def stored() -> Iterator[str]:
    """Fill a store with the demo's past; yield its URL."""
    with tempfile.TemporaryDirectory(prefix="redmeter-pictures-") as folder:
        url = f"embedded://{folder}/store"
        store = stores.open(url, prefix=PREFIX)
        assert store is not None
        time.sleep(60.2 - time.time() % 60)  # so the newest complete minute is whole
        past.fill(store, 1)
        store.close()
        try:
            with Meter(url, prefix=PREFIX, sync=True) as meter:
                meter.mark("shop 2.8", at=DEPLOYED)
                for error in (KeyError("card"), ConnectionError("451 try again later")):
                    try:
                        charge(error)
                    except (KeyError, ConnectionError) as caught:
                        meter.record_exception(caught, route="/checkout")
                for number in range(40):
                    meter.log("shop.payment", "the bank refused order %d", number, severity="error")
                    meter.log("shop.stock", "only %d left of tea %d", number % 3, number)
            with opened_store(url, prefix=PREFIX) as store:
                Evaluator(store, parse_rules(ALERTS), lease=600.0).cycle()
            yield url
        finally:
            embedded.stop(Path(folder) / "store")


@contextmanager
def served() -> Iterator[str]:
    """Serve the demo's past; yield the address of the page."""
    with stored() as url:
        command = [sys.executable, "-m", "redmeter", "up", "--port", "0", "--url", url]
        up = subprocess.Popen([*command, "--prefix", PREFIX], stdout=subprocess.PIPE, text=True)
        try:
            assert up.stdout is not None
            yield next(found[0] for line in up.stdout if (found := re.search(r"http://\S+", line)))
        finally:
            up.terminate()
            up.wait()


def take(address: str, folder: Path, views: dict[str, tuple[str, int, str]] = VIEWS) -> None:
    """Take a picture of each view."""
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium.find(), args=chromium.flags())
        for name, (query, width, theme) in views.items():
            context = browser.new_context(
                viewport={"width": width, "height": 900},
                color_scheme="dark" if theme == "dark" else "light",
                device_scale_factor=2 if width < 500 else 1,
            )
            page = context.new_page()
            until = int(time.time() // 60 - 20) * 60
            page.goto(address + query.format(since=until - 1_200, until=until, mark=DEPLOYED))
            page.locator(".waiting").wait_for(state="detached")
            if "view=" not in query:
                page.get_by_role("region", name="Status").get_by_text("Now, ").wait_for()
            if "mark=" in query:
                page.get_by_role("region", name="Deploy verdict").get_by_role(
                    "row"
                ).first.wait_for()
            page.wait_for_timeout(1_500)  # charts are drawn
            page.evaluate("scrollTo(0, 0)")
            page.screenshot(path=folder / f"{name}.png", full_page=True)
            sys.stdout.write(f"{folder / name}.png\n")
            context.close()
        browser.close()


def main() -> None:
    """Take the pictures."""
    if any(word.startswith("-") for word in sys.argv[1:]):
        sys.exit(__doc__)
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / ".cache" / "screenshots"
    wanted = sys.argv[2] if len(sys.argv) > 2 else ""
    if wanted.startswith("http"):
        take(wanted, folder)
        return
    with served() as address:
        take(address, folder)


if __name__ == "__main__":
    main()
