"""The command `redmeter` in this process, for tests whose subject is not the process."""

import contextlib
import functools
import logging
from collections.abc import Callable, Iterator

from typer import main, testing
from typer.testing import CliRunner

from redmeter.cli.app import app
from support.commands import Done

# Typer builds all commands again for each call, which takes longer than most of them run. Commands
# that others build are theirs: a command keeps the options of the context it was first parsed in.
vars(testing)["_get_command"] = functools.cache(main.get_command)

#: Runs a command in this process: call it with the command line's words.
Run = Callable[..., Done]


@contextlib.contextmanager
def invoking() -> Iterator[Run]:
    """Return a function that runs a command, its output a pipe's; restore the loggers afterwards.

    The function takes the words of the command line, its standard input as `text`, and environment
    variables as keyword arguments.
    """
    logger = logging.getLogger("redmeter")  # which commands set as they need, for their process
    before, handlers = logger.level, logger.handlers[:]
    runner = CliRunner()

    def run(*arguments: str, text: bytes = b"", **env: str) -> Done:
        done = runner.invoke(app, list(arguments), input=text, env=env)
        if done.exception and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Done(done.exit_code, done.stdout, done.stderr)

    try:
        yield run
    finally:
        logger.setLevel(before)
        logger.handlers[:] = handlers
