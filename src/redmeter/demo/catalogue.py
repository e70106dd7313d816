"""What the shop sells: tea and what belongs to it. Names and prices are made up."""

from typing import NamedTuple


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
