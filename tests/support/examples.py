"""What property tests draw: from which seed, and how many examples."""

import os

from hypothesis import settings

#: The seed of all random draws: 0 by day, another number each night. See tools/tests.
SEED = int(os.environ.get("REDMETER_TEST_SEED") or 0)

#: What the numbers in the tests are meant for: examples that the profile tries by default.
THOROUGH = 100


def scaled(examples: int) -> int:
    """Return how many examples to try under the profile in force.

    Args:
        examples: how many `make nightly` tries, whose profile has 100 where a test says nothing.
    """
    return max(5, examples * settings().max_examples // THOROUGH)
