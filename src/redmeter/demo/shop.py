"""The shop: an application as users write them, and how it is measured.

Specific to Redmeter are the lines of measure() below, and those that count events of
the business: sales, revenue, carts, payments. All the rest is a small Starlette application.
"""

import logging
import os
import random
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import sqlalchemy as sa
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from redmeter import Meter
from redmeter.demo import database, shape
from redmeter.demo.database import carts, category_sums, lines, orders, products
from redmeter.integrations import logging as logs
from redmeter.integrations import process
from redmeter.integrations import sqlalchemy as statements
from redmeter.integrations.asgi import App, RedmeterMiddleware

#: Environment variables with the path of its files and the random seed.
FOLDER, SEED = "SHOP_FOLDER", "SHOP_SEED"

_log = logging.getLogger("shop")


class PaymentRefused(Exception):
    """The bank said no."""


class BankSilent(Exception):
    """The bank did not answer."""


def measure(engine: sa.Engine, release: str) -> Meter:
    """Switch on all there is to measure a process of the shop by."""
    meter = Meter()  # from REDMETER_URL and REDMETER_PREFIX
    logs.install(meter)
    statements.install(engine, meter)
    process.install(meter)
    meter.mark(f"shop {release}")  # each process does so; it is one mark
    return meter


def release_in(folder: Path) -> str:
    """Return the release in a folder, which new processes run."""
    return (folder / "release").read_text().strip()


class Shop:
    """The pages.

    Args:
        folder: where the database and the release are.
        seed: how chance begins.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.release = release_in(folder)
        self._chance = random.Random(f"{seed} {os.getpid()}")
        self._engine = database.connect(folder / "shop.sqlite3")
        self.meter = measure(self._engine, self.release)
        self.pages = [
            Route("/", self.home),
            Route("/search", self.search),
            Route("/products/{id:int}", self.product),
            Route("/cart", self.cart),
            Route("/cart", self.into_cart, methods=["POST"]),
            Route("/checkout", self.checkout, methods=["POST"]),
            Route("/admin/report", self.report),
        ]

    def home(self, _: Request) -> Response:
        """Show new products."""
        with self._engine.connect() as connection:
            rows = connection.execute(sa.select(products).limit(8)).all()
        return _page("Halden Tea", [f"{each.name} {_euros(each.price)}" for each in rows])

    def search(self, request: Request) -> Response:
        """Find products with a word in their name or category."""
        word = f"%{request.query_params.get('q', '')[:40]}%"
        matches = products.c.name.like(word) | products.c.category.like(word)
        with self._engine.connect() as connection:
            rows = connection.execute(sa.select(products).where(matches)).all()
        self.meter.count("searches", labels={"found": "yes" if rows else "no"})
        return _page("Found", [each.name for each in rows])

    def product(self, request: Request) -> Response:
        """Show one thing."""
        number = request.path_params["id"]
        with self._engine.connect() as connection:
            row = connection.execute(sa.select(products).where(products.c.id == number)).first()
        if row is None:
            _log.info("nobody sells product %d any more", number)
            return _page("Sold out", [], 404)
        return _page(row.name, [_euros(row.price)])

    def cart(self, request: Request) -> Response:
        """Show the cart."""
        with self._engine.connect() as connection:
            rows = connection.execute(_in_cart(_visitor(request))).all()
        return _page("Your cart", [f"{each.pieces} × {each.name}" for each in rows])

    async def into_cart(self, request: Request) -> Response:
        """Put something into the cart."""
        form = dict(parse_qsl((await request.body()).decode(errors="replace")))
        product, pieces = form.get("product", ""), form.get("pieces", "1")
        if not _is_number(product) or not _is_number(pieces):
            return _page("That is nothing to put into a cart", [], 400)
        row = {"visitor": _visitor(request), "product_id": int(product), "pieces": int(pieces)}
        await run_in_threadpool(self._put, row)
        return RedirectResponse("/cart", 303)

    def _put(self, row: dict[str, object]) -> None:
        with self._engine.begin() as connection:
            connection.execute(carts.insert().values(row))

    def checkout(self, request: Request) -> Response:
        """Pay, and order."""
        visitor = _visitor(request)
        with self._engine.connect() as connection:
            bought = connection.execute(_in_cart(visitor)).all()
        if not bought:
            return _page("There is nothing in your cart", [], 409)
        cents = sum(each.price * each.pieces for each in bought)
        try:
            with self.meter.timer("payment_seconds"):
                self._pay(cents)
        except PaymentRefused as refusal:
            self.meter.count("payments", labels={"outcome": "refused"})
            _log.warning("payment of %s refused: %s", _euros(cents), refusal)
            return _page("Your bank said no", [], 402)
        except BankSilent:
            self.meter.count("payments", labels={"outcome": "lost"})
            raise
        self.meter.count("payments", labels={"outcome": "paid"})
        self._order(visitor, cents, bought)
        return RedirectResponse("/", 303)

    def _pay(self, cents: int) -> None:
        """Ask the bank. A stand-in: it waits as one waits for a bank, and fails now and then."""
        time.sleep(self._chance.lognormvariate(-2.5, 0.4))
        chance = self._chance.random()
        if chance < shape.LOST[self.release]:
            time.sleep(0.4)
            raise BankSilent(f"no answer of the bank for {cents} cents")
        if chance < shape.LOST[self.release] + shape.REFUSED[self.release]:
            raise PaymentRefused(self._chance.choice(["no funds", "card expired", "limit reached"]))

    def _order(self, visitor: str, cents: int, bought: Sequence[Any]) -> None:
        with self._engine.begin() as connection:
            ordered = orders.insert().values(visitor=visitor, cents=cents, confirmed=False)
            order = connection.execute(ordered.returning(orders.c.id)).scalar_one()
            for each in bought:
                paid = each.price * each.pieces
                connection.execute(
                    lines.insert().values(
                        order_id=order, product_id=each.id, pieces=each.pieces, cents=paid
                    )
                )
                connection.execute(
                    category_sums.update()
                    .where(category_sums.c.category == each.category)
                    .values(
                        pieces=category_sums.c.pieces + each.pieces,
                        cents=category_sums.c.cents + paid,
                    )
                )
            connection.execute(carts.delete().where(carts.c.visitor == visitor))
        self.meter.observe("cart_value", cents / 100)
        for each in bought:
            labels = {"category": each.category}
            self.meter.count("sales", each.pieces, labels=labels)
            self.meter.count("revenue_cents", each.price * each.pieces, labels=labels)

    def report(self, _: Request) -> Response:
        """Sum the sales: product by product, until the release that maintains sums."""
        with self._engine.connect() as connection:
            if self.release == shape.NEW_RELEASE:
                rows = connection.execute(
                    sa.select(category_sums).order_by(category_sums.c.cents.desc())
                ).all()
                return _page("Report", [f"{each.category}: {_euros(each.cents)}" for each in rows])
            listed = []
            for each in connection.execute(sa.select(products)).all():
                sold = sa.select(sa.func.sum(lines.c.cents)).where(lines.c.product_id == each.id)
                listed.append(f"{each.name}: {_euros(connection.execute(sold).scalar() or 0)}")
        return _page("Report", listed)


def _in_cart(visitor: str) -> "sa.Select[tuple[object, ...]]":
    return (
        sa.select(products, carts.c.pieces)
        .join(carts, carts.c.product_id == products.c.id)
        .where(carts.c.visitor == visitor)
    )


#: A number that the database can hold.
_is_number = re.compile(r"[0-9]{1,9}").fullmatch


def _visitor(request: Request) -> str:
    return request.cookies.get("visitor", "nobody")[:40]


def _euros(cents: int) -> str:
    return f"{cents / 100:.2f} €"


def _page(title: str, items: list[str], status: int = 200) -> Response:
    listed = "".join(f"<li>{each}</li>" for each in items)
    return HTMLResponse(f"<!doctype html><title>{title}</title><h1>{title}</h1>{listed}", status)


def create() -> App:
    """Return the application of one worker process."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    shop = Shop(Path(os.environ[FOLDER]), int(os.environ[SEED]))
    _log.info("release %s is open", shop.release)
    return RedmeterMiddleware(Starlette(routes=shop.pages), shop.meter, cleaner=True)
