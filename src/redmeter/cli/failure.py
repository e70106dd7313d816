"""How a command fails: one line on standard error, an exit code, and `error` in the JSON.

Every error becomes a Failure: those that a command raises by fail(), errors of the library, wrong
usage that Typer finds, and unreadable files. So all errors look the same:

    error: nothing is stored under hist; available: hits
    {"error": {"code": "not-found", "message": "nothing is stored …", "fix": "available: hits"}}

The fields and the codes are the same as in the API of the page.
"""

import os
import re
import shlex
from typing import Any, NoReturn

import typer

from redmeter.errors import (
    AccessDenied,
    ClockDisagreement,
    EmbeddedServerError,
    IncompatibleStore,
    LimitExceeded,
    RedmeterError,
    StoreError,
    StoreMoving,
    StoreRefused,
    StoreUnavailable,
    UnknownLabel,
    UnknownPrecision,
    WrongKind,
)

NOT_FOUND, USAGE, STORE, INTERRUPTED = 1, 2, 3, 130

#: What the values of `error.code` mean. The docs list them.
MEANINGS = {
    "not-found": "no such series, logger or mark; or nothing to show or to replay",
    "usage": "no such command or option, or an option with an invalid value",
    "bad-parameter": "a name, a value, a setting or a file cannot be used",
    "too-many": "the request exceeds a limit",
    "wrong-kind": "the name is recorded as another kind",
    "unknown-label": "no series of the name has the label",
    "unknown-precision": "the store does not keep this precision",
    "store-unavailable": "the server does not reply",
    "store-denied": "wrong password, or an ACL that forbids it",
    "store-moving": "the store is being moved to another server, or was moved",
    "store-refused": "the server answered with an error",
    "store-incompatible": "the store has a different format or number of shards",
    "store-trouble": "any other store problem, e.g. an embedded server that does not start",
    "clocks-differ": "the clocks of this machine and of the server differ too much",
    "interrupted": "Ctrl-C",
}
#: Exit code -> `error.code`, where the error itself does not have a more exact one.
_CODES = {
    NOT_FOUND: "not-found",
    USAGE: "bad-parameter",
    STORE: "store-trouble",
    INTERRUPTED: "interrupted",
}
#: The same by the kind of an error of the library.
_KINDS: dict[type[Exception], str] = {
    AccessDenied: "store-denied",
    ClockDisagreement: "clocks-differ",
    IncompatibleStore: "store-incompatible",
    LimitExceeded: "too-many",
    StoreMoving: "store-moving",
    StoreRefused: "store-refused",
    StoreUnavailable: "store-unavailable",
    UnknownLabel: "unknown-label",
    UnknownPrecision: "unknown-precision",
    WrongKind: "wrong-kind",
}
#: Typer's own class of usage errors, which it has under several names in its versions.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]


class Failure(Exception):
    """A command ends with an error.

    Attributes:
        message: the problem.
        exit_code: one of those above.
        fix: what to do about it; "" if that is unknown, or part of the message.
        code: a stable identifier for programs.
        lines: see output.error().
    """

    def __init__(
        self, message: str, exit_code: int, *, fix: str = "", code: str = "", lines: bool = False
    ) -> None:
        super().__init__(message)
        self.message = message
        self.exit_code = exit_code
        self.fix = fix
        self.code = code or _CODES.get(exit_code, "store-trouble")
        self.lines = lines

    def text(self) -> str:
        """Return the error for people."""
        if not self.fix:
            return self.message
        if self.message.endswith((".", "?")):
            return f"{self.message} {self.fix[0].upper()}{self.fix[1:]}"
        return f"{self.message}; {self.fix}"

    def as_dict(self) -> dict[str, str | None]:
        """Return the error for programs."""
        return {"code": self.code, "message": self.message, "fix": self.fix or None}


def fail(message: str, exit_code: int, fix: str = "", *, lines: bool = False) -> NoReturn:
    """End the command with an error; see Failure."""
    raise Failure(message, exit_code, fix=fix, lines=lines)


def failure_of(error: BaseException) -> Failure | None:
    """Translate an error to a Failure; None if it is a bug."""
    if isinstance(error, Failure):
        return error
    if isinstance(error, KeyboardInterrupt):
        return Failure("interrupted", INTERRUPTED)
    if isinstance(error, RedmeterError):
        store = isinstance(error, StoreError | ClockDisagreement)
        code = next((code for kind, code in _KINDS.items() if isinstance(error, kind)), "")
        if isinstance(error, WrongKind):
            reader = "summary" if error.kind == "histogram" else "series"
            return wrong_kind(error, f"redmeter {reader} {shlex.quote(error.name)}")
        if isinstance(error, UnknownLabel):
            return Failure(error.problem, NOT_FOUND, fix=error.fix, code=code)
        # An InvalidRules has a line for each mistake; its module is loaded for alerts only.
        lines = isinstance(error, EmbeddedServerError) or hasattr(error, "mistakes")
        return Failure(str(error), STORE if store else USAGE, code=code, lines=lines)
    if isinstance(error, UsageError):
        # The name alone was typed: Typer shows the help itself.
        return None if type(error).__name__ == "NoArgsIsHelpError" else _usage(error)
    if isinstance(error, OSError) and error.filename is not None:
        return Failure(f"{os.fsdecode(error.filename)}: {error.strerror or error}", USAGE)
    return None


def wrong_kind(error: WrongKind, command: str) -> Failure:
    """Translate a WrongKind, which names a method, to a Failure that names a command."""
    message = str(error).removesuffix(f": {error.fix}")
    return Failure(message, NOT_FOUND, fix=command, code=_KINDS[WrongKind])


def _usage(error: Any) -> Failure:
    """Translate an error of Typer.

    Typer takes the texts about invalid values from other libraries. These are about numbers, their
    ranges and choices: the commands check everything else themselves.
    """
    option = getattr(error, "param", None)
    message = error.format_message().rstrip(".").replace(". Did you mean", "; did you mean")
    message = message[:1].lower() + message[1:]
    if isinstance(error, typer.BadParameter) and option is not None and error.message:
        name = max(option.opts, key=len)
        name = name if name.startswith("-") else name.upper()  # as in the help
        message = f"{name}: {_translated(error.message).rstrip('.')}"
    path = error.ctx.command_path if error.ctx else "redmeter"
    return Failure(message, USAGE, fix=f"see {path} --help", code="usage")


#: Texts about numbers from Pydantic, by way of Typer, and about choices -> ours.
_TEXTS = (
    (r"(?:Value error, )?('.*') is not one of ('.*')\.?", r"\1 is none: give one of \2"),
    ("Input should be a valid integer.*", "give a whole number"),
    ("Input should be a valid number.*", "give a number"),
    ("Input should be greater than or equal to (.*)", r"give \1 or more"),
    ("Input should be less than or equal to (.*)", r"give \1 or less"),
    ("Input should be (.*)", r"must be \1"),
)


def _translated(message: str) -> str:
    for pattern, ours in _TEXTS:
        if re.fullmatch(pattern, message, re.DOTALL):
            return re.sub(pattern, ours, message, flags=re.DOTALL)
    return message
