"""Every command. Importing this module registers them with the application."""

from redmeter.cli import (  # noqa: F401
    alerts,
    demo,
    diagnosis,
    exceptions,
    export,
    forecast,
    logs,
    maintenance,
    marks,
    migrate,
    query,
    replay,
    series,
    summary,
    top,
    up,
    verdict,
)
