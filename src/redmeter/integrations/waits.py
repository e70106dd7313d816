"""Waits: how long calls of a library's objects take that no hook of its own tells the end of.

Of a pool, connect(): a request that waits for a connection waits for the database. Of a connection,
commit(): there a database writes what it was given.

Idea: an attribute of one object stands before the method of its class. It calls the method, passes
on what that returns or raises, and tells how long it took. Classes, and all other objects, stay as
they are; taken away again, the object is as it was. Where several want to know, there is one such
attribute, so what was waited for is spent once (see spent.py).

What goes on within connect() is a part of it: a new connection rolls back, for instance. Nobody is
told of it then, and statements within are recorded, but not spent again.

Bound: two readings of the clock and a variable of the context for a call.

Not done: objects that take no attributes are left alone.
"""

import functools
import os
import threading
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from time import perf_counter
from typing import Any

from redmeter.integrations.spent import DATABASE, spend

#: Takes the seconds that a call took, and what it raised. May not raise itself.
Listener = Callable[[float, BaseException | None], None]

_changing = threading.Lock()


def _forked() -> None:
    global _changing
    _changing = threading.Lock()  # a thread that is not here may have held it


os.register_at_fork(after_in_child=_forked)

_within: ContextVar[bool] = ContextVar("redmeter_waiting", default=False)


def waiting() -> bool:
    """Return whether a call that is timed goes on in this context."""
    return _within.get()


class _Timed:
    """Stands before a method of one object, as an attribute of that object."""

    def __init__(self, target: Any, name: str, *, outer: bool) -> None:
        method = getattr(target, name)
        functools.update_wrapper(self, method)
        self._method: Callable[..., Any] = method
        self._name = name
        self._outer = outer
        self._target = weakref.ref(target)
        #: What stood there before, should it have been an attribute of the object as well.
        self._before = vars(target).get(name)
        #: By whom each was asked for. Replaced, never changed: calls go on meanwhile.
        self.listeners: dict[str, Listener] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the method."""
        if _within.get():
            return self._method(*args, **kwargs)
        outer = self._outer
        if outer:
            _within.set(True)
        error = None
        began = perf_counter()
        try:
            return self._method(*args, **kwargs)
        except BaseException as raised:
            error = raised
            raise
        finally:
            seconds = perf_counter() - began
            if outer:
                _within.set(False)
            if self.listeners:
                spend(DATABASE, seconds)
                for listener in self.listeners.values():
                    listener(seconds, error)
            error = None  # it holds this frame

    def is_of(self, target: Any, name: str) -> bool:
        """Return whether it is of a method of an object."""
        return self._name == name and self._target() is target

    def go(self) -> None:
        """Leave the object as it was. Where somebody else stands before this, it stays."""
        target = self._target()
        if target is not None and vars(target).get(self._name) is self:
            if self._before is None:
                delattr(target, self._name)
            else:
                setattr(target, self._name, self._before)


_all: "weakref.WeakSet[_Timed]" = weakref.WeakSet()


def listen(target: Any, name: str, by: str, listener: Listener, *, outer: bool = False) -> None:
    """Have it told how long the calls of a method of an object take, from now on.

    Args:
        name: of the method.
        by: who asks. Asked again by the same, for the same method, it does nothing.
        outer: whether statements, or other calls that are timed, may go on within.

    Raises:
        AttributeError, TypeError: the object takes no attributes, or has no such method.
    """
    timed = vars(target).get(name)
    if type(timed) is _Timed and by in timed.listeners:
        return
    with _changing:
        timed = vars(target).get(name)
        if timed is not None and type(timed) is not _Timed:  # somebody else's, before ours maybe
            timed = next((each for each in _all if each.is_of(target, name)), None)
        if timed is None:
            timed = _Timed(target, name, outer=outer)
            setattr(target, name, timed)
            _all.add(timed)
        timed.listeners = {**timed.listeners, by: listener}


def leave(by: str) -> None:
    """Undo all that somebody asked for. Where nobody else asks, objects are as they were before."""
    with _changing:
        for timed in list(_all):
            if by in timed.listeners:
                timed.listeners = {who: f for who, f in timed.listeners.items() if who != by}
                if not timed.listeners:
                    timed.go()
                    _all.discard(timed)
