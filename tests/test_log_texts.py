"""The texts that the library logs within an application: each names Redmeter."""

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "redmeter"
#: `warning: …` of a command needs no name; readings run in both and name keys of the store.
WITHOUT = {"cli", "reading"}
LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}
LOGGERS = {"logger", "_log"}


def logged_texts() -> list[tuple[str, str]]:
    """Return (place, format) of each call of a module's logger."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE)
        if place.parts[0] in WITHOUT:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in LEVELS
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id in LOGGERS
            ):
                found.append((f"{place}:{node.lineno}", str(ast.literal_eval(node.args[0]))))
    return found


def test_each_text_that_is_logged_names_redmeter() -> None:
    """An application's log often shows the message and not the logger's name."""
    texts = logged_texts()
    assert len(texts) > 10
    assert [each for each in texts if "redmeter" not in each[1].lower()] == []
