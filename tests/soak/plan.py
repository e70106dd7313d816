"""The plan of a stage: what happens next, to the store or to those who work on it."""

import random
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from soak.crew import MORTAL, WATCHING, Crew
from soak.kinds import CLOCK

#: Steps of the clock of `stepped`, seconds.
STEPS = (3600.0, -3600.0, 0.0, 90.0, -90.0)
#: How often something happens to the crew, for each fault of the store.
CREW_CHANCES = 2
#: How often something happens to it while the store is in trouble.
MEANWHILE = 0.4

#: Its name, and what does it.
Happening = tuple[str, Callable[[], None]]


class Plan:
    """Everything again and again, in an order that chance decides.

    Args:
        chance: see there.
        crew: those who work on the store.
        folder: where the file of the clock lies.
        calm: tells whether nothing is wrong.
    """

    def __init__(
        self, chance: random.Random, crew: Crew, folder: Path, calm: Callable[[], bool]
    ) -> None:
        self._chance = chance
        self._crew = crew
        self._folder = folder
        self._calm = calm
        self._meanwhile: Happening | None = None

    def happenings(self, faults: Mapping[str, Callable[[], None]]) -> Iterator[Happening]:
        """Yield what is to happen.

        Args:
            faults: of the store.
        """
        crew: list[Happening] = []
        while True:
            for name in self._chance.sample(sorted(faults), len(faults)):
                if len(crew) <= CREW_CHANCES:
                    crew += self._of_the_crew()
                for _ in range(CREW_CHANCES):
                    yield crew.pop()
                if self._chance.random() < MEANWHILE:
                    self._meanwhile = crew.pop()
                yield name, faults[name]

    def take_meanwhile(self) -> Happening | None:
        """Return what is to happen while the store is in trouble, once."""
        happening, self._meanwhile = self._meanwhile, None
        return happening

    def _of_the_crew(self) -> list[Happening]:
        """Return all that may happen to the crew, shuffled."""
        crew = self._crew
        cleaners = [slot for slot, kind in WATCHING.items() if kind == "cleaner"]
        found: list[Happening] = []
        found += [(f"kill {slot}", partial(crew.kill, slot)) for slot in (*MORTAL, *cleaners)]
        found += [(f"end {slot}", partial(self._end, slot)) for slot in MORTAL]
        found += [(f"clock {step:+.0f}", partial(self._step, step)) for step in STEPS]
        self._chance.shuffle(found)
        return found

    def _end(self, slot: str) -> None:
        self._crew.terminate(slot, calm=self._calm())

    def _step(self, offset: float) -> None:
        new = self._folder / f"{CLOCK}.new"
        new.write_text(str(offset))
        new.rename(self._folder / CLOCK)
