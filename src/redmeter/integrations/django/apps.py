"""The app for INSTALLED_APPS: `manage.py check` reports invalid settings."""

from django.apps import AppConfig  # type: ignore[import-untyped]
from django.conf import settings  # type: ignore[import-untyped]
from django.core.checks import CheckMessage, Warning, register  # type: ignore[import-untyped]

from redmeter.integrations.django.project import problems

_MIDDLEWARE = "redmeter.integrations.django.RedmeterMiddleware"


class RedmeterConfig(AppConfig):  # type: ignore[misc]
    """The app. It has no models and no pages."""

    name = "redmeter.integrations.django"
    label = "redmeter"
    verbose_name = "Redmeter"

    def ready(self) -> None:
        """Register the checks."""
        register(check_settings)


def check_settings(*_: object, **__: object) -> list[CheckMessage]:
    """Return a warning for each problem; none is an error, since the project works without."""
    warnings: list[CheckMessage] = [Warning(text, id="redmeter.W001") for text in problems()]
    if not any(str(one).startswith("redmeter.") for one in settings.MIDDLEWARE):
        hint = f"Put '{_MIDDLEWARE}' first in MIDDLEWARE."
        warnings.append(Warning("Requests are not counted.", hint=hint, id="redmeter.W002"))
    return warnings
