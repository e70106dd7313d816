"""Jobs that wait for different servers, at the same time."""

import sys
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def in_parallel(jobs: Sequence[Callable[[], T]]) -> list[T]:
    """Do jobs, each in a thread of its own but the last, and return their results.

    Where no thread can be started, as in an interpreter that is ending: one after the other.

    Raises:
        BaseException: the first that a job raised, once all have ended.
    """
    results: dict[int, T] = {}
    raised: dict[int, BaseException] = {}

    def do(number: int) -> None:
        try:
            results[number] = jobs[number]()
        except BaseException as error:  # noqa: BLE001 - it is raised below
            raised[number] = error

    threads = []
    for number in range(len(jobs) - 1):
        if sys.is_finalizing():  # up to Python 3.11 a thread is awaited there that never runs
            do(number)
            continue
        thread = threading.Thread(target=do, args=(number,), name="redmeter", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            do(number)
        else:
            threads.append(thread)
    if jobs:
        do(len(jobs) - 1)
    for thread in threads:
        thread.join()
    for number in sorted(raised):
        raise raised[number]
    return [results[number] for number in range(len(jobs))]
