"""Groups of exceptions."""

from dataclasses import dataclass

from redmeter.results.series import Series


@dataclass(frozen=True, slots=True)
class ExceptionShare:
    """How often the exceptions of a group came from one route, or from one release."""

    #: A route, the name of a task, or a release; "(other)": all beyond the limit.
    name: str
    #: The number of exceptions.
    count: int
    #: Time of the first one, Unix seconds.
    first: float
    #: Time of the last one, Unix seconds.
    last: float


@dataclass(frozen=True, slots=True)
class ExceptionSummary:
    """Exceptions of one type and origin."""

    #: The same in every process and release.
    id: str
    #: Module and qualified name, `shop.errors.PaymentFailed`; built-in types without a module.
    type: str
    #: Text of the newest exception, without secrets.
    message: str
    #: Innermost frame of the application, `pay.py:42 in charge`; "" without a traceback.
    place: str
    #: Module and qualified name of its function; "" without a traceback.
    function: str
    #: The end of the pattern of log messages with this exception.
    log_place: str
    #: Number of exceptions in the window.
    count: int
    #: Number of exceptions ever.
    total: int
    #: Time of the first one ever, Unix seconds.
    first: float
    #: Time of the last one ever, Unix seconds.
    last: float
    #: Whether the first one is in the window.
    is_new: bool
    #: Counts by interval in the window.
    series: Series[int]
    #: Ever, the most frequent first.
    routes: tuple[ExceptionShare, ...]
    #: Ever, the last seen first.
    releases: tuple[ExceptionShare, ...]
    #: Frames, messages and causes of the newest exception, without secrets. "" in a list.
    traceback: str = ""
    #: Whether it has the exceptions of several groups that found no room: all of one type whose
    #: innermost function of the application is the same.
    coarse: bool = False


@dataclass(frozen=True, slots=True)
class ExceptionSummaries:
    """Groups of exceptions within a window."""

    #: Width of the intervals, seconds.
    precision: int
    #: Start of the window, Unix seconds, included.
    start: int
    #: End of the window, Unix seconds, excluded.
    end: int
    #: Start of the oldest interval that is kept at this precision.
    kept_since: int
    #: Exceptions in the window, of all groups that match, also of those beyond the limit.
    count: int
    #: Number of these groups.
    found: int
    #: How many of these groups are new in the window.
    new: int
    #: Exceptions in the window that are in no group, because there were too many groups.
    other: int
    #: Exceptions in the window in coarse groups, of those in `count`.
    coarse: int
    #: Groups that older releases, which still do, removed to make room for new ones.
    evicted: int
    #: The groups of this page of the list.
    groups: tuple[ExceptionSummary, ...]
