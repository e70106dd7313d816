"""Every command. Importing this module registers them with the application."""

from redmeter.cli import (  # noqa: F401
    alerts,
    demo,
    exceptions,
    explain,
    export,
    forecast,
    logs,
    maintenance,
    marks,
    migrate,
    query,
    replay,
    series,
    status,
    summary,
    top,
    up,
    verdict,
)
