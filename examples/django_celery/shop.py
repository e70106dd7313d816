"""A Django project and its Celery tasks, in one file.

A real project has settings.py, urls.py and tasks.py instead; what Redmeter needs is marked.
"""

import os
import secrets
import tempfile
from pathlib import Path
from typing import Any

from celery import Celery
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import include, path
from django.views.decorators.csrf import csrf_exempt

from redmeter.dashboard.django import dashboard_urls
from redmeter.integrations import celery as celery_metrics
from redmeter.integrations.django import meter

FOLDER = Path(os.environ.get("SHOP_DATA") or Path(tempfile.gettempdir()) / "redmeter-shop")
QUEUE = FOLDER / "queue"
QUEUE.mkdir(parents=True, exist_ok=True)

settings.configure(
    ROOT_URLCONF=__name__,
    SECRET_KEY=os.environ.get("SECRET_KEY") or secrets.token_hex(),
    ALLOWED_HOSTS=["127.0.0.1", "localhost"],
    MIDDLEWARE=["redmeter.integrations.django.RedmeterMiddleware"],  # Redmeter: first
    INSTALLED_APPS=["redmeter.integrations.django"],  # Redmeter: for `manage.py check`
)

# A folder as a broker, so that the example needs no other server; in production Redis or RabbitMQ.
celery = Celery("shop", broker=os.environ.get("BROKER_URL", "filesystem://"))
celery.conf.broker_transport_options = {
    "data_folder_in": str(QUEUE),
    "data_folder_out": str(QUEUE),
    "control_folder": str(FOLDER / "control"),
}
celery_metrics.install(celery)  # Redmeter: in the worker and where tasks are sent


@celery.task(name="shop.send_confirmation")
def send_confirmation(item: int) -> str:
    """Confirm an order; item 9 cannot be confirmed."""
    if item == 9:
        raise ValueError(f"no address for item {item}")
    return f"item {item} is confirmed"


def index(_: HttpRequest) -> HttpResponse:
    """Link to the metrics."""
    return HttpResponse('<a href="/metrics/">Metrics</a>')


@csrf_exempt
def order(_: HttpRequest, item: int) -> JsonResponse:
    """Sell an item, and confirm it in the background."""
    meter().count("orders")
    send_confirmation.delay(item)
    return JsonResponse({"item": item})


urlpatterns: list[Any] = [
    path("", index),
    path("orders/<int:item>", order),
    # Open, as the server listens on loopback only; elsewhere: lambda request: request.user.is_staff
    path("metrics/", include(dashboard_urls(access="open"))),
]

application = get_wsgi_application()
