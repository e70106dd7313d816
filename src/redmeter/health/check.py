"""What a check of `redmeter doctor` is: reads, and findings about the replies.

A check reads with a query, see store/query.py. The doctor sends the steps of all checks together,
so a check costs no round trip of its own, unless it has a third step. Its findings are made when
all checks have read, so they may also go by the answers of others.

    def _read_queue(store: Store) -> Query[int]:
        _, (length,) = yield [("LLEN", store.keys.key("queue"))]
        return raised(length)

    def _queue_findings(length: int, seen: Seen) -> Iterator[Finding]:
        if length > LONG:
            yield Finding("warn", "queue", f"{length:,} items wait", "start a worker")

    QUEUE = DoctorCheck(_read_queue, _queue_findings)

A finding's text is shown as it is: names of other programs' keys go through ascii().
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from redmeter.store import Store, View
from redmeter.store.query import Query

#: The state of a store, as findings make it.
Level = Literal["ok", "warn", "fail"]
#: The level of a finding. A note is a risk to know about: nothing is wrong, and the level of the
#: store is the same as without it.
FindingLevel = Literal["ok", "note", "warn", "fail"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    level: FindingLevel
    topic: str
    text: str
    #: What to do about it; "" if nothing.
    fix: str = ""

    @property
    def is_problem(self) -> bool:
        """Whether something is wrong: it is a warning or a failure."""
        return self.level in ("warn", "fail")


def worst(findings: Iterable[Finding]) -> Level:
    """Return the level of a store with some findings, which notes do not change."""
    levels = {finding.level for finding in findings}
    return "fail" if "fail" in levels else "warn" if "warn" in levels else "ok"


@dataclass(frozen=True, slots=True, eq=False)
class DoctorCheck(Generic[T]):
    """One check of the doctor."""

    #: Makes the query of its reads. On a cluster the store is a best-effort one: a
    #: reply may be StoreUnavailable. A StoreError that it raises ends the whole examination.
    reads: Callable[[Store], Query[T]]
    #: Returns the findings about its own answer, given the answers of all checks.
    findings: Callable[[T, "Seen"], Iterable[Finding]]


class Seen:
    """The answers of all checks; `seen[CHECK]` is that of one."""

    def __init__(
        self, store: Store, view: View, replicas: bool, answers: Mapping[DoctorCheck[Any], Any]
    ) -> None:
        self.keys = store.keys
        #: The server's time, and the store's configuration.
        self.view = view
        #: Whether reads use replicas.
        self.replicas = replicas
        self._answers = answers

    def __getitem__(self, check: DoctorCheck[T]) -> T:
        answer: T = self._answers[check]
        return answer


def no_reads(_: Store) -> Query[None]:
    """Read nothing: for a check that goes by the answers of others."""
    return
    yield


def listed(texts: Sequence[str], most: int = 3) -> str:
    """Return the first texts for people: "a, b, c … (2 more)"."""
    more = f" … ({len(texts) - most:,} more)" if len(texts) > most else ""
    return f"{', '.join(texts[:most])}{more}"


def size_text(count: float) -> str:
    """Return a number of bytes for people, such as "1.5 MiB"."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            break
        count /= 1024
    return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
