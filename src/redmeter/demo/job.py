"""Sends confirmations of orders: a job in a process of its own, `python -m redmeter.demo.job`."""

import contextlib
import logging
import os
import random
import signal
import time
from pathlib import Path

import sqlalchemy as sa

from redmeter.demo import database, shape
from redmeter.demo.database import orders
from redmeter.demo.server import end_with_starter
from redmeter.demo.shop import FOLDER, SEED, measure, release_in

#: Seconds between two looks for orders.
PAUSE = 0.5

_log = logging.getLogger("shop.confirmations")


def confirm_orders() -> None:
    """Confirm orders until SIGTERM."""
    end_with_starter()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    folder = Path(os.environ[FOLDER])
    chance = random.Random(os.environ[SEED])
    engine = database.connect(folder / "shop.sqlite3")
    meter = measure(engine, release_in(folder))
    waiting = meter.gauge("confirmations_waiting")
    send = meter.timer("confirmation_seconds")
    runs = meter.timer("task_seconds", labels={"task": shape.TASK})
    with contextlib.suppress(KeyboardInterrupt), meter:
        while True:
            with engine.connect() as connection:
                unconfirmed = connection.execute(sa.select(orders).where(~orders.c.confirmed)).all()
            waiting.set(len(unconfirmed))
            for order in unconfirmed:
                try:
                    with send, runs:
                        _send(order.visitor, chance)
                except ConnectionError as error:
                    _log.exception("confirmation of order %d is not sent yet", order.id)
                    meter.record_exception(error, route=shape.TASK)
                    meter.count("task_runs", labels={"task": shape.TASK, "state": "failure"})
                    meter.count("confirmations", labels={"outcome": "postponed"})
                    continue
                with engine.begin() as connection:
                    done = orders.update().where(orders.c.id == order.id).values(confirmed=True)
                    connection.execute(done)
                meter.count("confirmations", labels={"outcome": "sent"})
                meter.count("task_runs", labels={"task": shape.TASK, "state": "success"})
            time.sleep(PAUSE)


def _send(visitor: str, chance: random.Random) -> None:  # noqa: ARG001
    """Send a letter. A stand-in: it waits as one waits for a mail server."""
    time.sleep(chance.lognormvariate(-3.5, 0.5))
    if chance.random() < shape.POSTPONED:
        raise ConnectionError("451 try again later")


if __name__ == "__main__":
    confirm_orders()
