"""A shop in FastAPI, with its metrics page at /metrics/.

    pip install "redmeter[standard]" fastapi
    python app.py

Then open http://127.0.0.1:8000/metrics/ and send requests: curl -X POST 127.0.0.1:8000/orders/7
"""

import os

import uvicorn
from fastapi import FastAPI, HTTPException
from fastapi.responses import HTMLResponse

from redmeter import Meter
from redmeter.dashboard import Dashboard
from redmeter.integrations.asgi import RedmeterMiddleware

PORT = int(os.environ.get("PORT", "8000"))
STOCK = dict.fromkeys(range(10), 3)

meter = Meter()  # REDMETER_URL, or an embedded server
app = FastAPI(title="Shop")
app.add_middleware(RedmeterMiddleware, meter=meter)  # requests, durations, errors, exceptions
orders = meter.counter("orders")


@app.get("/", response_class=HTMLResponse)
def index() -> str:
    """Link to the metrics."""
    return '<a href="/metrics/">Metrics</a> · <a href="/docs">API</a>'


@app.post("/orders/{item}")
def order(item: int, amount: int = 1) -> dict[str, int]:
    """Sell an item."""
    if STOCK.get(item, 0) < amount:
        meter.log("shop.orders", "item %d is sold out", item, severity="warning")
        raise HTTPException(409, "sold out")
    with meter.timer("payment_seconds"):
        STOCK[item] -= amount
    orders.inc()
    meter.count("items_sold", amount)
    return {"item": item, "left": STOCK[item]}


# Open, as the server below listens on loopback only; elsewhere give a function that checks a login.
app.mount("/metrics", Dashboard(meter, access="open"))

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=PORT)
