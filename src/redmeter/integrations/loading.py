"""Loads the application that REDMETER_APP names, for servers that load from_env().

    REDMETER_APP=shop:app               the object `app` of the module `shop`
    REDMETER_APP=shop.web:site.app      attributes are followed
    REDMETER_APP=shop:create_app()      a function that returns the application

A deployment can set it, so the application's own code needs no change. Unlike with other settings,
an invalid value is an error: there would be nothing to serve.
"""

import functools
import importlib
import inspect
import os
import re
from collections.abc import Callable
from typing import Any

from redmeter import settings
from redmeter.errors import InvalidSetting

_TARGET = re.compile(r"([^\W\d]\w*(?:\.[^\W\d]\w*)*):([^\W\d]\w*(?:\.[^\W\d]\w*)*)(\(\))?")

#: The arguments that a server calls an application with.
ASGI = ("scope", "receive", "send")
WSGI = ("environ", "start_response")
_FACTORIES = {
    ASGI: "redmeter.integrations.asgi:from_env",
    WSGI: "redmeter.integrations.wsgi:from_env()",
}


def load_application(arguments: tuple[str, ...]) -> Callable[..., Any]:
    """Return the application that REDMETER_APP names.

    Args:
        arguments: ASGI or WSGI.

    Raises:
        InvalidSetting: the variable is not set; the module does not exist, or importing it
            failed; the attribute is missing, or is no application of this kind. An exception of
            the module or the factory is the cause.
    """
    target = settings.resolve("app").strip()
    if not target:
        raise _invalid("not set; name the application to serve, e.g. REDMETER_APP=shop:app")
    parts = _TARGET.fullmatch(target)
    if parts is None:
        raise _invalid(f"{target!r} is not MODULE:NAME, e.g. shop:app, or shop:create_app()")
    value = _import(parts[1])
    path = parts[1]
    for name in parts[2].split("."):
        try:
            value = getattr(value, name)
        except AttributeError:
            raise _invalid(f"{path!r} has no attribute {name!r}") from None
        path += f".{name}"
    if parts[3]:
        if not callable(value):
            raise _invalid(f"{path!r} cannot be called, it is of type {type(value).__name__}")
        try:
            value = value()
        except Exception as error:
            raise _invalid(f"calling {path}() raised {type(error).__name__}: {error}") from error
    return _checked(target, value, arguments)


def _import(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module}.".startswith(f"{error.name}."):
            reason = f"there is no module {error.name!r} on sys.path; the working directory is"
            raise _invalid(f"{reason} {os.getcwd()}") from None  # noqa: PTH109 - as servers show it
        raise _failed(module, error) from error
    except Exception as error:
        raise _failed(module, error) from error


def _checked(target: str, app: Any, arguments: tuple[str, ...]) -> Callable[..., Any]:
    """Return an application, if a server can call it with these arguments."""
    if not callable(app):
        raise _invalid(f"{target!r} is of type {type(app).__name__}, which is no application")
    if _takes(app, arguments):
        return app  # type: ignore[no-any-return]
    problem = f"{target!r} cannot be called with ({', '.join(arguments)})"
    for others, factory in _FACTORIES.items():
        if others != arguments and _takes(app, others):
            raise _invalid(f"{problem}, but with ({', '.join(others)}): serve {factory} instead")
    if not target.endswith(")") and _takes(app, ()):
        raise _invalid(f"{problem}; if it returns the application, write {target}()")
    raise _invalid(problem)


def _takes(app: Callable[..., Any], arguments: tuple[str, ...]) -> bool:
    """Return whether a callable takes these arguments; True if its signature is unknown."""
    try:
        inspect.signature(app).bind(*arguments)
    except TypeError:
        return False
    except ValueError:  # written in C
        return True
    return True


def _failed(module: str, error: Exception) -> InvalidSetting:
    return _invalid(f"importing {module!r} raised {type(error).__name__}: {error}")


_invalid = functools.partial(InvalidSetting, settings.variable_of("app"))
