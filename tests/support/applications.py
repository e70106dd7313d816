"""Applications as texts, for servers in processes of their own: they answer with their process' id.

Each has the same pages: `/users/7`, a stream, one that fails; and the routes by which these count.
"""

STARLETTE = """
import os
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Mount, Route
from redmeter.integrations.asgi import RedmeterMiddleware

async def user(request):
    return PlainTextResponse(str(os.getpid()))

async def stream(request):
    async def parts():
        for digit in str(os.getpid()):
            yield digit
    return StreamingResponse(parts())

async def fail(request):
    raise ValueError("no such plan")

def shop():
    items = [Route("/items/{id:int}", user), Route("/stream", stream), Route("/fail", fail)]
    return Starlette(routes=[Route("/users/{id}", user), Mount("/shop/{tenant}", routes=items)])
"""

#: With the middleware within it.
COUNTED_STARLETTE = f"""{STARLETTE}
app = shop()
app.add_middleware(RedmeterMiddleware)
"""

STARLETTE_ROUTES = {
    "/users/7": "/users/{id}",
    "/shop/a/items/3": "/shop/{tenant}/items/{id}",
    "/shop/b/stream": "/shop/{tenant}/stream",
    "/shop/c/fail": "/shop/{tenant}/fail",
    "/none": "(unmatched)",
}

FLASK = """
import os
from flask import Blueprint, Flask, Response
from redmeter.integrations.flask import Redmeter

app = Flask(__name__)
app.logger.disabled = True
shop = Blueprint("shop", __name__, url_prefix="/shop/<tenant>")

@app.get("/users/<int:user_id>")
def user(user_id):
    return str(os.getpid())

@shop.get("/stream")
def stream(tenant):
    return Response(digit for digit in str(os.getpid()))

@shop.get("/fail")
def fail(tenant):
    raise ValueError("no such plan")

app.register_blueprint(shop)
redmeter = Redmeter(app)
"""

#: Under ASGI where the environment reports it, else under WSGI.
DJANGO = """
import os
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse, StreamingHttpResponse
from django.urls import include, path, re_path

settings.configure(
    ROOT_URLCONF=__name__,
    SECRET_KEY="x",
    ALLOWED_HOSTS=["*"],
    LOGGING={"version": 1, "loggers": {"django": {"level": "CRITICAL"}}},
    INSTALLED_APPS=["redmeter.integrations.django"],
    MIDDLEWARE=["redmeter.integrations.django.RedmeterMiddleware"],
)

def user(request, user_id):
    return HttpResponse(str(os.getpid()))

def stream(request, tenant):
    return StreamingHttpResponse(digit for digit in str(os.getpid()))

async def astream(request, tenant):
    async def digits():
        for digit in str(os.getpid()):
            yield digit
    return StreamingHttpResponse(digits())

def fail(request, tenant):
    raise ValueError("no such plan")

urlpatterns = [
    path("users/<int:user_id>", user),
    re_path("^shop/(?P<tenant>[a-z]+)/", include(
        [path("stream", astream if "ASGI" in os.environ else stream), path("fail", fail)]
    )),
]
app = get_asgi_application() if "ASGI" in os.environ else get_wsgi_application()
"""

#: Of both.
ROUTES = {
    "/users/7": "/users/{user_id}",
    "/shop/a/stream": "/shop/{tenant}/stream",
    "/shop/b/fail": "/shop/{tenant}/fail",
    "/none": "(unmatched)",
}
