"""Retries: what an error means, and the loops that try again.

One table classifies the error codes of servers, for every part of the library. Reads may be sent
again: all of them (`retry_read`), or those without a reply (`retry_missing`). A batch keeps its
number and is sent until the store has answered: at once by `WriteRetry`, over several flushes by
`Backoff`.
"""

import time
from collections.abc import Callable, Sequence
from random import SystemRandom
from typing import NamedTuple, TypeVar

from redmeter.clock import Clock
from redmeter.errors import AccessDenied, IncompatibleStore, StoreRefused, StoreUnavailable
from redmeter.store.servers.replies import Command, Reply

T = TypeVar("T")

# Not the application's generator, which may be seeded for reproducible results.
system_random = SystemRandom()

# --- Classification --------------------------------------------------------------------------


class _Code(NamedTuple):
    """What an error code means. No command with such a reply was carried out."""

    #: It passes within moments.
    transient: bool = False
    #: The server replies the same whichever shard a command is about.
    server_wide: bool = False
    #: The server may have been replaced as primary. A new connection finds the new one behind a
    #: proxy, a Kubernetes Service or DNS; open connections stay with the old one.
    not_primary: bool = False
    #: The key's slot is moving to another node, or no node serves it at the moment.
    moving: bool = False
    #: Some keys of a command have moved already: the servers are well, and it is over in moments.
    brief: bool = False
    #: Another node has the key's slot.
    redirect: bool = False
    #: Why the server answers no command at the moment, as the rest of a sentence.
    unready: str = ""


_CODES = {
    "LOADING": _Code(
        transient=True, server_wide=True, not_primary=True, unready="is loading its data"
    ),
    "MASTERDOWN": _Code(
        transient=True, server_wide=True, not_primary=True, unready="does not hear from its primary"
    ),
    "BUSY": _Code(transient=True, server_wide=True, unready="is busy with a script"),
    "READONLY": _Code(transient=True, server_wide=True, not_primary=True),
    "OOM": _Code(server_wide=True),
    "MISCONF": _Code(server_wide=True),
    "NOREPLICAS": _Code(server_wide=True),
    "NOAUTH": _Code(server_wide=True),
    "WRONGPASS": _Code(server_wide=True),
    "TRYAGAIN": _Code(transient=True, moving=True, brief=True),
    "CLUSTERDOWN": _Code(transient=True, moving=True),
    "frozen": _Code(brief=True),  # the store is being moved: see StoreMoving
    "receiving": _Code(brief=True),
    "MOVED": _Code(redirect=True),
    "ASK": _Code(redirect=True),
}
_OTHER = _Code()

#: A script's error while the keys that it reads are moving to another node.
_MOVING_TEXT = "non local key"


def _code(reply: Reply) -> _Code:
    coded = isinstance(reply, StoreRefused | AccessDenied)
    return _CODES.get(reply.code, _OTHER) if coded else _OTHER


def is_unanswered(reply: Reply) -> bool:
    """Return whether a command has no reply: its server is unreachable, or the connection broke."""
    return isinstance(reply, StoreUnavailable)


def is_transient(reply: Reply) -> bool:
    """Return whether a reply is an error that passes within moments."""
    return _code(reply).transient


def is_server_wide(reply: Reply) -> bool:
    """Return whether a reply is an error that the server returns for all of its shards."""
    return is_unanswered(reply) or _code(reply).server_wide


def is_not_primary(reply: Reply) -> bool:
    """Return whether a reply comes from a server that may have been replaced as primary."""
    return isinstance(reply, StoreRefused) and _code(reply).not_primary


def is_moving(reply: Reply) -> bool:
    """Return whether a reply is an error because the key's slot is moving to another node."""
    return isinstance(reply, StoreRefused) and (_code(reply).moving or _MOVING_TEXT in reply.detail)


def is_brief(reply: Reply) -> bool:
    """Return whether a reply is an error of servers that are well, over within moments."""
    return _code(reply).brief


def is_recoverable(error: Exception) -> bool:
    """Return whether an error may end without anyone changing credentials or the store's format."""
    return not isinstance(error, AccessDenied | IncompatibleStore)


def is_unknown_script(reply: Reply) -> bool:
    """Return whether the server does not have the script of a command; nothing ran."""
    return isinstance(reply, StoreRefused) and reply.code == "NOSCRIPT"


def is_redirect(reply: Reply) -> bool:
    """Return whether a reply names another node that has the key's slot."""
    return _code(reply).redirect


def unready_reason(reply: Reply) -> str:
    """Return why a server answers no command now: "is loading its data"; "" if it answers."""
    return _code(reply).unready


# --- Reads -----------------------------------------------------------------------------------

#: Seconds between two tries while a slot is moving, and how many there are; fewer where a read can
#: do without the slot.
MOVING_PAUSE, MOVING_TRIES, MOVING_TRIES_BEST_EFFORT = 0.02, 50, 10


def retry_read(recover: Callable[[], None], exchange: Callable[[], T]) -> T:
    """Run an exchange that may be repeated, and once more if the connection breaks.

    Args:
        recover: prepares for another exchange after a connection broke.

    Raises:
        StoreUnavailable: it broke twice.
        StoreError: what the exchange raises.
    """
    try:
        return exchange()
    except StoreUnavailable:
        recover()
        return exchange()


def collect_again(
    collect: Callable[[Sequence[Command]], list[Reply]],
    commands: Sequence[Command],
    replies: list[Reply],
    is_due: Callable[[Reply], bool],
) -> None:
    """Exchange those commands once more whose replies are due for it, and replace these replies."""
    due = [number for number, reply in enumerate(replies) if is_due(reply)]
    if due:
        again = collect([commands[number] for number in due])
        for number, reply in zip(due, again, strict=True):
            replies[number] = reply


def retry_missing(
    collect: Callable[[Sequence[Command]], list[Reply]],
    commands: Sequence[Command],
    *,
    best_effort: bool,
) -> list[Reply]:
    """Exchange reads with a cluster, and again those whose slot is moving.

    Args:
        collect: exchanges commands; an error is a reply.
        best_effort: whether the caller can do without some replies. Then commands without a reply
            are sent once more here; otherwise the caller repeats the whole step.
    """
    replies = collect(commands)
    if best_effort:
        collect_again(collect, commands, replies, is_unanswered)
    for _ in range(MOVING_TRIES_BEST_EFFORT if best_effort else MOVING_TRIES):
        if not any(map(is_moving, replies)):
            break
        time.sleep(MOVING_PAUSE)
        collect_again(collect, commands, replies, is_moving)
    return replies


# --- Writes ----------------------------------------------------------------------------------

#: A synchronous write is tried until the timeout has passed, and at least twice if it was sent: it
#: may have been applied, which only a retry can find out. Unless SHORT_SECONDS have passed, it is
#: tried at least this often.
ATTEMPTS = 5
#: A batch that was sent is retried for so many seconds, however short the timeout.
SHORT_SECONDS = 2.0
#: First wait between two tries, seconds; doubled each time, with jitter.
BACKOFF_SECONDS = 0.02


def short_pause(attempt: int) -> float:
    """Return how long a caller waits after a failed attempt, the first of which is 0, seconds."""
    longest: float = min(0.5, BACKOFF_SECONDS * 2 ** min(attempt, 10))
    return longest * system_random.uniform(0.5, 1.0)


class WriteRetry:
    """Decides how long a synchronous write is tried, and waits between two tries.

    Args:
        clock: where time comes from.
        timeout: seconds for which the write is tried at least.
        within: seconds in all, whatever a caller's client would wait for; None: no limit.
    """

    def __init__(self, clock: Clock, timeout: float, within: float | None) -> None:
        self._clock, self._timeout, self._within = clock, timeout, within
        self._started, self._attempt = clock.monotonic(), 0

    def wait(self, error: Exception, *, sent: bool = True, at_least: float = 0.0) -> None:
        """Wait before another try.

        Args:
            error: what the last try raised.
            sent: whether the batch may have been applied; otherwise nothing is gained by trying
                more often than the timeout allows.
            at_least: seconds for which the server is not contacted.

        Raises:
            Exception: the error, if there is no time left.
        """
        attempt = self._attempt if sent else ATTEMPTS
        passed = self._clock.monotonic() - self._started
        pause = max(short_pause(attempt), at_least)
        if self._within is not None:
            left = self._within - passed
            over, pause = left < BACKOFF_SECONDS, min(pause, left / 2)  # leaves some for the try
        else:
            enough = attempt + 1 >= ATTEMPTS or (attempt > 0 and passed >= SHORT_SECONDS)
            over = enough and passed >= self._timeout
        if over:
            raise error
        self._clock.sleep(pause)
        self._attempt += 1


# --- Flushes -------------------------------------------------------------------------------------


#: Longest pause while the store is unreachable, seconds.
LONGEST_BACKOFF = 15.0
#: Pause if the store denies access or has an unknown format, seconds.
REFUSED_BACKOFF = 30.0
#: The same if a flush is requested.
REFUSED_PAUSE = 1.0


class Backoff:
    """Decides when to retry. Times are monotonic seconds.

    Args:
        interval: seconds between two attempts while nothing fails.
    """

    __slots__ = ("_interval", "_not_asked_before", "_not_before", "failures", "passing")

    def __init__(self, interval: float) -> None:
        self._interval = interval
        #: Failures in a row.
        self.failures = 0
        #: Whether a retry may succeed within moments.
        self.passing = True
        self._not_before = self._not_asked_before = 0.0

    def failed(self, *, passing: bool, soon: bool = False) -> None:
        """Back off, longer each time.

        Args:
            passing: it may succeed without a change of credentials or of the store.
            soon: it takes only moments: pause for one interval, and forget former failures.
        """
        now = time.monotonic()
        self.failures, self.passing = 1 if soon else self.failures + 1, passing
        if soon:
            wait = self._interval * system_random.uniform(0.75, 1.0)
        elif passing:
            wait = min(LONGEST_BACKOFF, self._interval * 2 ** min(self.failures, 10))
            wait *= system_random.uniform(0.75, 1.0)
        else:
            self._not_asked_before = now + REFUSED_PAUSE
            wait = REFUSED_BACKOFF * system_random.uniform(1.0, 1.25)
        self._not_before = now + wait

    def failed_partly(self, *, passing: bool) -> None:
        """Continue as usual: the part that failed has its own backoff."""
        self.failures, self.passing = 1, passing
        self.reset()

    def reset(self) -> None:
        """Allow an attempt at once."""
        self._not_before = self._not_asked_before = 0.0

    def succeeded(self) -> None:
        """Forget all failures."""
        self.failures, self.passing = 0, True
        self.reset()

    def like(self, other: "Backoff") -> None:
        """Retry at the same moment as another one."""
        self.failures, self.passing = other.failures, other.passing
        self._not_before, self._not_asked_before = other._not_before, other._not_asked_before

    @property
    def over(self) -> bool:
        """Whether a retry is allowed now."""
        return time.monotonic() >= self._not_before

    @property
    def pause(self) -> float:
        """How long a requested flush must wait, seconds."""
        return max(0.0, self._not_asked_before - time.monotonic())
