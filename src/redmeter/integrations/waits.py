"""Waits: times methods of a library's objects for which it has no hook.

Examples are a pool's connect(), since a request that waits for a connection waits for the database,
and a connection's commit(), in which the database writes.

Idea: an attribute of one object hides the method of its class. It calls the method, passes on the
result or the exception, and reports the duration to listeners. Classes and all other objects stay
unchanged, and removing the attribute restores the object. All listeners of a method share one
attribute, so its time is spent once (see spent.py).

Calls within connect(), such as a new connection's rollback(), are part of it: listeners do not
receive them, and statements within are recorded, but not spent again.

Bound: two readings of the clock and one context variable per call.

Not done: an object that accepts no attributes is not timed.
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

#: Takes the duration of a call, seconds, and the exception it raised. Must not raise.
Listener = Callable[[float, BaseException | None], None]

_changing = threading.Lock()


def _forked() -> None:
    global _changing
    _changing = threading.Lock()  # a thread of the parent may have held it


os.register_at_fork(after_in_child=_forked)

_within: ContextVar[bool] = ContextVar("redmeter_waiting", default=False)


def waiting() -> bool:
    """Return whether a timed call is running in this context."""
    return _within.get()


class _Timed:
    """Times a method of one object, as an attribute of that object."""

    def __init__(self, target: Any, name: str, *, outer: bool) -> None:
        method = getattr(target, name)
        functools.update_wrapper(self, method)
        self._method: Callable[..., Any] = method
        self._name = name
        self._outer = outer
        self._target = weakref.ref(target)
        #: The attribute that was there before, if any.
        self._before = vars(target).get(name)
        #: By owner. Replaced, never changed, since calls may be running.
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
        """Return whether it times this method of this object."""
        return self._name == name and self._target() is target

    def go(self) -> None:
        """Restore the object, unless another library replaced the attribute since."""
        target = self._target()
        if target is not None and vars(target).get(self._name) is self:
            if self._before is None:
                delattr(target, self._name)
            else:
                setattr(target, self._name, self._before)


_all: "weakref.WeakSet[_Timed]" = weakref.WeakSet()


def listen(target: Any, name: str, by: str, listener: Listener, *, outer: bool = False) -> None:
    """Report the durations of a method of an object to a listener from now on.

    Args:
        name: of the method.
        by: the owner of the listener. It has one per method: a second call does nothing.
        outer: whether statements or other timed calls may run within the method.

    Raises:
        AttributeError, TypeError: the object accepts no attributes, or has no such method.
    """
    timed = vars(target).get(name)
    if type(timed) is _Timed and by in timed.listeners:
        return
    with _changing:
        timed = vars(target).get(name)
        if timed is not None and type(timed) is not _Timed:  # another library's, maybe around ours
            timed = next((each for each in _all if each.is_of(target, name)), None)
        if timed is None:
            timed = _Timed(target, name, outer=outer)
            setattr(target, name, timed)
            _all.add(timed)
        timed.listeners = {**timed.listeners, by: listener}


def leave(by: str) -> None:
    """Remove all listeners of an owner, and restore the objects that have none left."""
    with _changing:
        for timed in list(_all):
            if by in timed.listeners:
                timed.listeners = {name: f for name, f in timed.listeners.items() if name != by}
                if not timed.listeners:
                    timed.go()
                    _all.discard(timed)
