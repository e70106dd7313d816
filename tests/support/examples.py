"""How many examples a property test tries that has a number of its own."""

from hypothesis import settings

#: What the numbers in the tests are meant for: examples that the profile tries by default.
THOROUGH = 100


def scaled(examples: int) -> int:
    """Return how many examples to try under the profile in force.

    Args:
        examples: how many `make nightly` tries, whose profile has 100 where a test says nothing.
    """
    return max(5, examples * settings().max_examples // THOROUGH)
