"""The shop's tables, in one SQLite file, and their initial rows."""

import random
from pathlib import Path
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy import event

# --- Catalog -------------------------------------------------------------------------------------

# What the shop sells: tea and what belongs to it. Names and prices are made up.


class Product(NamedTuple):
    """One thing on the shelf."""

    id: int
    name: str
    category: str
    #: In cents.
    price: int


_SHELVES: dict[str, list[tuple[str, int]]] = {
    "black": [
        ("Assam Harvest Second Flush", 1190),
        ("Darjeeling Castleton", 2450),
        ("East Frisian Blend", 890),
        ("Earl Grey with Bergamot Peel", 1090),
        ("Keemun Peony", 1690),
        ("Lapsang Souchong", 1390),
        ("Ceylon Nuwara Eliya", 1290),
        ("Yunnan Golden Tips", 2890),
    ],
    "green": [
        ("Sencha Yabukita", 1790),
        ("Gyokuro Shade-Grown", 4900),
        ("Genmaicha with Toasted Rice", 1150),
        ("Gunpowder Temple", 790),
        ("Jasmine Pearls", 2290),
        ("Matcha for Whisking, 30 g", 3200),
        ("Longjing Dragon Well", 3490),
    ],
    "oolong": [
        ("Tie Guan Yin", 2690),
        ("Da Hong Pao", 3990),
        ("Milk Oolong", 1890),
        ("Dong Ding Roasted", 2490),
    ],
    "herbal": [
        ("Peppermint, Cut", 590),
        ("Camomile Flowers", 640),
        ("Rooibos Vanilla", 790),
        ("Lemon Verbena", 720),
        ("Ginger and Turmeric", 850),
        ("Linden Blossom", 690),
    ],
    "ware": [
        ("Cast-Iron Pot, 0.8 l", 6900),
        ("Glass Pot with Strainer", 3490),
        ("Stoneware Cup, Slate", 1490),
        ("Stoneware Cup, Moss", 1490),
        ("Bamboo Whisk", 1890),
        ("Tin with Window, 250 g", 990),
        ("Cotton Filter", 450),
    ],
}

PRODUCTS: tuple[Product, ...] = tuple(
    Product(number, name, category, price)
    for number, (category, name, price) in enumerate(
        ((category, name, price) for category, shelf in _SHELVES.items() for name, price in shelf),
        start=1,
    )
)
#: How many pieces of each category are sold for one of the rarest.
POPULARITY = {"black": 9, "green": 7, "oolong": 3, "herbal": 8, "ware": 2}

#: What visitors look for; the last ones are not sold here.
SEARCHES = (
    *("assam", "darjeeling", "green", "sencha", "jasmine", "pot", "cup", "rooibos", "mint", "grey"),
    *("oolong", "matcha", "ginger", "coffee", "sugar", "espresso"),
)


#: Lines of orders of the years before: what makes the report slow.
OLD_LINES = 180_000

META = sa.MetaData()
products = sa.Table(
    "products",
    META,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String, nullable=False),
    sa.Column("category", sa.String, nullable=False),
    sa.Column("price", sa.Integer, nullable=False),
)
carts = sa.Table(
    "carts",
    META,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("visitor", sa.String, nullable=False, index=True),
    sa.Column("product_id", sa.Integer, nullable=False),
    sa.Column("pieces", sa.Integer, nullable=False),
)
orders = sa.Table(
    "orders",
    META,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("visitor", sa.String, nullable=False),
    sa.Column("cents", sa.Integer, nullable=False),
    sa.Column("confirmed", sa.Boolean, nullable=False, index=True),
)
lines = sa.Table(
    "order_lines",
    META,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("order_id", sa.Integer, nullable=False),
    sa.Column("product_id", sa.Integer, nullable=False),
    sa.Column("pieces", sa.Integer, nullable=False),
    sa.Column("cents", sa.Integer, nullable=False),
)
#: Sums that the newest release maintains, so that its report need not sum all lines.
category_sums = sa.Table(
    "category_sums",
    META,
    sa.Column("category", sa.String, primary_key=True),
    sa.Column("pieces", sa.Integer, nullable=False),
    sa.Column("cents", sa.Integer, nullable=False),
)


def connect(path: Path) -> sa.Engine:
    """Return an engine on the shop's database, which several processes may use."""
    engine = sa.create_engine(f"sqlite:///{path}", connect_args={"timeout": 5.0})

    @event.listens_for(engine, "connect")
    def set_up(connection: sa.engine.interfaces.DBAPIConnection, _: object) -> None:
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode = WAL")
        cursor.execute("PRAGMA synchronous = OFF")  # nobody mourns a demo's orders
        cursor.close()

    return engine


def create_database(path: Path, seed: int) -> None:
    """Make the tables and fill the shelves."""
    chance = random.Random(seed)
    engine = connect(path)
    META.create_all(engine)
    sold = chance.choices(
        PRODUCTS, weights=[POPULARITY[each.category] for each in PRODUCTS], k=OLD_LINES
    )
    with engine.begin() as connection:
        connection.execute(products.insert(), [each._asdict() for each in PRODUCTS])
        connection.execute(
            category_sums.insert(),
            [
                {
                    "category": category,
                    "pieces": sum(each.category == category for each in sold),
                    "cents": sum(each.price for each in sold if each.category == category),
                }
                for category in POPULARITY
            ],
        )
        connection.exec_driver_sql(
            "INSERT INTO order_lines (order_id, product_id, pieces, cents) VALUES (?, ?, ?, ?)",
            [(number // 3, each.id, 1, each.price) for number, each in enumerate(sold)],
        )
    engine.dispose()
