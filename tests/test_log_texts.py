"""The texts that the library logs within an application: each names Redmeter."""

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "redmeter"
#: `warning: …` of a command needs no name; keys that are left out are told of in both. The shop of
#: the demo logs as an application.
WITHOUT = ("cli/", "reading/foreign_keys.py", "demo/shop.py", "demo/job.py")
LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}


def calls_of_loggers(path: Path) -> Iterator[ast.Call]:
    """Yield each call of a module's logger, or of the function that recorders warn by."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="logger" | "_log"), attr=name)):
                if name in LEVELS and ast.unparse(node.args[0]) != "text":  # of _warn() itself
                    yield node
            case ast.Call(func=ast.Name(id="_warn")):
                yield node


def test_each_text_that_is_logged_names_redmeter() -> None:
    """An application's log often shows the message and not the logger's name."""
    texts = [
        (str(path.relative_to(PACKAGE)), str(ast.literal_eval(call.args[0])))
        for path in sorted(PACKAGE.rglob("*.py"))
        if not path.relative_to(PACKAGE).as_posix().startswith(WITHOUT)
        for call in calls_of_loggers(path)
    ]
    assert len(texts) > 10
    assert [each for each in texts if "redmeter" not in each[1].lower()] == []
