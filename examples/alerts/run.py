"""Alerts that reach a webhook: a shop that fails, the evaluator, and a receiver that verifies.

    pip install "redmeter[standard]"
    python run.py

After a few seconds, the receiver prints the notice of the alert "checkout-errors".
"""

import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from redmeter import Meter
from redmeter.alerting.notifiers import verify

RULES = Path(__file__).parent / "alerts.toml"
PORT = int(os.environ.get("PORT", "8000"))
SECRET = os.environ.setdefault("WEBHOOK_SECRET", secrets.token_hex())


class Receiver(BaseHTTPRequestHandler):
    """Prints notices whose signature is right."""

    def do_POST(self) -> None:
        """Receive a notice. `key` is the same on each attempt, so a second one can be ignored."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        genuine = verify(body, self.headers["X-Redmeter-Signature"] or "", SECRET)
        self.send_response(204 if genuine else 403)
        self.end_headers()
        if genuine:
            notice = json.loads(body)
            print(f"{notice['status']}: {notice['name']}: {notice['message']}", flush=True)

    def log_message(self, *_: object) -> None:
        """Print no lines of access."""


def main() -> None:
    """Run all three until SIGTERM or Ctrl-C."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    receiver = ThreadingHTTPServer(("127.0.0.1", PORT), Receiver)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder, Meter() as meter:
        rules = Path(folder) / "alerts.toml"
        rules.write_text(RULES.read_text().replace(":8000/", f":{PORT}/"))
        for ago in range(60):  # the past minute: every fifth checkout failed
            meter.count("checkouts", 8, labels={"result": "paid"}, at=time.time() - ago)
            meter.count("checkouts", 2, labels={"result": "failed"}, at=time.time() - ago)
        meter.flush()
        command = ["-m", "redmeter", "alerts", "run", "--file", str(rules), "--interval", "1"]
        evaluator = subprocess.Popen([sys.executable, *command])
        try:
            evaluator.wait()
        except KeyboardInterrupt:
            pass
        finally:
            evaluator.terminate()
            evaluator.wait()


if __name__ == "__main__":
    main()
