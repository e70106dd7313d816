"""A job for cron: how much it did, how long it took, whether it failed.

    pip install "redmeter[standard]"
    python nightly.py
    redmeter series invoices -p 1h
    redmeter summary invoice_seconds
    redmeter logs nightly

`Meter` as a context manager stores everything before the script ends.
"""

import random
import sys
import time

from redmeter import Meter

INVOICES = 40


def send(number: int) -> None:
    """Send an invoice; every 13th has no address."""
    time.sleep(random.uniform(0, 0.005))
    if number % 13 == 0:
        raise ValueError(f"invoice {number} has no address")


def main() -> int:
    """Send all invoices; return the exit code."""
    failed = 0
    with Meter() as meter:  # REDMETER_URL, or an embedded server
        for number in range(1, INVOICES + 1):
            try:
                with meter.timer("invoice_seconds"):
                    send(number)
                meter.count("invoices", labels={"result": "sent"})
            except ValueError as error:
                failed += 1
                meter.count("invoices", labels={"result": "failed"})
                meter.record_exception(error)
                meter.log("nightly", "invoice %d was not sent", number, severity="error")
        meter.gauge("nightly_last_success").set(time.time())
        meter.mark("nightly")
    print(f"{INVOICES - failed} sent, {failed} failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
