"""The stored format, frozen: the keys that fixed operations leave in a real server."""

from collections.abc import Callable
from pathlib import Path

import pytest

from golden.story import CHAPTERS, World
from support.dumped import dumped
from support.golden import check_golden

pytestmark = pytest.mark.servers

FILES = Path(__file__).parent / "stored"


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.__name__)
def test_stored_keys_stay_as_they_are(world: World, chapter: Callable[[World], None]) -> None:
    """Byte for byte, with types and times to live; random ids are replaced."""
    chapter(world)
    check_golden(FILES / f"{chapter.__name__}.txt", dumped(world.client, world.server))


def test_each_golden_file_has_its_chapter() -> None:
    """None is left behind by a chapter that is gone."""
    assert {file.stem for file in FILES.iterdir()} == {one.__name__ for one in CHAPTERS}
