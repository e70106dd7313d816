"""The dashboard: a page and its JSON, on its own or mounted in an application.

    from redmeter.dashboard import Dashboard

    app.mount("/metrics", Dashboard(meter, access=lambda request: request.user.is_staff))

Its packages, which the extra `page` brings, are imported by the first use of that name.
"""

from typing import TYPE_CHECKING, Any

from redmeter.extras import needs

if TYPE_CHECKING:
    from redmeter.dashboard.app import Dashboard as Dashboard

__all__ = ["Dashboard"]


def __getattr__(name: str) -> Any:
    if name == "Dashboard":
        with needs("page", "the dashboard"):
            from redmeter.dashboard.app import Dashboard

        return Dashboard
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
