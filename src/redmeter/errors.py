"""Every exception Redmeter raises; the tree:

    RedmeterError
    ├── InvalidName          (ValueError)  a name or a label that the grammar refuses
    ├── InvalidValue         (ValueError)  an amount or a time that cannot be stored
    ├── InvalidSetting       (ValueError)  a URL, a prefix, a retention, an environment variable
    ├── WrongKind            (ValueError)  a name is recorded, but as another kind
    ├── UnknownLabel         (ValueError)  a query names a label that no series of the name has
    ├── UnknownPrecision     (ValueError)  asked for a precision that the store does not keep
    ├── LimitExceeded        (ValueError)  asked for more than one request may answer
    ├── QueryError           (ValueError)  a PromQL query that cannot be answered
    ├── MissingExtra         (ImportError) an optional part of the installation is needed
    ├── ClockDisagreement                  the cleaner refuses: this clock and the server's differ
    └── StoreError                         something about the server or the stored data
        ├── StoreUnavailable               no answer: refused, reset, timed out
        ├── StoreRefused                   an error reply: out of memory, read-only, …
        │   └── StoreMoving                the store is being moved to another server, or was moved
        ├── Unconfirmed                    stored, but not confirmed by a replica or the disk
        ├── AccessDenied                   wrong password, or an ACL that forbids it
        ├── IncompatibleStore              another format version or number of shards
        └── EmbeddedServerError            the embedded server cannot be started or joined

Each message names the request, the reason and the fix; its data is in attributes.
No message contains a password. Errors of a single module are defined there, under the same root:
MalformedLine in ingest/access_log.py, DamagedFile in
ingest/lines.py, kinds of QueryError in promql/errors.py, DemoFailed in demo/running.py, HTTPError
in dashboard/errors.py, NotDelivered in alerting/notifiers.py, and MigrationError and Interrupted in
migrating/report.py. Imports no other module of Redmeter.
"""

from collections.abc import Iterable

#: Labels that the text of an UnknownLabel lists.
_LISTED_LABELS = 20


class RedmeterError(Exception):
    """The root: catch it to catch every error that Redmeter raises deliberately."""

    def __reduce__(self) -> tuple[object, ...]:
        # Restored with its attributes, not from its message: errors cross processes (worker pools).
        return _restore, (type(self), self.args), self.__dict__


def _restore(kind: type[RedmeterError], args: tuple[object, ...]) -> RedmeterError:
    return kind.__new__(kind, *args)


def shown(value: object, width: int = 80) -> str:
    """Return a value for display in a message, cut to a number of characters."""
    try:
        return f"{value!r:.{width}}"
    except ValueError:  # Python refuses to format integers of over 4,300 digits
        return f"<{type(value).__name__} of too many digits>"


class InvalidName(RedmeterError, ValueError):
    """A name or label is invalid: of a series, a logger, or something else.

    Attributes:
        name: the name, shortened for display.
        reason: the rule that it breaks, and the allowed alternative.
        what: the kind of name: "series name", "logger name" …
    """

    def __init__(self, name: object, reason: str, *, what: str = "series name") -> None:
        text = ascii(name) if isinstance(name, str) else shown(name)
        self.name = text if len(text) <= 80 else f"{text[:60]}… ({len(text) - 60} more)"
        self.reason = reason
        self.what = what
        super().__init__(f"invalid {what} {self.name}: {reason}")


class InvalidValue(RedmeterError, ValueError):
    """An amount or a time cannot be stored.

    Attributes:
        value: the value.
        reason: the allowed values.
    """

    def __init__(self, value: object, reason: str) -> None:
        self.value = value
        self.reason = reason
        super().__init__(f"invalid value {shown(value)}: {reason}")


class InvalidSetting(RedmeterError, ValueError):
    """A setting has an invalid value.

    Attributes:
        setting: its name, as in the table of settings.
        reason: the problem and the allowed values. Contains no password.
    """

    def __init__(self, setting: str, reason: str) -> None:
        self.setting = setting
        self.reason = reason
        super().__init__(f"{setting}: {reason}")


class WrongKind(RedmeterError, ValueError):
    """A query reads a name as one kind, and it is recorded as another.

    Attributes:
        name: the name, without labels.
        kind: the kind that it is recorded as: "counter", "gauge" or "histogram".
        fix: the call that reads it.
    """

    def __init__(self, name: str, kind: str, fix: str) -> None:
        self.name = name
        self.kind = kind
        self.fix = fix
        super().__init__(f"{shown(name)} is recorded as a {kind}: {fix}")


class UnknownLabel(RedmeterError, ValueError):
    """A query names a label that no series of the name has: a misspelled one, for instance.

    Attributes:
        name: the name, without labels, or the pattern.
        label: the label.
        labels: the labels that series of the name have, sorted; empty if none has any.
    """

    def __init__(self, name: str, label: str, labels: Iterable[str]) -> None:
        self.name = name
        self.label = label
        self.labels = tuple(labels)
        super().__init__(f"{self.problem}: {self.fix}")

    @property
    def problem(self) -> str:
        """The problem, without the fix."""
        if not self.labels:
            return f"{shown(self.name)} has no labels"
        return f"no series of {shown(self.name)} has the label {self.label}"

    @property
    def fix(self) -> str:
        """The labels of the name, or to leave out the label if there are none."""
        if not self.labels:
            return f"leave out {self.label}"
        more = len(self.labels) - _LISTED_LABELS
        rest = f" … ({more:,} more)" if more > 0 else ""
        return f"labels: {', '.join(self.labels[:_LISTED_LABELS])}{rest}"


class UnknownPrecision(RedmeterError, ValueError):
    """A query names a precision that the store does not keep.

    Attributes:
        precision: the requested precision, in seconds.
        kept: the precisions that are kept, in seconds, ascending.
        of: "histograms" if the precision is missing from their retention; otherwise "".
    """

    def __init__(self, precision: object, kept: Iterable[int], *, of: str = "") -> None:
        self.precision = precision
        self.kept = tuple(kept)
        self.of = of
        listed = ", ".join(str(p) for p in self.kept)
        text = f"precision {shown(precision, 40)} is not kept{of and f' of {of}'}"
        fix = ""
        if of and isinstance(precision, int) and precision > 0:
            fix = f"; `redmeter retention --{of} {shown(int(precision), 40)}=120` keeps it"
        super().__init__(f"{text}; kept are (seconds): {listed}{fix}")


class LimitExceeded(RedmeterError, ValueError):
    """A query asks for more than one request may return.

    Attributes:
        asked: the number requested, or the least it is, where counting stopped beyond the limit.
        limit: the number allowed.
    """

    def __init__(
        self, what: str, asked: int, limit: int, fix: str, *, at_least: bool = False
    ) -> None:
        self.asked = asked
        self.limit = limit
        number = f"{asked:,}" if abs(asked) < 10**18 else shown(asked, 40)
        number = f"more than {limit:,}" if at_least else number
        super().__init__(f"{number} {what} asked for, at most {limit:,} are allowed: {fix}")


class QueryError(RedmeterError, ValueError):
    """A PromQL query cannot be answered.

    Attributes:
        kind: "bad_data" if the text is not a valid query, "execution" if its evaluation fails,
            "timeout" if that takes too long; the words of Prometheus' HTTP API.
    """

    kind = "execution"


class MissingExtra(RedmeterError, ImportError):
    """An optional part of Redmeter needs packages that are not installed.

    Attributes:
        what: the part: "the dashboard".
        package: the missing package, or several: "psutil and sqlalchemy".
        fix: the command that installs them.
    """

    def __init__(self, what: str, package: str, fix: str) -> None:
        self.what = what
        self.package = package
        self.fix = fix
        super().__init__(f"{what} needs {package}: {fix}")


class ClockDisagreement(RedmeterError):
    """The cleaner does not run because this machine's clock and the server's differ too much.

    Attributes:
        difference: the server's clock minus this machine's, seconds.
        allowed: the largest tolerated difference, seconds.
    """

    def __init__(self, difference: float, allowed: float) -> None:
        self.difference = difference
        self.allowed = allowed
        super().__init__(
            f"the server's clock is {difference:+.0f} s off this machine's (allowed: "
            f"{allowed:.0f} s); cleaning by a wrong clock would delete live samples. "
            "Set both clocks (NTP), then clean again"
        )


class StoreError(RedmeterError):
    """An error of the server, or of the data in it.

    Attributes:
        sent: whether a write was sent, by this call or an earlier one, that may have been applied.
    """

    sent: bool = False


class StoreUnavailable(StoreError):
    """The server is unreachable: connection refused, reset or timed out.

    Attributes:
        location: the address of the server, without credentials.
        reason: why there was no answer.
        fix: the fix; "" if there is only the general advice.
        sent: whether a write was sent that may have been applied.
    """

    def __init__(self, location: str, reason: str, *, sent: bool = False, fix: str = "") -> None:
        self.location = location
        self.sent = sent
        self.reason, self.fix = reason.rstrip("."), fix
        mend = fix or "Is the server running, and the URL right?"
        super().__init__(f"no answer from {location}: {self.reason}. {mend[0].upper()}{mend[1:]}")


class StoreRefused(StoreError):
    """The server answered with an error.

    Attributes:
        code: the error's first word, e.g. OOM, READONLY, LOADING, WRONGTYPE, or ERR.
        detail: the server's text.
        key: the key that has another type (WRONGTYPE), if known; otherwise "".
        fix: the fix, or an explanation; "" if there is none.
    """

    def __init__(self, code: str, detail: str, key: str = "") -> None:
        self.code = code
        self.detail = detail
        self.key = key
        self.fix = _HINTS.get(code, "")
        if "cluster support disabled" in detail:
            self.fix = "it is a single server, not a cluster: write the URL as redis://HOST:PORT"
        if key:
            self.fix = f"another program keeps something else under {key!a}"
        reason = detail
        if code in ("MOVED", "ASK"):  # the client removes the word, and leaves slot and node
            reason = f"the key is on another node: {code} {detail.removeprefix(f'{code} ')}"
        super().__init__(f"the server refused: {reason}" + (f" ({self.fix})" if self.fix else ""))


_OF_A_CLUSTER = (
    "it is a node of a cluster: write the URL as redis+cluster://HOST:PORT, or give a RedisCluster"
)
_HINTS = {
    "OOM": "it is out of memory: raise maxmemory, or free memory; nothing was written",
    "READONLY": "this is a replica: connect to the primary",
    "LOADING": "it is loading its data: try again in a moment",
    "MISCONF": "it cannot save to disk and refuses writes: free disk space; see its log",
    "NOREPLICAS": "fewer replicas than min-replicas-to-write are connected",
    "BUSY": "a script has been running for too long",
    "CLUSTERDOWN": "the cluster is incomplete: start the missing nodes, or see "
    "cluster-require-full-coverage",
    "TRYAGAIN": "a slot is being moved between nodes: try again when that is finished",
    "MOVED": _OF_A_CLUSTER,
    "ASK": _OF_A_CLUSTER,
    "CROSSSLOT": _OF_A_CLUSTER,
    "WRONGTYPE": "another program keeps something else under this key",
}


class StoreMoving(StoreRefused):
    """The store is being moved to another server, or was moved; nothing was written.

    Attributes:
        state: "frozen", while it is copied; "receiving", while it gets the data of another store;
            "moved", for good.
    """

    def __init__(self, state: str) -> None:
        text, fix = _STATES[state]
        super().__init__(state, text)
        self.state = state
        self.fix = fix
        self.args = (f"{text}: {fix}",)


_STATES = {
    "frozen": (
        "the store is frozen while `redmeter migrate` copies it to another server",
        "try again in a moment; nothing was written",
    ),
    "receiving": (
        "`redmeter migrate` is copying another store to this one, or was interrupted",
        "try again once it has finished; nothing was written",
    ),
    "moved": (
        "the store was moved to another server or prefix",
        "set REDMETER_URL and REDMETER_PREFIX to the new one; nothing was written",
    ),
}


class Unconfirmed(StoreError):
    """Events are stored, but no replica, or not the disk, has confirmed them in time.

    They are counted as stored, and most likely durable a moment later. Do not record them again:
    they would count twice.

    Attributes:
        location: the address of the server, without credentials.
        durability: "replica" or "disk", as in the setting.
        reason: why they are not confirmed, and the fix.
        batches: how many batches are not, without those that an earlier error has counted.
        sent: always true.
    """

    sent = True

    def __init__(self, location: str, durability: str, reason: str, batches: int = 1) -> None:
        self.location = location
        self.durability = durability
        self.reason = reason
        self.batches = batches
        by = "a replica" if durability == "replica" else "the disk"
        super().__init__(f"stored by {location}, but not confirmed by {by}: {reason}")


class AccessDenied(StoreError):
    """The server rejects the credentials, or its ACL forbids a command or a key.

    Attributes:
        code: NOAUTH, WRONGPASS or NOPERM.
        detail: the server's text.
        fix: the fix.
    """

    def __init__(self, code: str, detail: str) -> None:
        self.code = code
        self.detail = detail
        self.fix = (
            "ACL LOG on the server shows the command or key that this user lacks; "
            "ACL SETUSER grants it"
            if code == "NOPERM"
            else "check user and password in the URL"
        )
        super().__init__(f"access denied: {detail} ({self.fix})")


class IncompatibleStore(StoreError):
    """The store was created with another format version or number of shards.

    Attributes:
        found: the value in the store.
        supported: the value that this version of Redmeter supports.
    """

    def __init__(self, what: str, found: object, supported: object) -> None:
        self.found = found
        self.supported = supported
        super().__init__(
            f"the store's {what} is {shown(found, 40)}, this version of Redmeter works with "
            f"{supported!r}; nothing was written. Use the version of Redmeter that created it, "
            "or another prefix"
        )


class EmbeddedServerError(StoreError):
    """The embedded server cannot be started, joined or stopped.

    Attributes:
        path: its data directory.
        reason: the error and its fix.
    """

    def __init__(self, path: object, reason: str) -> None:
        self.path = str(path)
        self.reason = reason
        super().__init__(f"embedded server in {self.path}: {reason}")
