"""Steps: what needs several exchanges with the server, one command at a time.

A generator that yields a command, is sent the reply to it, which may be an error, and returns its
result. So the same code writes one batch by itself, or many batches in step, as one pipeline.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Protocol, TypeVar

from redmeter.errors import StoreError
from redmeter.store.replies import Command, Reply

T = TypeVar("T")
K = TypeVar("K")

Steps = Generator[Command, Reply, T]


class Collects(Protocol):
    """What commands are exchanged by: see link.Link and cluster.ClusterLink."""

    def collect(self, commands: Sequence[Command]) -> list[Reply]:
        """Return a reply to each; what was not answered has the error as its reply."""
        ...


def drive(collect: Callable[[Sequence[Command]], list[Reply]], steps: Steps[T]) -> T:
    """Take steps to their end, one exchange for each.

    Args:
        collect: see Collects.

    Raises:
        StoreError: whatever the steps raise.
    """
    try:
        command = next(steps)
        while True:
            (reply,) = collect([command])
            command = steps.send(reply)
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        steps.close()


def drive_all(link: Collects, many: Mapping[K, Steps[T]]) -> dict[K, T | StoreError]:
    """Take several to their ends, their commands together.

    Returns:
        What each returned, or the error of ours that it raised.
    """
    # No function within this one: its annotations would be made with each call, also by an
    # interpreter that is ending, and can import nothing any more.
    results: dict[K, T | StoreError] = {}
    replies: dict[K, Reply] = dict.fromkeys(many)
    try:
        while replies:
            asked: dict[K, Command] = {}
            for key, reply in replies.items():
                try:
                    asked[key] = many[key].send(reply)
                except StopIteration as end:
                    results[key] = end.value
                except StoreError as error:
                    results[key] = error
            found = link.collect(list(asked.values())) if asked else []
            replies = dict(zip(asked, found, strict=True))
    finally:
        for steps in many.values():
            steps.close()
    return results
