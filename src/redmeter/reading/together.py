"""Several questions in as many round trips as the longest of them takes.

A question is a generator: it yields commands, is sent the view and the replies to them, and returns
its answer. Asked together, the first commands of all of them go out as one exchange, then the
second, and so on. So a page with twelve panels costs what its longest panel does.
"""

from collections.abc import Callable, Generator, Sequence
from typing import TypeVar

from redmeter.keys import Kept
from redmeter.store import Store, View
from redmeter.store.replies import Command, Reply

T = TypeVar("T")

#: What a question is sent: how the store stands, and a reply to each of its commands.
Answered = tuple[View, Sequence[Reply]]
Question = Generator[Sequence[Command], Answered, T]

#: Tries where what is kept is not what the questions were made for.
_TRIES = 5


def ask(store: Store, make: Callable[[Kept], Question[T]]) -> tuple[View, T]:
    """Ask a question, and return its answer, with the view of its first exchange.

    Args:
        make: makes the question for what the store keeps. Called again where that has changed, or
            was not known yet; then all is asked anew.

    Raises:
        StoreError: the server cannot be reached or refuses.
    """
    for _ in range(_TRIES):
        kept = store.seen
        question = make(kept)
        try:
            view, replies = store.read(next(question))
            if store.seen == kept:
                while True:
                    replies = store.ask(question.send((view, replies)))
        except StopIteration as end:
            return view, end.value
        finally:
            question.close()
    raise AssertionError("what the store keeps changes with every exchange")


def together(questions: Sequence[Question[T]]) -> Question[list[T]]:
    """Make one question of several; its answer is the list of theirs."""
    answers: dict[int, T] = {}
    waiting = dict(enumerate(questions))
    asked: dict[int, Sequence[Command]] = {}

    def go(number: int, sent: Answered | None) -> None:
        try:
            asked[number] = next(waiting[number]) if sent is None else waiting[number].send(sent)
        except StopIteration as end:
            del waiting[number]
            answers[number] = end.value

    try:
        for number in list(waiting):
            go(number, None)
        while asked:
            commands = [command for some in asked.values() for command in some]
            view, replies = yield commands
            before, asked, at = asked, {}, 0
            for number, some in before.items():
                go(number, (view, replies[at : at + len(some)]))
                at += len(some)
    finally:
        for question in waiting.values():
            question.close()
    return [answers[number] for number in sorted(answers)]
