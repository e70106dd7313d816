"""The modules that work with the Redis client alone. As a program: imports them all, for CI."""

import importlib
from pathlib import Path

import redmeter

PACKAGE = Path(redmeter.__file__).parent

#: Folders whose modules need an extra.
EXTRA = {"cli", "dashboard", "demo", "promql"}
#: Modules of the core that need the PromQL evaluator.
PROMQL = {"reading.promql.query", "reading.promql.source"}
#: Modules of integrations -> the framework that they import.
FRAMEWORKS = {
    "integrations.celery": "celery",
    "integrations.django": "django",
    "integrations.django_db": "django",
    "integrations.flask": "flask",
    "integrations.rq": "rq",
    "integrations.sqlalchemy": "sqlalchemy",
    "integrations.structlog": "structlog",
}


def modules(of: str | None = None) -> list[str]:
    """Return dotted names: of the core, or of an integration and what is in its folder.

    Args:
        of: one of FRAMEWORKS.
    """
    found = []
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(parts).removesuffix(".__init__").removesuffix("__init__")
        if parts[0] not in EXTRA and name not in PROMQL and parts[-1] != "__main__":
            own = [each for each in FRAMEWORKS if f"{name}.".startswith(f"{each}.")]
            if own == ([of] if of else []):
                found.append(f"redmeter.{name}".removesuffix("."))
    return sorted(found)


if __name__ == "__main__":
    for module in modules():
        importlib.import_module(module)
