"""Counts the requests of a Django project, with its routes.

    MIDDLEWARE = ["redmeter.integrations.django.RedmeterMiddleware", ...]    # first of all
    REDMETER_URL = "redis://localhost:6379/0"

    from redmeter.integrations.django import meter
    meter().count("orders")                                                  # what is yours

With "redmeter.integrations.django" in INSTALLED_APPS, `manage.py check` looks at the settings.
"""

from redmeter.integrations.django.middleware import RedmeterMiddleware
from redmeter.integrations.django.project import meter

__all__ = ["RedmeterMiddleware", "meter"]
