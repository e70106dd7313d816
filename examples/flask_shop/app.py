"""A shop in Flask, with its metrics page at /metrics/.

    pip install "redmeter[standard]" flask
    python app.py

Then open http://127.0.0.1:8000/metrics/ and send requests: curl -X POST 127.0.0.1:8000/orders/7
"""

import os

from flask import Flask, abort
from werkzeug.middleware.dispatcher import DispatcherMiddleware
from werkzeug.serving import run_simple

from redmeter import Meter
from redmeter.dashboard import Dashboard
from redmeter.integrations.flask import Redmeter

PORT = int(os.environ.get("PORT", "8000"))
STOCK = dict.fromkeys(range(10), 3)

app = Flask(__name__)
meter = Meter()  # REDMETER_URL, or an embedded server
Redmeter(app, meter=meter)  # requests, durations, errors, exceptions


@app.get("/")
def index() -> str:
    """Link to the metrics."""
    return '<a href="/metrics/">Metrics</a>'


@app.post("/orders/<int:item>")
def order(item: int) -> dict[str, int]:
    """Sell an item."""
    if STOCK.get(item, 0) < 1:
        meter.log("shop.orders", "item %d is sold out", item, severity="warning")
        abort(409)
    with meter.timer("payment_seconds"):
        STOCK[item] -= 1
    meter.count("orders")
    return {"item": item, "left": STOCK[item]}


# Open, as the server below listens on loopback only; elsewhere give a function that checks a login.
dashboard = Dashboard(meter, access="open")
site = DispatcherMiddleware(app, {"/metrics": dashboard.wsgi})

if __name__ == "__main__":
    run_simple("127.0.0.1", PORT, site, threaded=True)
