"""Counts the requests of a Django project, with its routes.

    MIDDLEWARE = ["redmeter.integrations.django.RedmeterMiddleware", ...]    # first
    REDMETER_URL = "redis://localhost:6379/0"

    from redmeter.integrations.django import meter
    meter().count("orders")                                                  # your own metrics

With "redmeter.integrations.django" in INSTALLED_APPS, `manage.py check` validates the settings.
"""

from redmeter.integrations.django.middleware import RedmeterMiddleware
from redmeter.integrations.django.project import meter

__all__ = ["RedmeterMiddleware", "meter"]
